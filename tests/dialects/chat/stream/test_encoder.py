"""Events become streams for chat clients: every chunk, in order."""

import pytest

from tests.dialects.chat.wire import HEAD, chunk, written
from xenoglot.dialects.chat import CHAT
from xenoglot.model.content import Citation, File, Image, Opaque, Origin, Reasoning, Refusal, Remote, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
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
from xenoglot.model.json import JSON
from xenoglot.model.request import Request
from xenoglot.model.response import Finish, Usage

STARTED = Started(id="chatcmpl-1", model="m", created=7)
ROLE = chunk({"role": "assistant", "content": None})
STOP = Finished(finish=Finish(reason="stop"))
CALLS = Finished(finish=Finish(reason="tool_calls"))
DONE = "[DONE]"


def block(part: Text | Reasoning | Refusal | ToolCall | Opaque | Image | File, *deltas: Event) -> list[Event]:
    return [BlockStarted(part=part), *deltas, BlockEnded()]


WORDS = block(Text(text=""), TextDelta(text="Hi"))


@pytest.mark.parametrize(
    ("events", "chunks", "losses"),
    [
        pytest.param([*WORDS, STOP], [chunk({"content": "Hi"}), chunk({}, "stop")], [], id="pitfall-109-110-text"),
        pytest.param([STOP], [chunk({"content": ""}), chunk({}, "stop")], [], id="pitfall-73-nothing"),
        pytest.param(
            [*block(ToolCall(id="a", name="f"), ArgumentsDelta(text='{"x"'), ArgumentsDelta(text=":1}")), CALLS],
            [
                chunk(
                    {
                        "tool_calls": [
                            {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
                        ]
                    }
                ),
                chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]}),
                chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
                chunk({}, "tool_calls"),
            ],
            [],
            id="pitfall-95-call",
        ),
        pytest.param(
            [*block(ToolCall(id="a", name="f")), CALLS],
            [
                chunk(
                    {
                        "tool_calls": [
                            {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
                        ]
                    }
                ),
                chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
                chunk({}, "tool_calls"),
            ],
            [],
            id="pitfall-94-no-arguments",
        ),
        pytest.param(
            [
                *block(
                    Reasoning(text="", origin=Origin(dialect="messages")),
                    ReasoningDelta(text="hm"),
                    SignatureDelta(signature="s"),
                ),
                *WORDS,
                STOP,
            ],
            [
                chunk({"reasoning_content": "hm"}),
                chunk(
                    {
                        "reasoning_details": [
                            {
                                "type": "reasoning.text",
                                "text": "hm",
                                "signature": "s",
                                "format": "anthropic-claude-v1",
                                "index": 0,
                            }
                        ]
                    }
                ),
                chunk({"content": "Hi"}),
                chunk({}, "stop"),
            ],
            [],
            id="pitfall-50-77-sealed-thought",
        ),
        pytest.param(
            [*block(Reasoning(), ReasoningDelta(text="a", summary=0), ReasoningDelta(text="b", summary=1)), STOP],
            [
                chunk({"reasoning_content": "a"}),
                chunk({"reasoning_content": "\n\nb"}),
                chunk({"content": ""}),
                chunk({}, "stop"),
            ],
            ["$.candidates[0].content[0] summary approximated (written as the reasoning itself)"],
            id="pitfall-76-summaries",
        ),
        pytest.param(
            [
                *block(
                    Text(text=""),
                    TextDelta(text="Hi"),
                    CitationDelta(citation=Citation(kind="web", url="u", title="t")),
                ),
                STOP,
            ],
            [
                chunk({"content": "Hi"}),
                chunk(
                    {
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2},
                            }
                        ]
                    }
                ),
                chunk({}, "stop"),
            ],
            ["$.candidates[0].content[0].citations[0] web approximated (written as a URL citation)"],
            id="pitfall-8-citation",
        ),
        pytest.param(
            [*block(Refusal(text=""), TextDelta(text="No.")), Finished(finish=Finish(reason="refusal"))],
            [chunk({"refusal": "No."}), chunk({"content": ""}), chunk({}, "content_filter")],
            [],
            id="pitfall-72-refusal",
        ),
        pytest.param(
            [*WORDS, Finished(finish=Finish(reason="refusal", explanation="policy"))],
            [chunk({"content": "Hi"}), chunk({"refusal": "policy"}), chunk({}, "content_filter")],
            ["$.candidates[0].finish explanation emulated (written as the `refusal` of the message)"],
            id="pitfall-72-explained",
        ),
        pytest.param(
            [*WORDS, Finished(finish=Finish(reason="stop_sequence", stop_sequence="END"))],
            [chunk({"content": "Hi"}), chunk({}, "stop", stop_reason="END")],
            [],
            id="pitfall-70-stop-string",
        ),
        pytest.param(
            [*WORDS, Finished(finish=Finish(reason="pause", raw="pause_turn", dialect="messages"))],
            [chunk({"content": "Hi"}), chunk({}, "stop", native_finish_reason="pause_turn")],
            ["$.candidates[0] finish approximated (`pause` is written as `stop`)"],
            id="pitfall-71-pause",
        ),
        pytest.param(
            [
                *block(Opaque(dialect="messages", data={"type": "server_tool_use"})),
                *WORDS,
                OpaqueDelta(dialect="messages", data={}, name="x"),
                STOP,
            ],
            [chunk({"content": "Hi"}), chunk({}, "stop")],
            [
                "$.candidates[0].content[0] server_tool_use dropped (only messages has it)",
                "$ x dropped (only messages has it)",
            ],
            id="pitfall-30-U34-foreign-block",
        ),
        pytest.param(
            [*block(Image(source=Remote(url="u"))), STOP],
            [
                chunk({"images": [{"type": "image_url", "image_url": {"url": "u"}, "index": 0}]}),
                chunk({"content": ""}),
                chunk({}, "stop"),
            ],
            [],
            id="picture",
        ),
        pytest.param(
            [*block(File(source=Remote(url="u"))), STOP],
            [chunk({"content": ""}), chunk({}, "stop")],
            ["$.candidates[0].content[0] file dropped (an answer holds text, images, sound and tool calls only)"],
            id="document",
        ),
        pytest.param(
            [Ping(), *WORDS, STOP], [": ping", chunk({"content": "Hi"}), chunk({}, "stop")], [], id="pitfall-107-ping"
        ),
        pytest.param(
            [
                BlockStarted(part=ToolCall(id="a", name="f")),
                BlockEnded(part=ToolCall(id="a", name="f", arguments='{"x":1}')),
                CALLS,
            ],
            [
                chunk(
                    {
                        "tool_calls": [
                            {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
                        ]
                    }
                ),
                chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":1}'}}]}),
                chunk({}, "tool_calls"),
            ],
            [],
            id="arguments-at-the-end",
        ),
    ],
)
def test_traces(events: list[Event], chunks: list[JSON], losses: list[str]) -> None:
    assert written([STARTED, *events]) == ([ROLE, *chunks, DONE], losses)


def test_usage_is_shown_to_those_who_asked() -> None:
    """pitfall-101, pitfall-102: in a chunk of its own, behind the finish; the others say `null`."""
    usage = UsageReported(usage=Usage(input_tokens=9, output_tokens=4, cache_read=3))
    events = [STARTED, *WORDS, STOP, usage]
    counts = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    counts_said = counts | {"prompt_tokens_details": {"cached_tokens": 3}}
    chunks = [ROLE, chunk({"content": "Hi"}), chunk({}, "stop")]
    assert written(events) == ([*chunks, DONE], [])
    asked = Request(model="m", stream=True, stream_usage=True)
    last = {**HEAD, "choices": [], "usage": counts_said}
    assert written(events, asked) == ([*({**one, "usage": None} for one in chunks), last, DONE], [])


def test_legacy_clients_get_legacy_calls() -> None:
    """pitfall-45: a client that said `functions` reads `function_call`; a second call is a loss."""
    request = CHAT.decode_request({"model": "m", "messages": [], "functions": [{"name": "f"}], "stream": True})
    first = block(ToolCall(id="a", name="f"), ArgumentsDelta(text='{"x":1}'))
    second = block(ToolCall(id="b", name="f"), ArgumentsDelta(text="{}"))
    assert written([STARTED, *first, *second, CALLS], request) == (
        [
            ROLE,
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"x":1}'}}),
            chunk({}, "function_call"),
            DONE,
        ],
        ["$.candidates[0].content[1] tool call dropped (`function_call` holds one)"],
    )


def test_choices_are_kept_apart() -> None:
    """pitfall-46, U33: each candidate has its index and a role chunk of its own."""

    def of(candidate: int, text: str) -> list[Event]:
        return [
            BlockStarted(part=Text(text=""), candidate=candidate),
            TextDelta(text=text, candidate=candidate),
            BlockEnded(candidate=candidate),
            Finished(finish=Finish(reason="stop"), candidate=candidate),
        ]

    data, losses = written([STARTED, *of(0, "a"), *of(1, "b")])
    second = [
        {**one, "choices": [{**one["choices"][0], "index": 1}]}
        for one in (ROLE, chunk({"content": "b"}), chunk({}, "stop"))
    ]
    assert data == [ROLE, chunk({"content": "a"}), chunk({}, "stop"), *second, DONE]
    assert losses == []


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([STARTED], id="U14-nothing"),
        pytest.param([STARTED, *WORDS], id="pitfall-103-no-finish"),
        pytest.param(
            [STARTED, *WORDS, UsageReported(usage=Usage(output_tokens=1))], id="pitfall-104-usage-but-no-finish"
        ),
    ],
)
def test_what_has_no_end_is_an_error(events: list[Event]) -> None:
    data, _ = written(events)
    error = {"message": "connection lost: the upstream's stream ended without being complete", "type": "server_error"}
    assert data[-1] == {"error": {**error, "param": None, "code": "upstream_error"}}


def test_nothing_follows_a_failure() -> None:
    """pitfall-105: the error is the last thing a client reads, never `[DONE]`."""
    failed = Failed(failure=Failure(kind="overloaded", message="busy", dialect="messages", status=529))
    error = {"message": "busy", "type": "server_error", "param": None, "code": "service_unavailable"}
    data, _ = written([STARTED, *WORDS, failed])
    assert data == [ROLE, chunk({"content": "Hi"}), {"error": error}]


def test_what_the_outside_left_out_is_written_empty() -> None:
    data, _ = written([Started(), *WORDS, STOP], Request(model="alias", stream=True))
    assert data[0] == ROLE | {"id": "", "created": 0, "model": "alias"}
