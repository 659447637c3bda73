"""Tests whether a server accepts a field; if it accepts anything, repeats the test with a nonsense value.

A server that passes over fields it does not know answers as if it had understood. But one that does know a field
refuses nonsense in it: so the same request with an invalid value distinguishes the two.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from xenoglot.model.json import JSON, JSONObject
from xenoglot.providers.probe.dialect_client import with_nonsense
from xenoglot.providers.probe.exchange import ProbeAnswer
from xenoglot.providers.probe.findings import Finding, ProbeExchange, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.providers.probe.dialect_client import DialectClient
    from xenoglot.providers.probe.exchange import Conversation
    from xenoglot.providers.probe.findings import Confidence, Verdict

COMPANIONS = ("include",)
"""Fields that set the detail of an answer, next to the tested field."""

Effect: TypeAlias = Literal["seen", "not seen", "contrary", "hidden"]
"""What an answer shows of the tested feature; `contrary`: it was not done; `hidden`: nothing can show it."""


class ProbeItem(Struct, frozen=True, kw_only=True):
    """Something to be taken or refused.

    `body` is the request that has it, `plain` one that has not. `invalid_fields` are fields, and values, that can be
    spoiled: by default those that are new at the top; none where nothing can be passed over. `named` are words by which
    a refusal means this. `yes` and `no` are the fields of `Target` that follow, `ignored` those of a thing that was
    plainly not done. A `decoy` has an invalid value in its place, and costs less: a server that accepts it is not
    tested further.
    """

    what: str
    description: str
    body: JSONObject
    plain: JSONObject
    decoy: JSONObject | None = None
    invalid_fields: tuple[tuple[str, JSON], ...] | None = None
    named: tuple[str, ...] = ()
    yes: JSONObject = {}
    no: JSONObject = {}
    ignored: JSONObject = {}
    scope: Scope = "server"
    detail: str = ""


class ProbeOutcome(Struct, frozen=True, kw_only=True):
    """The finding, and the first answer, for further checks."""

    finding: Finding
    answer: ProbeAnswer


def hidden(_answer: ProbeAnswer) -> Effect:
    """No answer shows it."""
    return "hidden"


def run_ab_test(
    speaker: DialectClient, thing: ProbeItem, effect: Callable[[ProbeAnswer], Effect] = hidden
) -> Conversation[ProbeOutcome]:
    """Ask with the thing; return whether it was taken."""
    if thing.decoy is not None and not speaker.refuses_unknown:
        lured = yield from speaker.post(thing.decoy, f"{thing.description}, with nonsense for it")
        if lured.outcome == "answered":
            detail = "taken, and so is nonsense for it"
            return ProbeOutcome(
                finding=_finding(speaker, thing, _Conclusion("unclear", "guess", (lured.evidence,), detail)),
                answer=lured,
            )
    answer = yield from speaker.post_with_retry(thing.body, thing.description)
    if answer.outcome != "answered":
        return ProbeOutcome(finding=_rejected(speaker, thing, answer), answer=answer)
    shown = effect(answer)
    if shown == "seen":
        finding = _finding(speaker, thing, _Conclusion("yes", "sure", (answer.evidence,)))
    elif shown == "contrary":
        finding = _finding(speaker, thing, _Conclusion("ignored", "sure", (answer.evidence,)))
    else:
        finding = yield from _controlled(speaker, thing, answer, shown)
    return ProbeOutcome(finding=finding, answer=answer)


def _rejected(speaker: DialectClient, thing: ProbeItem, answer: ProbeAnswer) -> Finding:
    evidence = (answer.evidence,)
    match answer.outcome:
        case "refused" | "absent":
            confidence: Confidence = "sure" if _names(answer, thing) else "likely"
            return _finding(speaker, thing, _Conclusion("no", confidence, evidence))
        case "failing" if answer.status:  # twice: chat templates that do not know a thing end so
            return _finding(speaker, thing, _Conclusion("no", "likely" if _names(answer, thing) else "guess", evidence))
        case "limited" | "locked":
            return _finding(speaker, thing, _Conclusion("not asked", "guess", evidence))
        case _:
            return _finding(speaker, thing, _Conclusion("unclear", "guess", evidence))


def _controlled(speaker: DialectClient, thing: ProbeItem, answer: ProbeAnswer, shown: Effect) -> Conversation[Finding]:
    """Return how sure it is that a feature was accepted whose effect is hidden."""
    evidence = [answer.evidence]
    passed_over: str | None = None
    for key, body in () if speaker.refuses_unknown and thing.invalid_fields is None else _controls(thing):
        control = yield from speaker.post(body, f"the same, with nonsense in `{key}`")
        evidence.append(control.evidence)
        if control.outcome != "refused" and not (control.outcome == "failing" and control.status):
            passed_over = key
            break
    verdict: Verdict = "not seen" if shown == "not seen" else "unclear" if passed_over else "yes"
    detail = thing.detail or (f"taken, and so is nonsense in `{passed_over}`" if passed_over else "")
    return _finding(speaker, thing, _Conclusion(verdict, "guess" if passed_over else "likely", tuple(evidence), detail))


def _controls(thing: ProbeItem) -> Iterator[tuple[str, JSONObject]]:
    """Yield the request of a feature, with an invalid value in each of its fields that are set."""
    for key, value in _fields(thing):
        body: JSONObject = with_nonsense(thing.body, partial(_is, key, value))
        if body != thing.body:
            yield key, body


def _is(key: str, value: JSON, name: str, item: JSON) -> bool:
    return name == key and item == value


def _fields(thing: ProbeItem) -> Sequence[tuple[str, JSON]]:
    if thing.invalid_fields is not None:
        return thing.invalid_fields
    new = {key: value for key, value in thing.body.items() if thing.plain.get(key) != value}
    return [(key, value) for key, value in new.items() if key not in COMPANIONS or len(new) == 1]


def _names(answer: ProbeAnswer, thing: ProbeItem) -> bool:
    """Whether a refusal speaks of the thing."""
    failure = answer.failure
    told = "" if failure is None else f"{failure.message} {failure.param or ''}".lower()
    words = (*thing.named, *(key for key, _ in _fields(thing)))
    return any(word.lower() in told for word in words)


class _Conclusion(NamedTuple):
    verdict: Verdict
    confidence: Confidence
    evidence: tuple[ProbeExchange, ...]
    detail: str = ""


def _finding(speaker: DialectClient, thing: ProbeItem, conclusion: _Conclusion) -> Finding:
    follows = {"yes": thing.yes, "no": thing.no, "ignored": thing.ignored}
    return Finding(
        face=speaker.name,
        what=thing.what,
        verdict=conclusion.verdict,
        confidence=conclusion.confidence,
        detail=conclusion.detail,
        evidence=conclusion.evidence,
        sets=follows.get(conclusion.verdict, {}),
        scope=thing.scope,
    )
