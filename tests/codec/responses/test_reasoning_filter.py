"""The filter of reasoning: what it removes, of which candidate, and that streams and whole answers agree."""

from __future__ import annotations

import pytest

from xenoglot import stream_translator, translate_response
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.responses.reasoning import ReasoningFilter, reasoning_filter
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get, names
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    SignatureDelta,
    TextDelta,
)
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Request, Thinking
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.testing import answers

DONE = Finish(reason="stop")
THOUGHT = Reasoning(text="hm", signature="s")
CALL = ToolCall(id="c", name="f", arguments="{}")
TWO = Response(
    id="1",
    candidates=(
        Candidate(content=(THOUGHT, Text(text="a"), Reasoning(text="more"), CALL), finish=DONE),
        Candidate(content=(Text(text="b"), THOUGHT), finish=DONE),
    ),
)
BARE = Response(
    id="1",
    candidates=(
        Candidate(content=(Text(text="a"), CALL), finish=DONE),
        Candidate(content=(Text(text="b"),), finish=DONE),
    ),
)
LOST = [f"$.candidates[{index}] reasoning dropped (the client did not ask for it)" for index in (0, 1)]


def test_streams_and_whole_answers_lose_the_same() -> None:
    streamed, whole = Losses(), Losses()
    assert fold(through(unfold(TWO), ReasoningFilter(streamed))) == BARE
    assert ReasoningFilter(whole).response(TWO) == BARE
    assert [*map(str, streamed)] == [*map(str, whole)] == LOST
    assert ReasoningFilter(whole).response(BARE) is BARE


def test_only_reasoning_of_the_open_candidate_is_removed() -> None:
    passed: list[Event] = [
        Ping(),
        OpaqueDelta(dialect="d", data={}),
        ReasoningDelta("x", candidate=1),
        SignatureDelta(signature="x", candidate=1),
        BlockEnded(candidate=1),
        TextDelta("x", candidate=1),
    ]
    stage = ReasoningFilter(Losses())
    assert stage.feed(BlockStarted(part=Reasoning(text=""))) == ()
    assert [event for one in passed for event in stage.feed(one)] == passed
    assert [
        *stage.feed(ReasoningDelta("x")),
        *stage.feed(SignatureDelta(signature="x")),
        *stage.feed(BlockEnded()),
    ] == []
    assert stage.feed(BlockEnded()) == (BlockEnded(),)


def test_it_is_asked_at_each_block_whether_it_applies() -> None:
    applies = iter([True, False])
    stage = ReasoningFilter(Losses(), lambda: next(applies))
    response = Response(candidates=(Candidate(content=(THOUGHT, Text(text="a"), Reasoning(text="more")), finish=DONE),))
    told = fold(through(unfold(response), stage))
    assert isinstance(told, Response)
    assert told.candidates[0].content == (Text(text="a"), Reasoning(text="more"))


@pytest.mark.parametrize("name", names())
def test_dialects_without_a_field_of_their_own_return_reasoning_on_request(name: str) -> None:
    on_request = name in ("gemini", "messages")
    assert (reasoning_filter(get(name), Request(model="m"), Losses()) is not None) == on_request
    off = Request(model="m", thinking=Thinking(mode="disabled"))
    declinable = on_request or name in ("ollama", "ollama_generate")
    assert (reasoning_filter(get(name), off, Losses()) is not None) == declinable


@pytest.mark.parametrize("thinking", [None, Thinking(mode="adaptive")], ids=["not-asked", "asked"])
def test_translations_that_know_the_request_follow_it(thinking: Thinking | None) -> None:
    answer = answers("chat", reasoning="hm")
    request = Request(model="m", stream=True, thinking=thinking)
    whole = translate_response(decode_json(answer.body), "chat", "messages", request=request)
    streamed = b"".join(through([answer.stream], stream_translator("chat", "messages", request=request)))
    kinds = [block["type"] for block in whole["content"]]
    assert kinds == (["text"] if thinking is None else ["thinking", "text"])
    assert (b"thinking" in streamed) == (thinking is not None)
    assert translate_response(decode_json(answer.body), "chat", "messages")["content"][0]["type"] == "thinking"
