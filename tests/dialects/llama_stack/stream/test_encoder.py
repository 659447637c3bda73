"""Streams of the chat record, written: whole traces."""

from tests.dialects.llama_stack.wire import START, call, progress, text, written
from xenoglot.model.content import Image, Inline, Opaque, Reasoning, Refusal, Remote, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish, Usage

DONE = Finished(finish=Finish(reason="stop"))
END = text("", "complete", stop_reason="end_of_turn")
CALL = BlockStarted(part=ToolCall(id="1", name="now"))


def test_words_and_counts() -> None:
    """L18: the start, a piece of text in each event, the end with the counts, though they came behind it."""
    events: list[Event] = [
        Started(),
        Ping(),
        BlockStarted(part=Text(text="A")),
        TextDelta(text="B"),
        TextDelta(text=""),
        BlockEnded(),
        DONE,
        UsageReported(usage=Usage(input_tokens=1)),
    ]
    metrics = [{"metric": "prompt_tokens", "value": 1, "unit": "tokens"}]
    assert written(events) == ([START, ": ping", text("A"), text("B"), {**END, "metrics": metrics}], [])


def test_l18_calls() -> None:
    """L18, L-W5: a call starts, grows as text that begins with its name, and comes whole."""
    events: list[Event] = [Started(), CALL, ArgumentsDelta(text='{"a":'), ArgumentsDelta(text="1}"), BlockEnded(), DONE]
    whole = {"call_id": "1", "tool_name": "now", "arguments": {"a": 1}, "arguments_json": '{"a":1}'}
    assert written(events)[0] == [
        START,
        call("", "started"),
        call("now(", "in_progress"),
        call('{"a":', "in_progress"),
        call("1}", "in_progress"),
        call(")", "in_progress"),
        call(whole, "succeeded"),
        END,
    ]


def test_w6_calls_without_arguments_and_with_bad_ones() -> None:
    """L-W6, L-W9: no arguments are an empty object; bad ones fail, and are told all the same."""
    bad = BlockStarted(part=ToolCall(id="2", name="b", arguments="not JSON"))
    frames, losses = written([Started(), CALL, BlockEnded(), bad, BlockEnded(), DONE])
    assert [frame for frame in frames if "tool_name" in str(frame)] == [
        call({"call_id": "1", "tool_name": "now", "arguments": {}, "arguments_json": "{}"}, "succeeded"),
        call({"call_id": "2", "tool_name": "b", "arguments": "not JSON", "arguments_json": "not JSON"}, "failed"),
    ]
    assert losses == []


def test_other_parts() -> None:
    """L-W12: an image by its bytes, a refusal in words, thoughts not at all."""
    events: list[Event] = [
        Started(id="r"),
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="hm"),
        BlockEnded(),
        BlockStarted(part=Image(source=Inline("QUJD"))),
        BlockEnded(),
        BlockStarted(part=Image(source=Remote(url="https://example.com/i.png"))),
        BlockEnded(),
        BlockStarted(part=Refusal(text="")),
        TextDelta(text="No."),
        BlockEnded(part=Refusal(text="No. Never.")),
        BlockStarted(part=Opaque(dialect="llama_stack", data={"type": "video"})),
        BlockEnded(),
        BlockStarted(part=Opaque(dialect="chat", data={}, text="x")),
        BlockEnded(),
        DONE,
    ]
    frames, losses = written(events)
    assert frames == [
        START,
        progress({"type": "image", "image": "QUJD"}),
        text("No."),
        text(" Never."),
        progress({"type": "video"}),
        text("x"),
        END,
    ]
    assert losses == [
        "$ id dropped (an answer of the dialect has no such field)",
        "$.candidates[0].content[0] reasoning dropped (the dialect has no field for reasoning)",
        "$.candidates[0].content[2] image dropped (a stream holds the bytes of an image only)",
        "$.candidates[0].content[3] refusal approximated (written as text)",
        "$.candidates[0] content approximated (its other content is written as text)",
        "$.candidates[0].finish reason approximated (only the text shows that the model refused)",
        "$.candidates[0].content[5] part approximated (written as text)",
    ]


def test_other_candidates_and_events() -> None:
    """L-W12: one candidate; what only its own dialect has is told."""
    beat = text("", "heartbeat")
    events: list[Event] = [
        Started(),
        OpaqueDelta(dialect="llama_stack", data=beat, name="heartbeat"),
        OpaqueDelta(dialect="chat", data={}),
        BlockStarted(part=Text(text="B"), candidate=1),
        DONE,
    ]
    assert written(events) == (
        [START, beat, END],
        [
            "$.candidates[0] event dropped (only chat has it)",
            "$.candidates candidate dropped (an answer of the dialect is one)",
        ],
    )


def test_failures() -> None:
    """pitfall-103, pitfall-104, pitfall-105: an error event, and nothing after it."""
    failure = Failure(kind="rate_limit", message="slow down")
    assert written([Started(), Failed(failure=failure), DONE])[0] == [START, {"error": {"message": "429: slow down"}}]
    assert written([Started()])[0] == [
        START,
        {"error": {"message": "502: connection lost: the upstream's stream ended without being complete"}},
    ]
