"""Ids of calls for servers that take nine letters and digits: valid, distinct, alike on call and result."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.call_ids import MessageHistory, PendingCalls, nine_character_ids
from xenoglot.model.content import ToolCall, ToolResult
from xenoglot.model.request import Message

IDS = st.lists(st.text(max_size=12) | st.from_regex(r"[a-zA-Z0-9]{9}", fullmatch=True), max_size=8)


def history(ids: list[str]) -> list[Message]:
    """One call and one result for each id."""
    return [
        Message(role="assistant", content=tuple(ToolCall(id=name, name="f") for name in ids)),
        Message(role="tool", content=tuple(ToolResult(call_id=name) for name in ids)),
    ]


def made(ids: list[str]) -> tuple[list[str], list[str]]:
    calls, results = nine_character_ids(history(ids), Losses())
    return (
        [part.id for part in calls.content if isinstance(part, ToolCall)],
        [part.call_id for part in results.content if isinstance(part, ToolResult)],
    )


@given(IDS)
def test_pitfall_42_valid_distinct_and_alike(ids: list[str]) -> None:
    calls, results = made(ids)
    assert calls == results
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", name) for name in calls)
    assert len(set(calls)) == len(set(ids))


@given(IDS)
def test_pitfall_42_what_fits_stays(ids: list[str]) -> None:
    calls, _ = made(ids)
    assert made(calls)[0] == calls
    assert all(
        made_id == name for made_id, name in zip(calls, ids, strict=True) if re.fullmatch("[a-zA-Z0-9]{9}", name)
    )


@given(IDS, st.text(max_size=12))
def test_pitfall_42_the_same_in_the_next_request(ids: list[str], further: str) -> None:
    """A prompt that begins as the last one did is found in the cache of the server."""
    assert made([*ids, further])[0][: len(ids)] == made(ids)[0]


def test_the_last_call_before_a_result() -> None:
    """Each message is looked at once, however many results ask."""
    before = MessageHistory()
    asked = [before.last_call("f")]
    for ids, name in ((["a", "b"], "f"), (["c"], "g"), (["d"], "f")):
        calls = tuple(ToolCall(id=each, name=name) for each in ids)
        before.messages.append(Message(role="assistant", content=calls))
        asked += [before.last_call("f"), before.last_call("g"), before.last_call(None)]
    assert asked == [None, "b", None, "b", "b", "c", "c", "d", "c", "d"]


def test_results_find_their_calls_by_id_by_name_and_in_order() -> None:
    waiting = PendingCalls()
    for call_id, name in [("1", "f"), ("2", "g"), ("3", "f"), ("3", "f"), ("4", "g")]:
        waiting.add(call_id, name)
    assert [waiting.answer("3"), waiting.first("g"), waiting.first(), waiting.first("f"), waiting.first()] == [
        True,
        "2",
        "1",
        "3",
        "4",
    ]
    assert [waiting.first(), waiting.first("f"), waiting.first("h"), waiting.answer("3")] == [None, None, None, False]
    waiting.add("5", "f")
    waiting.clear()
    assert waiting.first() is None
