"""Probes of tools: whether they are called, required, called in parallel, and with which ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.request import ToolChoice
from xenoglot.providers.probe.ab_test import ProbeItem, hidden, run_ab_test
from xenoglot.providers.probe.dialect_client import make_message, parts_of
from xenoglot.providers.probe.findings import Finding, ProbeExchange
from xenoglot.providers.probe.probe_table import TOOLS, WEATHER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.providers.probe.ab_test import Effect
    from xenoglot.providers.probe.dialect_client import DialectClient
    from xenoglot.providers.probe.exchange import Conversation, ProbeAnswer
    from xenoglot.providers.probe.findings import Confidence, Verdict

LONG_ID: Final = "call_xenoglot-probe-0001"
NINE: Final = "xenoglot1"
LONG_NAME: Final = "get_weather_" + "x" * 88
"""A name of 100 characters: more than most dialects allow."""

_QUESTION: Final = "What is the weather in Paris? Use the tool."
_TWICE: Final = "What is the weather in Paris, and what in Rome? Call the tool for both at once."
_NINE: Final = re.compile(r"[A-Za-z0-9]{9}")
_HEAD: Final = re.compile(r"[A-Za-z]+[-_]")


def tools(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for calls, in each way."""
    request = speaker.request(_QUESTION, tools=(WEATHER,))
    body = speaker.encode(request, TOOLS)
    if body is None:
        return ()
    plain = speaker.encode(speaker.request(_QUESTION)) or {}
    taken = yield from run_ab_test(
        speaker,
        ProbeItem(
            what="tools",
            description="a question that a tool answers",
            body=body,
            plain=plain,
            named=("tool",),
            yes={"tools": True},
            no={"tools": False},
        ),
        calls,
    )
    found = [taken.finding]
    if taken.finding.verdict == "no":
        return tuple(found)
    for choice in ("required", "none"):
        found += yield from _chosen(speaker, choice, body, called=taken.finding.verdict == "yes")
    found += yield from _several(speaker)
    found += yield from _answered(speaker)
    found += yield from _long_name(speaker, body)
    return tuple(found)


def ids(speaker: DialectClient) -> Finding | None:
    """Return what the ids of calls look like, where any were seen."""
    seen = speaker.notes.call_ids
    if not seen:
        return None
    return Finding(
        face=speaker.name,
        what="tool_call_ids",
        verdict="yes",
        confidence="sure",
        detail=f"{form_of_ids(seen)}, such as `{seen[0]}`",
    )


def form_of_ids(seen: Sequence[str]) -> str:
    """Return in words what ids have in common."""
    if all(_NINE.fullmatch(one) for one in seen):
        return "nine letters and digits"
    heads = {"" if (found := _HEAD.match(one)) is None else found[0] for one in seen}
    lengths = sorted({len(one) for one in seen})
    length = f"{lengths[0]} characters" if lengths[0] == lengths[-1] else f"{lengths[0]} to {lengths[-1]} characters"
    head = heads.pop() if len(heads) == 1 else ""
    return f"`{head}` and more, {length}" if head else length


def calls(answer: ProbeAnswer) -> Effect:
    """Whether a tool is called."""
    return "seen" if _count(answer) else "not seen"


def calls_both(answer: ProbeAnswer) -> Effect:
    """Whether two tools are called at once."""
    return "seen" if _count(answer) > 1 else "not seen"


def calls_none(answer: ProbeAnswer) -> Effect:
    """Whether no tool is called, of a question at which one was called before."""
    return "contrary" if _count(answer) else "seen"


def _count(answer: ProbeAnswer) -> int:
    return sum(isinstance(part, ToolCall) for part in parts_of(answer))


def _chosen(speaker: DialectClient, mode: str, plain: JSONObject, *, called: bool) -> Conversation[tuple[Finding, ...]]:
    """Ask for a call that must be, or must not; `called` is whether the model called one without the option."""
    forced = mode == "required"
    choice = ToolChoice(mode="required" if forced else "none")
    body = speaker.encode(
        speaker.request(_QUESTION, tools=(WEATHER,), tool_choice=choice), ("tool_choice", "mode", *TOOLS)
    )
    if body is None:
        return ()
    sets: tuple[JSONObject, JSONObject] = ({"forced_tools": True}, {"forced_tools": False}) if forced else ({}, {})
    thing = ProbeItem(
        what="forced_tools" if forced else "tool_choice_none",
        description=f"a tool, and the choice `{mode}`",
        body=body,
        plain=plain,
        named=("tool_choice", "tool choice", mode),
        yes=sets[0],
        no=sets[1],
    )
    taken = yield from run_ab_test(speaker, thing, calls if forced else calls_none if called else hidden)
    return (taken.finding,)


def _several(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for two calls at once: what one model does not do, another may."""
    body = speaker.encode(speaker.request(_TWICE, tools=(WEATHER,)), TOOLS)
    if body is None:
        return ()
    answer = yield from speaker.post_with_retry(body, "a question that needs two calls")
    seen = answer.outcome == "answered" and calls_both(answer) == "seen"
    verdict: Verdict = "yes" if seen else "not seen" if answer.outcome == "answered" else "unclear"
    return (
        Finding(
            face=speaker.name,
            what="parallel_calls",
            verdict=verdict,
            confidence="sure" if seen else "guess",
            evidence=(answer.evidence,),
            scope="model",
        ),
    )


def _answered(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask with a call that is answered, by an id of our own form; where that is refused, by one of nine characters."""
    evidence: list[ProbeExchange] = []
    outcome: dict[str, str] = {}
    for call_id in (LONG_ID, NINE):
        body = _history(speaker, call_id)
        if body is None:
            return ()
        answer = yield from speaker.post_with_retry(body, f"a call with the id `{call_id}` and its result")
        evidence.append(answer.evidence)
        outcome[call_id] = answer.outcome
        if answer.outcome == "answered":
            break
    verdict, confidence, detail, sets = _accepted_form(outcome)
    if sets.get("tool_id") == "nine":  # or later questions would be refused for it
        speaker.target = replace(speaker.target, tool_id="nine")
    return (
        Finding(
            face=speaker.name,
            what="tool_results",
            verdict=verdict,
            confidence=confidence,
            detail=detail,
            evidence=tuple(evidence),
            sets=sets,
        ),
    )


def _accepted_form(outcome: dict[str, str]) -> tuple[Verdict, Confidence, str, JSONObject]:
    if outcome[LONG_ID] == "answered":
        return "yes", "sure", "", {"tool_id": "any"}
    if outcome.get(NINE) == "answered":
        return "yes", "sure", "the id of a call must be nine letters and digits", {"tool_id": "nine"}
    refused = {"refused", "absent"} & {*outcome.values()}
    return ("no", "likely", "", {}) if refused else ("unclear", "guess", "", {})


def _history(speaker: DialectClient, call_id: str) -> JSONObject | None:
    call = ToolCall(id=call_id, name=WEATHER.name, arguments='{"city":"Paris"}')
    result = ToolResult(call_id=call_id, name=WEATHER.name, content=(Text(text="Sunny, 21 degrees."),))
    turns = (
        make_message("user", "What is the weather in Paris?"),
        make_message("assistant", call),
        make_message("tool", result),
    )
    return speaker.encode(speaker.request(*turns, tools=(WEATHER,)), TOOLS)


def _long_name(speaker: DialectClient, plain: JSONObject) -> Conversation[tuple[Finding, ...]]:
    """Ask with a tool whose name is longer than the dialect allows."""
    limit = len(LONG_NAME)
    if speaker.dialect.tool_name_limit >= limit:
        return ()
    tool = replace(WEATHER, name=LONG_NAME)
    body = speaker.encode(speaker.request(_QUESTION, tools=(tool,)), ("name", *TOOLS), tool_name_limit=limit)
    if body is None:
        return ()
    thing = ProbeItem(
        what="long_tool_names",
        description=f"a tool with a name of {limit} characters",
        body=body,
        plain=plain,
        invalid_fields=(),
        named=("name", "length", "pattern", "long"),
    )
    taken = yield from run_ab_test(speaker, thing)
    finding = taken.finding
    if taken.answer.outcome == "answered":  # it read the name: nothing could be passed over
        finding = replace(finding, verdict="yes", confidence="likely", detail="", sets={"tool_name_limit": limit})
    return (finding,)
