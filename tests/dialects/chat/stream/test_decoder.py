"""Streams of chat servers become events: whole traces, and failures that nobody dresses up."""

import pytest

from tests.dialects.chat.wire import HEAD, chunk, read
from xenoglot.dialects.chat.tool_calls import derived_id
from xenoglot.model.content import Extra, Opaque, Origin, Reasoning, Text, ToolCall
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
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON
from xenoglot.model.response import Finish, FinishReason, Usage

STARTED = Started(id="chatcmpl-1", model="m", created=7)
STOP = Finished(finish=Finish(reason="stop", raw="stop", dialect="chat"))
CALLS = Finished(finish=Finish(reason="tool_calls", raw="tool_calls", dialect="chat"))
TEXT = BlockStarted(part=Text(text=""))


def call(index: int, call_id: str | None = None, name: str | None = None, arguments: str | None = None) -> JSON:
    function = {"name": name, "arguments": arguments}
    entry = {"index": index, "function": {key: value for key, value in function.items() if value is not None}}
    return entry if call_id is None else {**entry, "id": call_id, "type": "function"}


def calls(*entries: JSON) -> JSON:
    return chunk({"tool_calls": list(entries)})


def block(call_id: str, name: str, *arguments: str) -> list[Event]:
    deltas = [ArgumentsDelta(text=text) for text in arguments]
    return [BlockStarted(part=ToolCall(id=call_id, name=name)), *deltas, BlockEnded()]


@pytest.mark.parametrize(
    ("chunks", "events"),
    [
        pytest.param(
            [chunk({"role": "assistant", "content": "a"}), chunk({"content": "b"}), chunk({}, "stop")],
            [TEXT, TextDelta(text="a"), TextDelta(text="b"), BlockEnded(), STOP],
            id="pitfall-109-text",
        ),
        pytest.param(
            [chunk({"reasoning_content": "t"}), chunk({"content": "a"}), chunk({}, "stop")],
            [
                BlockStarted(part=Reasoning(text="")),
                ReasoningDelta(text="t"),
                BlockEnded(),
                TEXT,
                TextDelta(text="a"),
                BlockEnded(),
                STOP,
            ],
            id="pitfall-76-88-reasoning-then-text",
        ),
        pytest.param(
            [
                calls(call(0, "a", "f", "")),
                calls(call(0, None, None, "{")),
                calls(call(0, None, None, "}")),
                chunk({}, "tool_calls"),
            ],
            [*block("a", "f", "{", "}"), CALLS],
            id="pitfall-95-arguments-in-pieces",
        ),
        pytest.param(
            [
                calls(call(0, "a", "f", '{"x"'), call(1, "b", "g", '{"y"')),
                calls(call(0, None, None, ":1}")),
                calls(call(1, None, None, ":2}")),
                chunk({}, "tool_calls"),
            ],
            [*block("a", "f", '{"x"', ":1}"), *block("b", "g", '{"y"', ":2}"), CALLS],
            id="pitfall-89-90-U32-interleaved",
        ),
        pytest.param(
            [calls(call(0, "a", "f", "{}")), calls(call(0, "b", "g", "{}")), chunk({}, "tool_calls")],
            [*block("a", "f", "{}"), *block("b", "g", "{}"), CALLS],
            id="pitfall-93-same-index",
        ),
        pytest.param(
            [calls(call(-1, "a", "f", "{}")), calls(call(-1, "b", "g", "{}")), chunk({}, "tool_calls")],
            [*block("a", "f", "{}"), *block("b", "g", "{}"), CALLS],
            id="F-W6-negative-index",
        ),
        pytest.param(
            [calls(call(0, None, "f", '{"x":1}')), calls(call(0, None, "f", '{"x":2}')), chunk({}, "tool_calls")],
            [
                *block(derived_id("chatcmpl-1:0", 0), "f", '{"x":1}'),
                *block(derived_id("chatcmpl-1:0", 1), "f", '{"x":2}'),
                CALLS,
            ],
            id="U30-no-ids",
        ),
        pytest.param(
            [calls(call(0, "a", "f", "{}")), calls(call(1, "a", "g", "{}")), chunk({}, "tool_calls")],
            [*block("a", "f", "{}"), *block(derived_id("chatcmpl-1:0", 1), "g", "{}"), CALLS],
            id="U30-one-id-twice",
        ),
        pytest.param(
            [
                calls(call(0, "a", "get_")),
                calls(call(0, "a", "weather")),
                calls(call(0, "a", None, "{}")),
                chunk({}, "tool_calls"),
            ],
            [*block("a", "get_weather", "{}"), CALLS],
            id="pitfall-92-name-in-pieces",
        ),
        pytest.param(
            [calls(call(0, "a", None, '{"x"')), calls(call(0, None, "f", ":1}")), chunk({}, "tool_calls")],
            [*block("a", "f", '{"x"', ":1}"), CALLS],
            id="pitfall-92-name-late",
        ),
        pytest.param(
            [calls(call(0, "a", "f")), chunk({}, "tool_calls")],
            [*block("a", "f", "{}"), CALLS],
            id="pitfall-94-no-arguments",
        ),
        pytest.param(
            [
                calls(call(0, "a", "f", '{"x"')),
                chunk({"content": "w"}),
                calls(call(0, None, None, ":1}")),
                chunk({}, "tool_calls"),
            ],
            [*block("a", "f", '{"x"', ":1}"), TEXT, TextDelta(text="w"), BlockEnded(), CALLS],
            id="pitfall-96-text-in-a-call",
        ),
        pytest.param(
            [calls(call(0, "a", "f", "{}")), chunk({}, "stop")],
            [*block("a", "f", "{}"), Finished(finish=Finish(reason="tool_calls", raw="stop", dialect="chat"))],
            id="pitfall-69-stop-beside-a-call",
        ),
        pytest.param(
            [chunk({"content": "a"}), chunk({}, "stop", stop_reason="END")],
            [
                TEXT,
                TextDelta(text="a"),
                BlockEnded(),
                Finished(finish=Finish(reason="stop_sequence", raw="stop", dialect="chat", stop_sequence="END")),
            ],
            id="pitfall-70-stop-string",
        ),
        pytest.param(
            [chunk({"content": "a"}), chunk({}, "weird")],
            [
                TEXT,
                TextDelta(text="a"),
                BlockEnded(),
                Finished(finish=Finish(reason="unknown", raw="weird", dialect="chat")),
            ],
            id="U34-unknown-finish",
        ),
        pytest.param(
            [chunk({"content": "a"}), b"", chunk({}, "stop")],
            [TEXT, TextDelta(text="a"), Ping(), BlockEnded(), STOP],
            id="U21-empty-data",
        ),
        pytest.param(
            [chunk({"content": "a", "x": 1}), chunk({}, "stop")],
            [
                TEXT,
                TextDelta(text="a"),
                OpaqueDelta(dialect="chat", data={"choices": [{"index": 0, "delta": {"x": 1}, "finish_reason": None}]}),
                BlockEnded(),
                STOP,
            ],
            id="pitfall-115-unknown-field",
        ),
    ],
)
def test_traces(chunks: list[JSON], events: list[Event]) -> None:
    assert read(*chunks) == [STARTED, *events]


def test_usage_is_the_last_snapshot() -> None:
    """pitfall-97, pitfall-98, C-W5: cumulative on every chunk; the last one has no choices."""
    trace = read(
        chunk({"content": "a"}) | {"usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}},
        chunk({}, "stop"),
        {**HEAD, "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}},
    )
    counts = [event.usage for event in trace if isinstance(event, UsageReported)]
    assert counts == [Usage(input_tokens=5, output_tokens=1), Usage(input_tokens=5, output_tokens=2)]
    assert trace[-1] == STOP


def test_a_seal_that_comes_last_belongs_to_the_open_thought() -> None:
    """pitfall-50: said in a string while it grew, and again in a list, with its seal."""
    detail = {"type": "reasoning.text", "text": "ab", "signature": "s", "format": "anthropic-claude-v1", "index": 0}
    chunks = [chunk({"reasoning": "a"}), chunk({"reasoning": "b"}), chunk({"reasoning_details": [detail]})]
    form = {"fields": ["reasoning"]}
    listed = {"list": "reasoning_details", "type": "reasoning.text", "format": "anthropic-claude-v1"}
    whole = Reasoning(
        text="ab",
        signature="s",
        origin=Origin(dialect="messages"),
        extra=Extra(dialect="chat", form={**listed, "index": {"index": 0}, **form}),
    )
    assert read(*chunks, chunk({}, "stop")) == [
        STARTED,
        BlockStarted(part=Reasoning(text="", extra=Extra(dialect="chat", form=form))),
        ReasoningDelta(text="a"),
        ReasoningDelta(text="b"),
        BlockEnded(part=whole),
        STOP,
    ]


def test_a_list_beside_a_string_is_the_same_thought() -> None:
    """pitfall-76: OpenRouter says each piece twice; what it lists under an unknown type is carried."""
    form = {"list": "reasoning_details", "type": "reasoning.text", "index": {"index": 0}, "fields": ["reasoning"]}
    new = {"type": "reasoning.new", "x": 1}

    def detail(**fields: str) -> JSON:
        return {"type": "reasoning.text", **fields, "index": 0}

    assert read(
        chunk({"reasoning": "a", "reasoning_details": [detail(text="a")]}),
        chunk({"reasoning_details": [detail(signature="s"), new]}),
        chunk({}, "stop"),
    ) == [
        STARTED,
        BlockStarted(part=Reasoning(text="", extra=Extra(dialect="chat", form=form))),
        ReasoningDelta(text="a"),
        SignatureDelta(signature="s"),
        BlockEnded(),
        BlockStarted(part=Opaque(dialect="chat", data={"reasoning_details": [new]})),
        BlockEnded(),
        STOP,
    ]


EARLY = Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")


def unreadable(reason: str) -> Failure:
    return Failure(kind="upstream", message=f"server error: the upstream's stream cannot be read: {reason}")


def assumed(reason: FinishReason) -> Finished:
    return Finished(finish=Finish(reason=reason, dialect="chat", assumed=True))


@pytest.mark.parametrize(
    ("items", "events"),
    [
        pytest.param([chunk({"content": "a"})], [TEXT, TextDelta(text="a"), BlockEnded(), assumed("stop")], id="words"),
        pytest.param([calls(call(0, "a", "f", "{}"))], [*block("a", "f", "{}"), assumed("tool_calls")], id="a-call"),
    ],
)
def test_u15_done_ends_an_answer_without_a_reason(items: list[JSON], events: list[Event]) -> None:
    """findings-A4."""
    assert read(*items)[1:] == events


ERROR = {"message": "boom", "type": "server_error", "param": None, "code": None}
BOOM = Failure(kind="internal", message="boom", dialect="openai", raw_type="server_error", details=ERROR)


@pytest.mark.parametrize(
    ("items", "done", "failure"),
    [
        pytest.param([], True, EARLY, id="U15-nothing-but-done"),
        pytest.param([], False, EARLY, id="U14-nothing"),
        pytest.param([chunk({"role": "assistant"})], True, EARLY, id="pitfall-103-U15-no-finish-and-no-words"),
        pytest.param([calls(call(0, "a", "f", "{"))], True, EARLY, id="U15-no-finish-and-half-a-call"),
        pytest.param([chunk({"content": "a"})], False, EARLY, id="pitfall-104-U14-cut"),
        pytest.param([chunk({"content": "a"}), {"error": ERROR}], True, BOOM, id="pitfall-105-U22-error-chunk"),
        pytest.param(
            [chunk({"content": 1})],
            True,
            unreadable("$.choices[0].delta.content: expected str or list, got int"),
            id="U17-wrong-type",
        ),
        pytest.param([b"[1]"], True, unreadable("$: expected object, got list"), id="U17-no-object"),
        pytest.param([{"choices": 1}], True, unreadable("$.choices: expected list, got int"), id="U17-choices"),
        pytest.param(
            [chunk({}) | {"choices": [{"index": 10**9}]}],
            True,
            unreadable("$.choices[0].index: must be less than 128"),
            id="U32-index",
        ),
        pytest.param(
            [calls(call(0, "a", None, "{}")), chunk({}, "stop")],
            True,
            unreadable("$.choices: a tool call has no name"),
            id="C11-no-name",
        ),
    ],
)
def test_failures(items: list[JSON], done: bool, failure: Failure) -> None:  # noqa: FBT001  a column of the table
    assert read(*items, done=done)[-1] == Failed(failure=failure)


def test_nothing_follows_a_failure_or_an_end() -> None:
    """U16: events behind the end are ignored."""
    assert read(b"{", chunk({"content": "a"}, "stop"))[:1] == read(b"{")
    assert read(chunk({"content": "a"}, "stop"), b"[DONE]", chunk({"content": "b"})) == read(
        chunk({"content": "a"}, "stop")
    )


def test_a_broken_chunk_leaks_nothing() -> None:
    """U17: the failure tells what is wrong, not what was said."""
    (failed,) = read(b'{"secret": "sk-1234", ')
    assert isinstance(failed, Failed)
    assert "sk-1234" not in failed.failure.message


def test_half_a_surrogate_pair_becomes_a_replacement() -> None:
    """pitfall-129: servers cut text between the two."""
    raw = b'{"choices":[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":"stop"}]}'
    assert read(raw) == [Started(), TEXT, TextDelta(text="\ufffd"), BlockEnded(), STOP]


def test_learned_bytes_say_the_same_as_parsed_ones() -> None:
    """A chunk between learned bytes, one with other bytes around the text, and one whose text is escaped."""
    texts = ["a", "b", '"', "\u00e9", "\\", ""]
    head = chunk({"role": "assistant", "content": ""})
    plain = [chunk({"content": text}) for text in texts]
    spaced = [item | {"x": None} for item in plain]
    expected = [STARTED, TEXT, *(TextDelta(text=text) for text in texts if text), BlockEnded(), STOP]
    assert read(head, *plain, chunk({}, "stop")) == expected
    assert read(head, *spaced, chunk({}, "stop")) == expected
