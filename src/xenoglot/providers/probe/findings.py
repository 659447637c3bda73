"""Findings of a probe, each with its evidence and confidence, and their report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, field

from xenoglot.model.json import JSON, JSONObject
from xenoglot.providers.provider import AuthForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Verdict: TypeAlias = Literal["yes", "no", "ignored", "not seen", "unclear", "not asked"]
"""`no`: the server refused it; `not seen`: the model did not do it."""

Confidence: TypeAlias = Literal["sure", "likely", "guess"]
"""`sure`: the effect was seen, or the refusal names the field. `likely`: it was taken by a server that refuses what it
does not know, or was refused without a reason. `guess`: all else, as what a server took that takes everything."""

Scope: TypeAlias = Literal["server", "model"]
"""Whether another model of the same server might do otherwise."""


class ProbeExchange(Struct, frozen=True, kw_only=True):
    """One question and its answer, in words of one line each."""

    asked: str
    answered: str


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that a server does, or does not do.

    `face` is the dialect of the request, empty if that does not matter. `detail` describes how it works. `sets`
    are the fields of `codec.target.Target` that follow from it, the usual ones among them.
    """

    face: str
    what: str
    verdict: Verdict
    confidence: Confidence = "guess"
    detail: str = ""
    evidence: tuple[ProbeExchange, ...] = ()
    sets: JSONObject = field(default_factory=dict)
    scope: Scope = "server"


class ProbeCost(Struct, frozen=True, kw_only=True):
    """What the questions cost: requests, and tokens as far as the server counts them."""

    requests: int
    input_tokens: int | None = None
    output_tokens: int | None = None


class Report(Struct, frozen=True, kw_only=True):
    """All that was found. `faces` are the dialects that the server speaks, the first of them the best to ask it in.

    `auth` is how a key was sent in each, `listed` are the models that it lists, `context` is the window of the tested
    `model`. `text_syntax` is the row by which its texts are to be read, where that was seen.
    """

    base_url: str
    model: str | None
    faces: tuple[str, ...]
    findings: tuple[Finding, ...]
    spent: ProbeCost
    listed: tuple[str, ...] = ()
    context: int | None = None
    auth: dict[str, AuthForm] = field(default_factory=dict)
    text_syntax: str | None = None

    def settings(self, face: str, scope: Scope) -> JSONObject:
        """Return the fields of `Target` that are known well enough to be written down."""
        found: dict[str, JSON] = {}
        for finding in self.findings:
            if finding.face == face and finding.scope == scope and finding.confidence != "guess":
                lacks = {*found.get("lacks", ()), *finding.sets.get("lacks", ())}
                found |= finding.sets | ({"lacks": sorted(lacks)} if lacks else {})
        return found


_WIDTHS: Final = (24, 9, 7)
_MARK: Final = "    "


def lines(report: Report, *, evidence: bool = False) -> Iterator[str]:
    """Yield the report; with `evidence` also the requests and answers of each line."""
    yield report.base_url
    if report.model is not None:
        window = "" if report.context is None else f", a context of {report.context} tokens"
        yield f"asked: {report.model}{window}"
    faces = list(dict.fromkeys(finding.face for finding in report.findings if finding.face in ("", *report.faces)))
    for face in faces:
        yield from ("", face or "the server")
        yield from _block([finding for finding in report.findings if finding.face == face], evidence=evidence)
    yield from _failed_dialects(report, evidence=evidence)
    yield from ("", spent(report.spent))


def spent(cost: ProbeCost) -> str:
    """Return what the questions cost, in one line."""
    told = [
        f"{count} {what} tokens"
        for what, count in (("input", cost.input_tokens), ("output", cost.output_tokens))
        if count is not None
    ]
    return f"{cost.requests} requests" + (f", {' and '.join(told)}" if told else "; the server counts no tokens")


def no_dialect(report: Report) -> str:
    """Return in one line why a server that speaks no dialect does not."""
    told = {one.face: one.evidence[-1].answered for one in report.findings if one.what == "speaks" and one.evidence}
    said = list(dict.fromkeys(told.values()))
    if len(said) == 1:
        return f"it speaks none of {', '.join(told)}: {said[0]}"
    return "it speaks no dialect: " + "; ".join(f"{face}: {answered}" for face, answered in told.items())


def _block(findings: Sequence[Finding], *, evidence: bool) -> Iterator[str]:
    for finding in findings:
        yield f"  {_line(finding)}"
        if evidence:
            yield from _describe(finding)


def _failed_dialects(report: Report, *, evidence: bool) -> Iterator[str]:
    """Yield the dialects that were tried in vain."""
    others = [one for one in report.findings if one.face not in ("", *report.faces)]
    if not others:
        return
    yield from ("", "not spoken")
    for finding in others:
        said = f": {finding.detail}" if finding.detail else ""
        yield f"  {finding.face:<{_WIDTHS[0]}}{finding.verdict}{said}"
        if evidence:
            yield from _describe(finding)


def _line(finding: Finding) -> str:
    sure = "" if finding.verdict in ("not seen", "unclear", "not asked") else finding.confidence
    cells = (finding.what, finding.verdict, sure)
    return ("".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)) + finding.detail).rstrip()


def _describe(finding: Finding) -> Iterator[str]:
    for one in finding.evidence:
        yield f"{_MARK}asked {one.asked}"
        yield f"{_MARK}  -> {one.answered}"
