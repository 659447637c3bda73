"""Findings of a probe, each with its evidence and confidence."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from xenoglot.model.json import JSON, JSONObject
from xenoglot.providers.provider import AuthForm

Verdict: TypeAlias = Literal["yes", "no", "ignored", "not seen", "unclear", "not asked"]
"""`no` is said of what the server refused; what a model merely did not do is `not seen`."""

Confidence: TypeAlias = Literal["sure", "likely", "guess"]
"""`sure`: the effect was there, or the refusal names the field. `likely`: it was taken by a server that refuses what it
does not know, or was refused without a reason. `guess`: all else, as what a server took that takes everything."""

Scope: TypeAlias = Literal["server", "model"]
"""Whether another model of the same server might do otherwise."""


class ProbeExchange(Struct, frozen=True, kw_only=True):
    """One question and its answer, in words of one line each."""

    asked: str
    answered: str


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that a server does, or does not do.

    `face` is the dialect in which it was asked, empty where that does not matter. `detail` says how it does it. `sets`
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

    `auth` says how a key was shown in each, `listed` are the models that it says it has, `context` is the window of
    the `model` that was asked. `text_syntax` is the row by which its texts are to be read, where that was seen.
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
