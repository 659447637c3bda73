"""Probes of limits: which field caps an answer, what stop strings do, and how many are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from msgspec.structs import replace

from xenoglot.model.request import Sampling
from xenoglot.providers.probe.findings import Finding, ProbeExchange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.providers.probe.dialect_client import DialectClient
    from xenoglot.providers.probe.exchange import Conversation, ProbeAnswer
    from xenoglot.providers.probe.findings import Confidence, Verdict

CapField = Literal["max_tokens", "max_completion_tokens"]

COUNT: Final = "Count from 1 to 60."
_FEW: Final = 8
_SLACK: Final = 12
"""Servers count tokens differently, and some dialects have a least; an answer of sixty numbers is far longer."""

_SIZES: Final = (5, 16)
"""Numbers of stop strings that are tested: one more than OpenAI accepts, and a large one."""


def caps(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for a long answer under a small cap, by each name that the cap has."""
    request = speaker.request(COUNT, sampling=Sampling(max_tokens=_FEW))
    bodies: dict[CapField, JSONObject] = {}
    for field in get_args(CapField):
        body = speaker.encode(request, max_tokens_field=field)
        if body is not None and body not in bodies.values():
            bodies[field] = body
    answers: dict[CapField, ProbeAnswer] = {}
    for field, body in bodies.items():
        answers[field] = yield from speaker.post_with_retry(body, _description(field, several=len(bodies) > 1))
    several = len(answers) > 1
    found = [_cap(speaker, field if several else "output_cap", answer) for field, answer in answers.items()]
    if several and (best := _best(found)) is not None:
        found = [_chosen(one, best) if one.what == best else one for one in found]
        speaker.target = replace(speaker.target, max_tokens_field=best)
    return tuple(found)


def _chosen(finding: Finding, field: CapField) -> Finding:
    sure: Confidence = "sure" if finding.confidence == "sure" else "likely"  # the other was refused
    return replace(finding, confidence=sure, sets={"max_tokens_field": field})


def _description(field: str, *, several: bool) -> str:
    return f"a long answer, at most {_FEW} tokens" + (f" by `{field}`" if several else "")


def _best(found: Sequence[Finding]) -> CapField | None:
    """Return the first name that was seen to cap, else the first that was taken where another was not."""
    verdicts: dict[str, Verdict] = {one.what: one.verdict for one in found}
    fields: tuple[CapField, ...] = get_args(CapField)
    if len(verdicts) < len(fields):
        return None
    obeyed = next((field for field in fields if verdicts[field] == "yes"), None)
    taken = next((field for field in fields if verdicts[field] in ("ignored", "not seen")), None)
    return obeyed or (taken if "no" in verdicts.values() else None)


def _cap(speaker: DialectClient, what: str, answer: ProbeAnswer) -> Finding:
    verdict, confidence = _capped(answer)
    return Finding(
        face=speaker.name,
        what=what,
        verdict=verdict,
        confidence=confidence,
        evidence=(answer.evidence,),
        scope="model",
    )


def _capped(answer: ProbeAnswer) -> tuple[Verdict, Confidence]:
    match answer.outcome:
        case "answered":
            candidates = () if answer.response is None else answer.response.candidates
            finish = candidates[0].finish if candidates else None
            if finish is not None and finish.reason == "length":
                return "yes", "sure"
            usage = None if answer.response is None else answer.response.usage
            used = None if usage is None else usage.output_tokens
            return ("ignored", "sure") if used is not None and used > _FEW + _SLACK else ("not seen", "guess")
        case "refused" | "absent":
            return "no", "sure"
        case "limited" | "locked":
            return "not asked", "guess"
        case _:
            return "unclear", "guess"


def stops(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for an answer that ends at a stop string, then with more and more of them."""
    if speaker.dialect.stop_limit == 0:
        return ()
    body = _stopped(speaker, 1)
    if body is None:
        return ()
    answer = yield from speaker.post_with_retry(body, "to stop at `7`, counting")
    found = _stop(speaker, answer)
    if answer.outcome != "answered":
        return (found,)
    return (found, (yield from _most(speaker)))


def _stopped(speaker: DialectClient, count: int) -> JSONObject | None:
    strings = ("7", *(f"<stop {number}>" for number in range(2, count + 1)))
    request = speaker.request(COUNT, sampling=Sampling(max_tokens=speaker.cap, stop=strings))
    return speaker.encode(request, ("stop",), stop_limit=None)


def _stop(speaker: DialectClient, answer: ProbeAnswer) -> Finding:
    verdict: Verdict = "unclear"
    confidence: Confidence = "guess"
    sets: JSONObject = {}
    if answer.outcome == "answered":
        verdict, confidence, sets = _ended(answer)
    elif answer.outcome == "refused":
        verdict, confidence, sets = "no", "likely", {"stop_limit": 0}
    return Finding(
        face=speaker.name,
        what="stop",
        verdict=verdict,
        confidence=confidence,
        evidence=(answer.evidence,),
        sets=sets,
    )


def _ended(answer: ProbeAnswer) -> tuple[Verdict, Confidence, JSONObject]:
    candidates = () if answer.response is None else answer.response.candidates
    finish = candidates[0].finish if candidates else None
    if finish is not None and finish.reason == "stop_sequence":
        return "yes", "sure", {"stops": "native"}
    if "7" in answer.text:
        return "ignored", "sure", {"stops": "ours"}
    if "6" in answer.text and (finish is None or finish.reason != "length"):
        return "yes", "sure", {"stops": "native"}
    return "not seen", "guess", {}


def _most(speaker: DialectClient) -> Conversation[Finding]:
    """Find how many stop strings are taken, by few questions."""
    evidence: list[ProbeExchange] = []
    taken = 1
    refused: int | None = None
    for count in _SIZES:
        answer = yield from _with_stops(speaker, count, evidence)
        if answer is None or answer.outcome != "answered":
            refused = count if answer is not None and answer.outcome == "refused" else None
            break
        taken = count
    if taken == 1 and refused is not None:
        answer = yield from _with_stops(speaker, _SIZES[0] - 1, evidence)
        taken, refused = (_SIZES[0] - 1, refused) if answer is not None and answer.outcome == "answered" else (1, 4)
    detail = f"{taken} are taken, {refused} are not" if refused is not None else f"at least {taken} are taken"
    known = refused is not None or taken > 1
    return Finding(
        face=speaker.name,
        what="stop_limit",
        verdict="yes" if known else "unclear",
        confidence="likely" if known else "guess",
        detail=detail,
        evidence=tuple(evidence),
        sets={"stop_limit": taken} if known and (refused is not None or speaker.dialect.stop_limit is not None) else {},
    )


def _with_stops(speaker: DialectClient, count: int, evidence: list[ProbeExchange]) -> Conversation[ProbeAnswer | None]:
    body = _stopped(speaker, count)
    if body is None:
        return None
    answer = yield from speaker.post_with_retry(body, f"{count} stop strings")
    evidence.append(answer.evidence)
    return answer
