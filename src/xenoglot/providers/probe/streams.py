"""Probes of streaming: whether it works, how streams end, and whether usage must be requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.providers.probe.findings import Finding
from xenoglot.providers.probe.probe_table import HELLO

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.providers.probe.dialect_client import DialectClient
    from xenoglot.providers.probe.exchange import Conversation, ProbeAnswer
    from xenoglot.providers.probe.findings import Confidence, Verdict

_OPTIONS: Final = "stream_options"


def streams(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for a stream; where the dialect has options of streams, with and without them."""
    body = speaker.encode(replace(speaker.request(HELLO), stream=True))
    if body is None:
        return ()
    bare = {key: value for key, value in body.items() if key != _OPTIONS}
    answer = yield from speaker.post_with_retry(bare, "a stream")
    found = [_stream(speaker, answer)]
    if answer.outcome != "answered":
        return tuple(found)
    if bare == body:
        return (*found, _usage(speaker, answer, None))
    optioned = yield from speaker.post_with_retry(body, f"a stream with `{_OPTIONS}`")
    return (*found, _usage(speaker, answer, optioned), _options(speaker, optioned))


def _stream(speaker: DialectClient, answer: ProbeAnswer) -> Finding:
    verdict, confidence, detail = _stream_verdict(answer)
    return Finding(
        face=speaker.name,
        what="streaming",
        verdict=verdict,
        confidence=confidence,
        detail=detail,
        evidence=(answer.evidence,),
    )


def _stream_verdict(answer: ProbeAnswer) -> tuple[Verdict, Confidence, str]:
    match answer.outcome:
        case "answered" if not answer.streamed:
            return "ignored", "sure", "a whole answer came"
        case "answered" if answer.complete:
            return "yes", "sure", f"the last event: `{answer.ending}`" if answer.ending else "the last chunk says so"
        case "answered":
            return "yes", "likely", f"without the end that the dialect demands; the last event: `{answer.ending}`"
        case "refused" | "absent":
            return "no", "sure", ""
        case "limited" | "locked":
            return "not asked", "guess", ""
        case _:
            return "unclear", "guess", ""


def _usage(speaker: DialectClient, bare: ProbeAnswer, optioned: ProbeAnswer | None) -> Finding:
    told = [(bare, "always"), *(() if optioned is None else ((optioned, f"with `{_OPTIONS}` alone"),))]
    when = next((words for answer, words in told if answer.counted), None)
    return Finding(
        face=speaker.name,
        what="stream_usage",
        verdict="not seen" if when is None else "yes",
        confidence="guess" if when is None else "sure",
        detail=when or "",
        evidence=tuple(answer.evidence for answer, _ in told),
    )


def _options(speaker: DialectClient, answer: ProbeAnswer) -> Finding:
    taken = answer.outcome == "answered"
    refused = answer.outcome == "refused" or (answer.outcome == "failing" and answer.status > 0)
    sets: JSONObject = {"stream_usage": taken} if taken or refused else {}
    sure = answer.counted or (answer.failure is not None and _OPTIONS in answer.failure.message)
    return Finding(
        face=speaker.name,
        what=_OPTIONS,
        verdict="yes" if taken else "no" if refused else "unclear",
        confidence="sure" if sure else "likely",
        detail="" if answer.counted or not taken else "taken, and no usage came",
        evidence=(answer.evidence,),
        sets=sets,
    )
