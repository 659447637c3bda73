"""Streams of the wire, event by event."""

import pytest

from tests.dialects.messages.wire import END, START, read
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.dialects.messages import MESSAGES
from xenoglot.model.content import Extra, HostedCall, Opaque, Origin, Reasoning, Text, ToolCall
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
from xenoglot.model.json import JSONObject
from xenoglot.model.response import Finish, FinishReason, Usage

HEAD: list[Event] = [Started(id="msg_1", model="m"), UsageReported(usage=Usage(input_tokens=3, output_tokens=1))]


def tail(reason: FinishReason = "stop") -> list[Event]:
    return [
        UsageReported(usage=Usage(input_tokens=3, output_tokens=5)),
        Finished(finish=Finish(reason=reason, raw="end_turn", dialect="messages")),
    ]


def opens(index: int, **block: object) -> JSONObject:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grows(index: int, kind: str, **delta: object) -> JSONObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def ends(index: int) -> JSONObject:
    return {"type": "content_block_stop", "index": index}


TEXT = BlockStarted(part=Text(text=""))
OWN = Reasoning(text="", origin=Origin(dialect="messages"))


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        pytest.param(
            [opens(0, type="text", text=""), {"type": "ping"}, grows(0, "text_delta", text="a"), ends(0)],
            [TEXT, Ping(), TextDelta(text="a"), BlockEnded(), *tail()],
            id="pitfall-84-107-text-and-ping",
        ),
        pytest.param(
            [
                opens(0, type="thinking", thinking="", signature=""),
                grows(0, "thinking_delta", thinking="h"),
                grows(0, "signature_delta", signature="s"),
                ends(0),
            ],
            [BlockStarted(part=OWN), ReasoningDelta(text="h"), SignatureDelta(signature="s"), BlockEnded(), *tail()],
            id="pitfall-106-sealed",
        ),
        pytest.param(
            [
                opens(0, type="thinking", thinking="h", signature=""),
                grows(0, "signature_delta", signature="xenoglot:unsigned"),
                ends(0),
            ],
            [BlockStarted(part=OWN), ReasoningDelta(text="h"), BlockEnded(part=Reasoning(text="h")), *tail()],
            id="pitfall-77-our-tag",
        ),
        pytest.param(
            [
                opens(0, type="tool_use", id="c", name="f", input={}),
                grows(0, "input_json_delta", partial_json=""),
                grows(0, "input_json_delta", partial_json='{"a": "\\ud83d'),
                grows(0, "input_json_delta", partial_json='\\ude00"}'),
                ends(0),
            ],
            [
                BlockStarted(part=ToolCall(id="c", name="f")),
                ArgumentsDelta(text='{"a": "\\ud83d'),
                ArgumentsDelta(text='\\ude00"}'),
                BlockEnded(),
                *tail("tool_calls"),
            ],
            id="pitfall-69-95-arguments",
        ),
        pytest.param(
            [opens(0, type="tool_use", id="c", name="f", input={"a": 1}), ends(0)],
            [
                BlockStarted(part=ToolCall(id="c", name="f")),
                ArgumentsDelta(text='{"a":1}'),
                BlockEnded(),
                *tail("tool_calls"),
            ],
            id="U31-whole-input-at-the-start",
        ),
        pytest.param(
            [
                opens(0, type="tool_use", id="c", name="f", input={}),
                opens(1, type="tool_use", id="d", name="g", input={}),
                grows(1, "input_json_delta", partial_json='{"b":'),
                grows(0, "input_json_delta", partial_json="{}"),
                ends(0),
                grows(1, "input_json_delta", partial_json="2}"),
                ends(1),
            ],
            [
                BlockStarted(part=ToolCall(id="c", name="f")),
                ArgumentsDelta(text="{}"),
                BlockEnded(),
                BlockStarted(part=ToolCall(id="d", name="g")),
                ArgumentsDelta(text='{"b":'),
                ArgumentsDelta(text="2}"),
                BlockEnded(),
                *tail("tool_calls"),
            ],
            id="pitfall-86-89-U32-interleaved",
        ),
        pytest.param(
            [opens(0, type="text", text="a"), opens(1, type="text", text="b")],
            [TEXT, TextDelta(text="a"), BlockEnded(), TEXT, TextDelta(text="b"), BlockEnded(), *tail()],
            id="pitfall-86-never-closed",
        ),
        pytest.param(
            [
                opens(0, type="tool_use", id="c", name="f", input={}),
                grows(0, "text_delta", text="o"),
                grows(0, "text_delta", text="h"),
                ends(0),
            ],
            [
                BlockStarted(part=ToolCall(id="c", name="f")),
                BlockEnded(),
                TEXT,
                TextDelta(text="oh"),
                BlockEnded(),
                *tail("tool_calls"),
            ],
            id="pitfall-96-text-in-a-call",
        ),
        pytest.param(
            [
                opens(0, type="server_tool_use", id="s", name="web_search", input={}),
                grows(0, "input_json_delta", partial_json='{"query": "q"}'),
                ends(0),
            ],
            [
                BlockStarted(part=HostedCall(id="s", kind="web_search")),
                ArgumentsDelta(text='{"query": "q"}'),
                BlockEnded(),
                *tail(),
            ],
            id="pitfall-30-server-tool",
        ),
        pytest.param(
            [
                opens(0, type="server_tool_use", id="s", name="advisor", input={}),
                grows(0, "input_json_delta", partial_json='{"query": "q"}'),
                ends(0),
            ],
            [
                BlockStarted(
                    part=Opaque(
                        dialect="messages",
                        data={"type": "server_tool_use", "id": "s", "name": "advisor", "input": {}},
                    )
                ),
                OpaqueDelta(
                    dialect="messages",
                    data=grows(0, "input_json_delta", partial_json='{"query": "q"}'),
                    name="content_block_delta",
                ),
                BlockEnded(
                    part=Opaque(
                        dialect="messages",
                        data={"type": "server_tool_use", "id": "s", "name": "advisor", "input": {"query": "q"}},
                    )
                ),
                *tail(),
            ],
            id="pitfall-30-server-tool-of-its-own",
        ),
        pytest.param(
            [{"type": "weather", "x": 1}],
            [OpaqueDelta(dialect="messages", data={"type": "weather", "x": 1}, name="weather"), *tail()],
            id="U34-unknown-event",
        ),
    ],
)
def test_blocks(wire: list[JSONObject], events: list[Event]) -> None:
    assert read([START, *wire, *END]) == [*HEAD, *events]


BROKEN = Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        pytest.param([START], [*HEAD, Failed(failure=BROKEN)], id="U14-cut"),
        pytest.param([START, END[1]], [*HEAD, Failed(failure=BROKEN)], id="pitfall-103-no-reason"),
        pytest.param([START, END[0]], [*HEAD, *tail()], id="no-message-stop"),
        pytest.param([START, *END, opens(0, type="text", text="x"), END[0]], [*HEAD, *tail()], id="U16-after-the-end"),
        pytest.param(
            [START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, *END],
            [
                *HEAD,
                Failed(
                    failure=Failure(
                        kind="overloaded", message="Overloaded", dialect="messages", raw_type="overloaded_error"
                    )
                ),
            ],
            id="pitfall-105-U22-error",
        ),
        pytest.param(
            [START, grows(0, "text_delta", text="x")],
            [
                *HEAD,
                Failed(
                    failure=Failure(
                        kind="upstream",
                        message="the upstream's stream is malformed: $.index: a block grows that is not open",
                    )
                ),
            ],
            id="no-block",
        ),
        pytest.param(
            [
                START,
                {**END[0], "usage": {"input_tokens": 9, "output_tokens": 5}, "context_management": {"a": 1}},
                END[1],
            ],
            [
                *HEAD,
                UsageReported(usage=Usage(input_tokens=9, output_tokens=5)),
                Finished(
                    finish=Finish(reason="stop", raw="end_turn", dialect="messages"),
                    extra=Extra(dialect="messages", fields={"context_management": {"a": 1}}),
                ),
            ],
            id="pitfall-99-replaces",
        ),
    ],
)
def test_ends(wire: list[JSONObject], events: list[Event]) -> None:
    assert read(wire) == events


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b"\xff", b'"x"', b'{"type":"message_start","message":1}'])
def test_malformed_data_fails_the_stream_once(data: bytes) -> None:
    """U17, U18: and nothing of it is shown."""
    decoder = MESSAGES.stream_decoder()
    first = decoder.feed(ServerSentEvent(data))
    assert [type(event) for event in first] == [Failed]
    assert [*decoder.feed(ServerSentEvent(b'{"type":"ping"}')), *decoder.close()] == []
