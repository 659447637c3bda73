"""Finds which common fields a server rejects: sends all at once, and one by one if that is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.providers.probe.dialect_client import make_message
from xenoglot.providers.probe.findings import Finding, ProbeExchange
from xenoglot.providers.probe.probe_table import HELLO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.providers.probe.dialect_client import DialectClient
    from xenoglot.providers.probe.exchange import Conversation, ProbeAnswer
    from xenoglot.providers.probe.findings import Verdict

SAMPLING: Final[dict[str, object]] = {
    "temperature": 0.7,
    "top_p": 0.9,
    "seed": 7,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.1,
    "logit_bias": {"0": -1.0},
    "logprobs": True,
    "top_logprobs": 2,
}
OTHER_FIELDS: Final[dict[str, object]] = {
    "verbosity": "medium",
    "user": "xenoglot-probe",
    "metadata": {"probe": "xenoglot"},
    "service_tier": "auto",
    "store": False,
    "cache_key": "xenoglot-probe",
}
NAME: Final = "name"
"""A field of messages; the only one here that is neither in the sampling nor in the request."""


def find_unsupported(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask with the fields that the dialect has words for, first with all of them."""
    fields = [name for name in (*SAMPLING, *OTHER_FIELDS, NAME) if _body(speaker, (name,)) is not None]
    body = speaker.encode(_request(speaker, fields))  # some exclude each other in a dialect: then one is left out
    if body is None or not fields:
        return ()
    answer = yield from speaker.post_with_retry(body, f"all of {', '.join(fields)}")
    evidence = [answer.evidence]
    if not _refused(answer):
        return (_finding(speaker, "yes" if answer.outcome == "answered" else "unclear", "", evidence),)
    lacks: list[str] = []
    for name in fields:
        alone = _body(speaker, (name,))
        if alone is None:
            continue
        answer = yield from speaker.post_with_retry(alone, f"`{name}` alone")
        if _refused(answer):
            lacks.append(name)
            evidence.append(answer.evidence)
    if not lacks:
        return (_finding(speaker, "unclear", "each is taken alone, but not all of them", evidence),)
    other = yield from _other_seed(speaker, lacks)
    known = {"seed"} if any(finding.sets for finding in other) else set[str]()
    told = _finding(speaker, "no", ", ".join(lacks), evidence)
    return (replace(told, sets={"lacks": [name for name in lacks if name not in known]}), *other)


def _other_seed(speaker: DialectClient, lacks: Sequence[str]) -> Conversation[tuple[Finding, ...]]:
    """Where the seed was refused, ask with its other name."""
    usual, body = _body(speaker, ("seed",)), _body(speaker, ("seed",), seed_field="random_seed")
    if "seed" not in lacks or body is None or body == usual:
        return ()
    answer = yield from speaker.post_with_retry(body, "`random_seed` in place of `seed`")
    taken = answer.outcome == "answered" and speaker.refuses_unknown is True
    verdict: Verdict = "yes" if taken else "no" if _refused(answer) else "unclear"
    return (
        Finding(
            face=speaker.name,
            what="random_seed",
            verdict=verdict,
            confidence="likely" if taken else "guess",
            evidence=(answer.evidence,),
            sets={"seed_field": "random_seed"} if taken else {},
        ),
    )


def _body(speaker: DialectClient, names: Sequence[str], **target: object) -> JSONObject | None:
    request = _request(speaker, names)
    body = speaker.encode(request, tuple(names), **target)
    return None if body == speaker.encode(speaker.request(HELLO)) else body


def _request(speaker: DialectClient, names: Sequence[str]) -> Request:
    turn = make_message("user", HELLO)
    request = speaker.request(replace(turn, name="probe") if NAME in names else turn)
    wanted = {*names, *(("logprobs",) if "top_logprobs" in names else ())}  # the one is part of the other
    drawn = {name: value for name, value in SAMPLING.items() if name in wanted}
    aside = {name: value for name, value in OTHER_FIELDS.items() if name in names}
    return replace(request, sampling=replace(request.sampling, **drawn), **aside)


def _refused(answer: ProbeAnswer) -> bool:
    return answer.outcome == "refused" or (answer.outcome == "failing" and answer.status > 0)


def _finding(speaker: DialectClient, verdict: Verdict, detail: str, evidence: Sequence[ProbeExchange]) -> Finding:
    return Finding(
        face=speaker.name,
        what="usual_fields",
        verdict=verdict,
        confidence="guess" if verdict == "unclear" else "likely",
        detail=detail,
        evidence=tuple(evidence),
    )
