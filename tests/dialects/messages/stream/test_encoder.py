"""Streams written: exact events of the wire for given canonical events."""

import pytest

from tests.dialects.messages.wire import written
from xenoglot.model.content import (
    Audio,
    Citation,
    Extra,
    Image,
    Logprob,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
)
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
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
from xenoglot.model.request import Request
from xenoglot.model.response import Finish, Usage

STARTED = Started(id="chatcmpl-1", model="m")
FINISHED = Finished(finish=Finish(reason="stop", raw="stop", dialect="chat"))
COUNTED = UsageReported(usage=Usage(input_tokens=10, output_tokens=4, cache_read=6))


def start(usage: JSONObject | None = None, model: str = "m") -> JSONObject:
    return {
        "type": "message_start",
        "message": {
            "id": "chatcmpl-1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage or {"input_tokens": 0, "output_tokens": 0},
        },
    }


def block(index: int, content: JSONObject, *deltas: JSONObject) -> list[JSONObject]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str = "end_turn") -> list[JSONObject]:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 4}
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


EMPTY = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def text_delta(text: str) -> JSONObject:
    return {"type": "text_delta", "text": text}


def unsigned(*deltas: JSONObject, index: int = 0) -> list[JSONObject]:
    return block(index, THINKING, *deltas, {"type": "signature_delta", "signature": "xenoglot:unsigned"})


def whole_block(part: Part, *deltas: Event, ended: Part | None = None) -> list[Event]:
    return [BlockStarted(part=part), *deltas, BlockEnded(part=ended)]


@pytest.mark.parametrize(
    ("events", "wire", "losses"),
    [
        pytest.param(
            whole_block(Text(text=""), TextDelta(text='a"\n'), Ping(), TextDelta(text="ü😀")),
            [
                *block(0, EMPTY, text_delta('a"\n'), text_delta("ü😀"))[:2],
                {"type": "ping"},
                *block(0, EMPTY, text_delta("ü😀"))[1:],
                *end(),
            ],
            [],
            id="pitfall-84-107-text",
        ),
        pytest.param(
            [
                *whole_block(Reasoning(), ReasoningDelta(text="h")),
                *whole_block(Text(text=""), TextDelta(text="a")),
                *whole_block(ToolCall(id="call_1", name="f"), ArgumentsDelta(text='{"a"'), ArgumentsDelta(text=":1}")),
                *whole_block(ToolCall(id="call_2", name="g")),
            ],
            [
                *unsigned({"type": "thinking_delta", "thinking": "h"}),
                *block(1, EMPTY, text_delta("a")),
                *block(
                    2,
                    {"type": "tool_use", "id": "call_1", "name": "f", "input": {}},
                    {"type": "input_json_delta", "partial_json": '{"a"'},
                    {"type": "input_json_delta", "partial_json": ":1}"},
                ),
                *block(3, {"type": "tool_use", "id": "call_2", "name": "g", "input": {}}),
                *end("tool_use"),
            ],
            [],
            id="pitfall-69-77-86-90-94-blocks",
        ),
        pytest.param(
            whole_block(
                Reasoning(origin=Origin(dialect="messages")),
                ReasoningDelta(text="a", summary=0),
                ReasoningDelta(text="b", summary=1),
                SignatureDelta(signature="s"),
            ),
            [
                *block(
                    0,
                    THINKING,
                    {"type": "thinking_delta", "thinking": "a"},
                    {"type": "thinking_delta", "thinking": "\n\nb"},
                    {"type": "signature_delta", "signature": "s"},
                ),
                *end(),
            ],
            ["$.candidates[0].content[0] summary approximated (written as the thinking itself)"],
            id="pitfall-106-seal-of-its-own",
        ),
        pytest.param(
            whole_block(
                Reasoning(origin=Origin(dialect="r", provider="p")),
                ended=Reasoning(encrypted="E", origin=Origin(dialect="r", provider="p")),
            ),
            [
                *block(
                    0, THINKING, {"type": "signature_delta", "signature": "xenoglot:sealed:WyJyIiwicCIsbnVsbCwiRSJd"}
                ),
                *end(),
            ],
            ["$.candidates[0].content[0] signature emulated (only r can open it; wrapped to come back)"],
            id="pitfall-50-seal-of-another",
        ),
        pytest.param(
            whole_block(ToolCall(id="c", name="f"), ended=ToolCall(id="c", name="f", arguments='{"a":1}')),
            [
                *block(
                    0,
                    {"type": "tool_use", "id": "c", "name": "f", "input": {}},
                    {"type": "input_json_delta", "partial_json": '{"a":1}'},
                ),
                *end("tool_use"),
            ],
            [],
            id="arguments-at-the-end-only",
        ),
        pytest.param(
            whole_block(Refusal(text=""), TextDelta(text="No.")),
            [*block(0, EMPTY, text_delta("No.")), *end("refusal")],
            ["$.candidates[0].content[0] refusal approximated (written as text)"],
            id="pitfall-72-refusal",
        ),
        pytest.param(
            [
                *whole_block(Image(source=Remote(url="u"))),
                *whole_block(Audio(), AudioDelta(data="AA==", transcript="Hi")),
            ],
            [*block(0, EMPTY, text_delta("Hi")), *end()],
            [
                "$.candidates[0].content[0] image dropped (it has no place in a turn of role `assistant`)",
                "$.candidates[0].content[1] audio approximated (only its transcript is written)",
            ],
            id="no-place",
        ),
        pytest.param(
            [
                *whole_block(
                    Text(text=""),
                    TextDelta(text="a", logprobs=(Logprob(token="a", logprob=-1.0),)),
                    CitationDelta(citation=Citation(kind="page_location", title="T", cited_text="c")),
                ),
                OpaqueDelta(dialect="chat", data={}, name="chunk"),
                OpaqueDelta(dialect="messages", data={"type": "weather"}),
            ],
            [
                *block(
                    0,
                    EMPTY,
                    text_delta("a"),
                    {
                        "type": "citations_delta",
                        "citation": {"type": "page_location", "cited_text": "c", "document_title": "T"},
                    },
                ),
                {"type": "weather"},
                *end(),
            ],
            [
                "$.candidates[0].content[0] logprobs dropped (the dialect has none)",
                "$ chunk dropped (only chat has it)",
            ],
            id="pitfall-115-119-aside",
        ),
        pytest.param(
            [
                BlockStarted(part=Text(text="")),
                BlockStarted(part=Text(text=""), candidate=1),
                TextDelta(text="b", candidate=1),
                TextDelta(text="a"),
                BlockEnded(),
                BlockEnded(candidate=1),
            ],
            [*block(0, EMPTY, text_delta("a")), *end()],
            ["$.candidates[1] candidate dropped (an answer of the dialect is one)"],
            id="U33-one-candidate",
        ),
        pytest.param(
            [
                BlockStarted(part=Opaque(dialect="messages", data={"type": "new"})),
                OpaqueDelta(
                    dialect="messages",
                    data={"type": "content_block_delta", "index": 7, "delta": {"type": "new_delta", "x": 1}},
                ),
                BlockEnded(part=Opaque(dialect="messages", data={"type": "new", "x": 1})),
            ],
            [*block(0, {"type": "new"}, {"type": "new_delta", "x": 1}), *end()],
            [],
            id="U34-own-block",
        ),
    ],
)
def test_blocks(events: list[Event], wire: list[JSONObject], losses: list[str]) -> None:
    """pitfall-102: the usage that follows the reason of the end is in `message_delta` all the same."""
    bodies, lost = written([STARTED, *events, FINISHED, COUNTED])
    assert bodies == [start(), *wire]
    assert lost == losses


def test_usage_known_at_the_start_is_told_there() -> None:
    """pitfall-98, pitfall-99: and told anew, whole, at the end."""
    early = UsageReported(usage=Usage(input_tokens=10, output_tokens=0, cache_read=6))
    usage = {"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 0}
    assert written([STARTED, early, COUNTED, FINISHED]) == ([start(usage), *end()], [])


def test_the_model_asked_for_is_named_where_none_is_said() -> None:
    """pitfall-75."""
    bodies, _ = written([Started(id="chatcmpl-1"), FINISHED, COUNTED], Request(model="alias"))
    assert bodies == [start(model="alias"), *end()]


def test_fields_told_at_the_end_stand_where_the_sdk_reads_them() -> None:
    extra = Extra(dialect="messages", fields={"container": {"id": "c"}, "context_management": {"applied_edits": []}})
    bodies, losses = written([STARTED, COUNTED, Finished(finish=FINISHED.finish, extra=extra)])
    delta, stop = end()
    assert bodies[1:] == [
        {
            **delta,
            "delta": {**delta["delta"], "container": {"id": "c"}},
            "context_management": {"applied_edits": []},
        },
        stop,
    ]
    assert losses == []


ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}


@pytest.mark.parametrize(
    ("events", "wire"),
    [
        pytest.param(
            [STARTED, BlockStarted(part=Text(text="a")), Failed(failure=Failure(kind="overloaded", message="Busy"))],
            [start(), *block(0, EMPTY, text_delta("a"))[:2], ERROR],
            id="pitfall-104-105-U22-failed",
        ),
        pytest.param([Failed(failure=Failure(kind="overloaded", message="Busy"))], [ERROR], id="before-the-start"),
        pytest.param(
            [STARTED, COUNTED],
            [
                start({"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 4}),
                {
                    "type": "error",
                    "error": {
                        "type": "api_error",
                        "message": "connection lost: the answer ended without being complete",
                    },
                },
            ],
            id="pitfall-103-never-finished",
        ),
    ],
)
def test_failures_end_the_stream(events: list[Event], wire: list[JSONObject]) -> None:
    assert written(events) == (wire, [])
