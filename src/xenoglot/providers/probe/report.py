"""Renders the findings of a probe as text: what the server does, the confidence, request and response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.providers.probe.findings import Finding, ProbeCost, Report

_WIDTHS: Final = (24, 9, 7)
_MARK: Final = "    "


def lines(report: Report, *, evidence: bool = False) -> Iterator[str]:
    """Yield the report; with `evidence` also what was asked and answered for each line of it."""
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
