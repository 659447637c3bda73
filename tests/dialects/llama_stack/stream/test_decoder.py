"""Streams of the chat record, read: whole traces."""

import pytest

from tests.dialects.llama_stack.wire import START, call, progress, read, text
from xenoglot.dialects.llama_stack.tool_calls import derived_id
from xenoglot.model.content import Extra, Logprob, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Finish, FinishReason

TEXT = BlockStarted(part=Text(text=""))
DONE = text("", "complete", stop_reason="end_of_turn")
NOW: JSONObject = {"call_id": "1", "tool_name": "now", "arguments": {"a": 1}, "arguments_json": '{"a": 1}'}


def words(*pieces: str) -> list[Event]:
    return [TEXT, *(TextDelta(text=piece) for piece in pieces), BlockEnded()]


def a_call(call_id: str, name: str, arguments: str) -> list[Event]:
    part = ToolCall(id=call_id, name=name)
    return [BlockStarted(part=part), ArgumentsDelta(text=arguments), BlockEnded()]


def done(reason: FinishReason, raw: str | None = "end_of_turn") -> Finished:
    return Finished(finish=Finish(reason=reason, raw=raw, dialect="llama_stack"))


def test_l17_l18_words() -> None:
    """L8, L17, L18: the start, words, the end; a text is where the delta says it is."""
    assert read(START, text("He"), text("llo"), DONE) == [Started(), *words("He", "llo"), done("stop")]


def test_l17_a_call_in_parts() -> None:
    """L17, L18: pieces are signs of life until the call is parsed."""
    stream = (START, call("", "started"), call("now(", "in_progress"), call(NOW, "succeeded"), DONE)
    assert read(*stream) == [Started(), Ping(), Ping(), *a_call("1", "now", '{"a": 1}'), done("tool_calls")]


def test_l18_words_before_calls() -> None:
    """L18: words and calls in the order in which they came."""
    other = {"call_id": "", "tool_name": "later", "arguments": {"b": 2}}
    stream = (START, text("I look."), call(NOW, "succeeded"), call(other, "succeeded"), text("So."), DONE)
    said = Extra(dialect="llama_stack", form={"wire": {"arguments": {"b": 2}}})
    later = ToolCall(id=derived_id(1, "later", '{"b":2}'), name="later", extra=said)
    assert read(*stream) == [
        Started(),
        *words("I look."),
        *a_call("1", "now", '{"a": 1}'),
        BlockStarted(part=later),
        ArgumentsDelta(text='{"b":2}'),
        BlockEnded(),
        *words("So."),
        done("tool_calls"),
    ]


@pytest.mark.parametrize(
    ("pieces", "failure", "told"),
    [(["<|python_tag|>", "now("], "<|python_tag|>now(", "<|python_tag|>now("), (["now", "("], "", "now(")],
)
def test_l17_a_call_that_failed(pieces: list[str], failure: str, told: str) -> None:
    """L17, L11, L-W6: what could not be parsed is words, told once."""
    stream = [
        START,
        call("", "started"),
        *(call(piece, "in_progress") for piece in pieces),
        call(failure, "failed"),
        DONE,
    ]
    assert read(*stream) == [Started(), Ping(), *[Ping()] * len(pieces), *words(told), done("stop")]


def test_l17_a_call_that_came_to_nothing() -> None:
    """L17: pieces of which nothing came are not lost either."""
    assert read(START, call("now(", "in_progress"), DONE) == [Started(), Ping(), *words("now("), done("stop")]


def test_w9_a_whole_call_that_failed() -> None:
    """L-W9: a call is a call, whatever its arguments are."""
    bad = {"call_id": "1", "tool_name": "now", "arguments": "not JSON", "arguments_json": "not JSON"}
    assert read(START, call(bad, "failed"), DONE) == [Started(), *a_call("1", "now", "not JSON"), done("tool_calls")]


@pytest.mark.parametrize(
    ("stops", "last", "finish"),
    [
        (["out_of_tokens", None], None, done("length", "out_of_tokens")),
        (["end_of_turn"], "out_of_tokens", done("length", "out_of_tokens")),
        ([None], None, done("unknown", None)),
    ],
)
def test_w1_the_reason_is_not_forgotten(stops: list[str | None], last: str | None, finish: Finished) -> None:
    """L16, L-W1: the last reason that was told counts; an event without one changes nothing."""
    stream = [START, *(text("a", stop_reason=stop) for stop in stops), text("", "complete", stop_reason=last)]
    assert read(*stream) == [Started(), *words(*"a" * len(stops)), finish]


def test_w3_words_at_the_end() -> None:
    """L-W3: words beside the end are words."""
    assert read(START, text("Hi", "complete", stop_reason="end_of_turn")) == [Started(), *words("Hi"), done("stop")]


def test_w4_markers_are_words() -> None:
    """L-W4: the dialect's servers take markers out; what is left in is the model's."""
    assert read(START, text("hello<|eot_id|>"), DONE) == [Started(), *words("hello<|eot_id|>"), done("stop")]


def test_l18_probabilities_travel_with_their_words() -> None:
    """L15, L18."""
    events = read(START, text("ab", logprobs=[{"logprobs_by_token": {"ab": -0.5}}]), DONE)
    one = Logprob(token="ab", logprob=-0.5)
    delta = TextDelta(text="ab", logprobs=(Logprob(token="ab", logprob=-0.5, top=(one,)),))
    assert events == [Started(), TEXT, delta, BlockEnded(), done("stop")]


def test_metrics_may_come_late() -> None:
    """L-W12: counts beside the end, or behind it."""
    metrics = [{"metric": "prompt_tokens", "value": 3}]
    beside = read(START, {**DONE, "metrics": metrics})
    behind = read(START, DONE, {"event": None, "metrics": metrics})
    assert [type(event) for event in beside] == [Started, UsageReported, Finished]
    assert [type(event) for event in behind] == [Started, Finished, UsageReported]


def test_s6_what_nobody_knows_is_carried() -> None:
    """L-S6: a kind of delta, a kind of event, a field; and words are words all the same."""
    reasoning = progress({"type": "reasoning", "reasoning": "hm"})
    beat = text("", "heartbeat")
    events = read(START, reasoning, text("Hi", x_new=1), beat, DONE)
    assert events == [
        Started(),
        OpaqueDelta(dialect="llama_stack", data=reasoning, name="event"),
        TEXT,
        TextDelta(text="Hi"),
        OpaqueDelta(dialect="llama_stack", data=text("", x_new=1), name="event"),
        OpaqueDelta(dialect="llama_stack", data=beat, name="heartbeat"),
        BlockEnded(),
        done("stop"),
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([START, text("Hi")], "connection lost: the upstream's stream ended without being complete"),
        ([START, b"{"], "the upstream's stream is malformed: $: not valid JSON: Input data was truncated"),
        ([{"choices": []}], "the upstream's stream is malformed: $.event: required, expected object"),
        (
            [text("Hi", "progress") | {"event": {}}],
            "the upstream's stream is malformed: $.event.event_type: required, expected str",
        ),
        ([progress({})], "the upstream's stream is malformed: $.event.delta.type: expected str, got null"),
    ],
)
def test_w2_broken_streams_fail(items: list[JSON | bytes], message: str) -> None:
    """L-W2, L-W12, C-W11, pitfall-103: in words, and never as an answer."""
    *_, last = read(*items)
    assert last == Failed(failure=Failure(kind="upstream", message=message))


def test_w1_errors_in_a_stream() -> None:
    """C-W1, pitfall-104: an error event ends the stream; nothing behind it counts."""
    *before, last = read(START, text("Hi"), {"error": {"message": "504: Operation timed out: x"}}, text("more"), DONE)
    assert before == [Started(), TEXT, TextDelta(text="Hi")]
    assert isinstance(last, Failed)
    assert (last.failure.kind, last.failure.status, last.failure.message) == ("timeout", 504, "Operation timed out: x")
