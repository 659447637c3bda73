"""Streams of Responses servers become events: whole traces, whichever of the wire's many ways they take."""

import pytest

from tests.dialects.responses.wire import (
    ANSWER,
    AT,
    ITEM,
    MESSAGE,
    OUTPUT_TEXT,
    completed_event,
    event,
    message,
    own,
    read,
    read_answer,
    text,
)
from xenoglot.model.content import Citation, Extra, Logprob, Opaque, Origin, Reasoning, Refusal, Text, ToolCall
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
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Finish, Usage

HELLO = BlockStarted(part=Text(text="", extra=own(item=ITEM)))
ADDED = event("output_item.added", output_index=0, item=MESSAGE)
PART = event("content_part.added", **AT, part=OUTPUT_TEXT)
STOP = Finished(finish=Finish(reason="stop", raw="completed", dialect="responses"))


def delta(words: str, **fields: JSON) -> JSONObject:
    return event("output_text.delta", **{**AT, **fields}, delta=words, logprobs=[])


def done(item: JSONObject, index: int = 0) -> JSONObject:
    return event("output_item.done", output_index=index, item=item)


def call(index: int, arguments: str = "", **fields: JSON) -> JSONObject:
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "name": "f"}
    return {**item, "status": "completed", "arguments": arguments, **fields}


def block(index: int, *arguments: str) -> list[Event]:
    mark = own(item={"type": True, "status": "completed"})
    part = ToolCall(id=f"call_{index}", name="f", item_id=f"fc_{index}", extra=mark)
    return [BlockStarted(part=part), *(ArgumentsDelta(text=piece) for piece in arguments), BlockEnded()]


def test_an_answer_from_its_start_to_its_end() -> None:
    """pitfall-111: the echo of the request is form, usage comes with the end."""
    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "total_tokens": 8,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    assert read(
        event("created", response={**ANSWER, "tools": [], "novel": 1}),
        event("in_progress", response={**ANSWER, "tools": []}),
        ADDED,
        PART,
        delta("Hel"),
        delta("lo"),
        event("output_text.done", **AT, text="Hello", logprobs=[]),
        event("content_part.done", **AT, part=text("Hello")),
        done(message(text("Hello"))),
        completed_event(message(text("Hello")), usage=usage, completed_at=9, tools=[], novel=1, tool_usage={"x": 1}),
    ) == [
        Started(
            id="resp_1",
            model="m",
            created=7,
            extra=Extra(dialect="responses", fields={"novel": 1}, form={"echo": {"tools": []}}),
        ),
        HELLO,
        TextDelta(text="Hel"),
        TextDelta(text="lo"),
        BlockEnded(),
        UsageReported(usage=Usage(input_tokens=3, output_tokens=5, cache_read=1, cache_write=0, reasoning=2)),
        Finished(
            finish=STOP.finish,
            extra=Extra(dialect="responses", fields={"tool_usage": {"x": 1}}, form={"completed_at": 9}),
        ),
    ]


@pytest.mark.parametrize(
    ("items", "events"),
    [
        pytest.param(
            [ADDED, delta("a"), event("output_text.done", **AT, text="ab"), done(message(text("ab")))],
            [
                BlockStarted(part=Text(text="", extra=own(item=ITEM, absent=["logprobs"]))),
                TextDelta(text="a"),
                TextDelta(text="b"),
                BlockEnded(part=Text(text="ab", extra=own(item=ITEM))),
            ],
            id="no-part-added",
        ),
        pytest.param(
            [ADDED, PART, delta("a"), done(message(text("abc")))],
            [HELLO, TextDelta(text="a"), TextDelta(text="bc"), BlockEnded()],
            id="the-rest-with-the-item",
        ),
        pytest.param(
            [ADDED, PART, delta("a"), done(message(text("xyz")))],
            [HELLO, TextDelta(text="a"), BlockEnded(part=Text(text="xyz", extra=own(item=ITEM)))],
            id="another-text-with-the-item",
        ),
        pytest.param(
            [ADDED, event("content_part.added", **AT, part=text("a")), delta("b"), done(message(text("ab")))],
            [HELLO, TextDelta(text="a"), TextDelta(text="b"), BlockEnded()],
            id="words-in-the-start",
        ),
        pytest.param(
            [done(message(text("a")))],
            [HELLO, TextDelta(text="a"), BlockEnded()],
            id="item-done-only",
        ),
        pytest.param(
            [delta("a"), delta("b")],
            [
                BlockStarted(part=Text(text="", extra=own(absent=["logprobs"], item={"type": True, "id": "msg_1"}))),
                TextDelta(text="a"),
                TextDelta(text="b"),
                BlockEnded(),
            ],
            id="item-never-added",
        ),
        pytest.param(
            [ADDED, PART, delta("a", item_id="x"), delta("b", item_id="y"), done(message(text("ab"), id="z"))],
            [HELLO, TextDelta(text="a"), TextDelta(text="b"), BlockEnded()],
            id="pitfall-74-ids-rotate",
        ),
        pytest.param(
            [ADDED, PART, delta("a", output_index=4), delta("b", output_index=5), done(message(text("ab")), 6)],
            [HELLO, TextDelta(text="a"), TextDelta(text="b"), BlockEnded()],
            id="places-drift",
        ),
        pytest.param(
            [ADDED, PART, delta("a", content_index=1), delta("b", content_index=2), done(message(text("ab")))],
            [HELLO, TextDelta(text="a"), TextDelta(text="b"), BlockEnded()],
            id="contents-are-miscounted",
        ),
        pytest.param(
            [ADDED, ADDED, PART, PART, delta("a"), done(message(text("a"))), done(message(text("a"))), delta("b")],
            [HELLO, TextDelta(text="a"), BlockEnded()],
            id="told-twice",
        ),
        pytest.param(
            [
                ADDED,
                event("content_part.added", **AT, part={"type": "refusal", "refusal": ""}),
                event("refusal.delta", **AT, delta="No"),
                event("refusal.done", **AT, refusal="No."),
                done(message({"type": "refusal", "refusal": "No."})),
            ],
            [
                BlockStarted(part=Refusal(text="", extra=own(item=ITEM))),
                TextDelta(text="No"),
                TextDelta(text="."),
                BlockEnded(),
            ],
            id="pitfall-72-refusal",
        ),
        pytest.param(
            [
                ADDED,
                PART,
                delta("see"),
                event(
                    "output_text.annotation.added",
                    **AT,
                    annotation_index=0,
                    annotation={"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 3},
                ),
            ],
            [
                HELLO,
                TextDelta(text="see"),
                CitationDelta(citation=Citation(kind="url_citation", url="u", title="t", start=0, end=3)),
                BlockEnded(),
            ],
            id="annotation",
        ),
        pytest.param(
            [ADDED, PART, event("output_text.delta", **AT, delta="a", logprobs=[{"token": "a", "logprob": -1.5}])],
            [
                HELLO,
                TextDelta(text="a", logprobs=(Logprob(token="a", logprob=-1.5, extra=own(bare=True)),)),
                BlockEnded(),
            ],
            id="pitfall-119-logprobs",
        ),
        pytest.param(
            [ADDED, PART, event("output_text.delta", **AT, delta="a", logprobs=[], obfuscation="zz", mood="good")],
            [
                HELLO,
                TextDelta(text="a"),
                OpaqueDelta(
                    dialect="responses",
                    data=event("output_text.delta", **AT, delta="", logprobs=[], obfuscation="zz", mood="good"),
                    name="response.output_text.delta",
                ),
                BlockEnded(),
            ],
            id="pitfall-115-unknown-field",
        ),
    ],
)
def test_messages(items: list[JSON], events: list[Event]) -> None:
    assert read_answer(*items, completed_event()) == events


@pytest.mark.parametrize(
    ("items", "events"),
    [
        pytest.param(
            [
                event("output_item.added", output_index=0, item=call(0, status="in_progress")),
                event("function_call_arguments.done", item_id="fc_0", output_index=0, arguments='{"a":1}'),
                done(call(0, '{"a":1}')),
            ],
            block(0, '{"a":1}'),
            id="pitfall-114-arguments-done-only",
        ),
        pytest.param(
            [
                event("output_item.added", output_index=0, item=call(0)),
                event("output_item.added", output_index=1, item=call(1)),
                event("function_call_arguments.delta", item_id="fc_1", output_index=1, delta='{"b"'),
                event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta='{"a"'),
                event("function_call_arguments.delta", item_id="fc_1", output_index=1, delta=":2}"),
                done(call(1, '{"b":2}'), 1),
                event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta=":1}"),
                done(call(0, '{"a":1}')),
            ],
            [*block(0, '{"a"', ":1}"), *block(1, '{"b"', ":2}")],
            id="interleaved",
        ),
        pytest.param(
            [
                event("output_item.added", output_index=0, item=call(0)),
                event("output_item.added", output_index=1, item=call(1)),
                event("function_call_arguments.delta", item_id="fc_1", output_index=1, delta="{}"),
            ],
            [*block(0), *block(1, "{}")],
            id="never-done",
        ),
        pytest.param(
            [
                event("output_item.added", output_index=0, item=call(0, namespace="mcp__disk")),
                done(call(0, "{}", namespace="mcp__disk")),
            ],
            [
                BlockStarted(
                    part=ToolCall(
                        id="call_0",
                        name="f",
                        item_id="fc_0",
                        namespace="mcp__disk",
                        extra=own(item={"type": True, "status": "completed"}),
                    )
                ),
                ArgumentsDelta(text="{}"),
                BlockEnded(),
            ],
            id="pitfall-63-namespace",
        ),
    ],
)
def test_calls(items: list[JSON], events: list[Event]) -> None:
    calls = Finish(reason="tool_calls", raw="completed", dialect="responses")
    assert read(event("created", response=ANSWER), *items, completed_event())[1:] == [*events, Finished(finish=calls)]


def test_a_free_text_call() -> None:
    """pitfall-62."""
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "patch", "input": ""}
    at: JSONObject = {"item_id": "ctc_1", "output_index": 0}
    mark = own(item={"type": True})
    assert read_answer(
        event("output_item.added", output_index=0, item=item),
        event("custom_tool_call_input.delta", **at, delta="*** "),
        event("custom_tool_call_input.done", **at, input="*** Begin"),
        done({**item, "input": "*** Begin"}),
        completed_event(),
    ) == [
        BlockStarted(part=ToolCall(id="call_1", name="patch", kind="custom", item_id="ctc_1", extra=mark)),
        ArgumentsDelta(text="*** "),
        ArgumentsDelta(text="Begin"),
        BlockEnded(),
    ]


THOUGHT: JSONObject = {"id": "rs_1", "type": "reasoning", "summary": []}
MARK = own(item={"type": True})
TWO: list[JSON] = [{"type": "reasoning_text", "text": "ab"}, {"type": "reasoning_text", "text": "c"}]


def thought(kind: str, index: int = 0, **fields: JSON) -> JSONObject:
    place = "summary_index" if "summary" in kind else "content_index"
    return event(kind, item_id="rs_1", output_index=0, **{place: index}, **fields)


@pytest.mark.parametrize(
    ("items", "events"),
    [
        pytest.param(
            [
                thought("reasoning_summary_part.added", part={"type": "summary_text", "text": ""}),
                thought("reasoning_summary_text.delta", delta="One"),
                thought("reasoning_summary_text.done", text="One."),
                thought("reasoning_summary_text.delta", 1, delta="Two"),
                done(
                    {
                        **THOUGHT,
                        "encrypted_content": "sealed",
                        "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two"}],
                    }
                ),
            ],
            [
                ReasoningDelta(text="One", summary=0),
                ReasoningDelta(text=".", summary=0),
                ReasoningDelta(text="Two", summary=1),
                BlockEnded(
                    part=Reasoning(
                        summary=("One.", "Two"),
                        encrypted="sealed",
                        origin=Origin(dialect="responses"),
                        id="rs_1",
                        extra=MARK,
                    )
                ),
            ],
            id="pitfall-58-sealed-at-the-end",
        ),
        pytest.param(
            [
                thought("reasoning_part.added", part={"type": "reasoning_text", "text": ""}),
                thought("reasoning_text.delta", 0, delta="a"),
                thought("reasoning_text.delta", 1, delta="b"),
                thought("reasoning_text.done", 2, text="ab"),
                thought("reasoning_text.delta", 3, delta="c"),
                done(
                    {
                        **THOUGHT,
                        "content": TWO,
                    }
                ),
            ],
            [
                ReasoningDelta(text="a"),
                ReasoningDelta(text="b"),
                ReasoningDelta(text="\n\nc"),
                BlockEnded(
                    part=Reasoning(
                        text="ab\n\nc",
                        summary=(),
                        id="rs_1",
                        extra=own(
                            item={"type": True},
                            content=[TWO],
                        ),
                    )
                ),
            ],
            id="vllm-counts-every-delta",
        ),
        pytest.param(
            [thought("reasoning_summary_text.delta", 2**40, delta="far")],
            [ReasoningDelta(text="far", summary=0), BlockEnded()],
            id="a-place-is-no-size",
        ),
    ],
)
def test_thoughts(items: list[JSON], events: list[Event]) -> None:
    """pitfall-112."""
    header = BlockStarted(part=Reasoning(summary=(), id="rs_1", extra=MARK))
    assert read_answer(event("output_item.added", output_index=0, item=THOUGHT), *items, completed_event()) == [
        header,
        *events,
    ]


def test_an_item_that_only_the_dialect_knows() -> None:
    """pitfall-64: it is carried whole, and so is each of its events."""
    item: JSONObject = {"id": "x_1", "type": "x_call", "status": "in_progress"}
    turning = event("x_call.turning", item_id="x_1", output_index=0, sequence_number=3)
    found = {**item, "status": "completed", "rays": [1, 2]}
    assert read_answer(
        event("output_item.added", output_index=0, item=item), turning, done(found), completed_event(found)
    ) == [
        BlockStarted(part=Opaque(dialect="responses", data=item)),
        OpaqueDelta(dialect="responses", data=turning, name="response.x_call.turning"),
        BlockEnded(part=Opaque(dialect="responses", data=found)),
    ]


def test_what_only_the_end_tells_is_told() -> None:
    """pitfall-113, and no item is told twice: neither by its id, nor by its place where ids mean nothing."""
    late = call(1, "{}")
    assert read_answer(done(message(text("a"))), completed_event(message(text("a")), late)) == [
        HELLO,
        TextDelta(text="a"),
        BlockEnded(),
        *block(1, "{}"),
    ]
    assert read_answer(done(message(text("a"))), completed_event(message(text("a"), id="msg_other"))) == [
        HELLO,
        TextDelta(text="a"),
        BlockEnded(),
    ]


def test_signs_of_life() -> None:
    """pitfall-107: `response.in_progress` belongs to the start once; told again it says that the server lives."""
    assert read_answer(
        event("in_progress", response=ANSWER),
        {"type": "keepalive", "sequence_number": 2},
        event("in_progress", response=ANSWER),
        completed_event(),
    ) == [Ping(), Ping()]


@pytest.mark.parametrize(
    ("end", "finish"),
    [
        pytest.param(
            completed_event(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            Finish(reason="length", raw="max_output_tokens", dialect="responses"),
            id="pitfall-82-length",
        ),
        pytest.param(
            completed_event(status="incomplete", incomplete_details={"reason": "content_filter"}),
            Finish(reason="refusal", raw="content_filter", dialect="responses"),
            id="pitfall-82-filter",
        ),
        pytest.param(
            completed_event(status="incomplete"),
            Finish(
                reason="unknown",
                raw="incomplete",
                dialect="responses",
                extra=own(status="incomplete", details=None),
            ),
            id="no-reason",
        ),
        pytest.param(event("completed", response={}), STOP.finish, id="says-nothing"),
    ],
)
def test_ends(end: JSON, finish: Finish) -> None:
    last = read(event("created", response=ANSWER), end)[-1]
    assert isinstance(last, Finished)
    assert last.finish == finish


@pytest.mark.parametrize(
    ("items", "failure"),
    [
        pytest.param(
            [
                event(
                    "failed", response={**ANSWER, "status": "failed", "error": {"code": "server_error", "message": "m"}}
                )
            ],
            ("internal", "m"),
            id="pitfall-104-failed",
        ),
        pytest.param(
            [event("completed", response={**ANSWER, "status": "failed", "error": {"code": "x", "message": "m"}})],
            ("upstream", "m"),
            id="failed-in-the-guise-of-an-end",
        ),
        pytest.param(
            [{"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}],
            ("rate_limit", "slow"),
            id="pitfall-105-error-event",
        ),
        pytest.param(
            [{"type": "error", "error": {"type": "invalid_request_error", "code": None, "message": "bad"}}],
            ("invalid_request", "bad"),
            id="error-inside-the-event",
        ),
        pytest.param([{"error": {"message": "out of memory"}}], ("upstream", "out of memory"), id="error-alone"),
        pytest.param(
            [ADDED, PART, delta("a")],
            ("upstream", "connection lost: the upstream's stream ended without being complete"),
            id="pitfall-103-cut",
        ),
        pytest.param(
            [ADDED, PART, delta("a"), done(message(text("a")))],
            ("upstream", "connection lost: the upstream's stream ended without being complete"),
            id="no-end",
        ),
        pytest.param(
            [event("output_item.added", output_index=0, item={"type": "function_call", "call_id": "c"})],
            ("upstream", "the upstream's stream is malformed: $.output[0].name: required, expected str"),
            id="malformed",
        ),
    ],
)
def test_failures(items: list[JSON], failure: tuple[str, str]) -> None:
    last = read(event("created", response=ANSWER), *items)[-1]
    assert isinstance(last, Failed)
    assert (last.failure.kind, last.failure.message) == failure


def test_nothing_follows_a_failure() -> None:
    assert read({"type": "error", "message": "no"}, ADDED, completed_event()) == [
        Failed(failure=Failure(kind="upstream", message="no", dialect="openai"))
    ]


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param(message(), Text(text="Hi", extra=own(item=ITEM | {"content": "empty"})), id="no-contents"),
        pytest.param(message(text("")), Text(text="Hi", extra=own(item=ITEM)), id="empty"),
        pytest.param(message(text("Ho")), Text(text="Ho", extra=own(item=ITEM)), id="another-text-is-believed"),
    ],
)
def test_an_end_that_sums_up_nothing_takes_nothing_back(ended: JSONObject, expected: Text) -> None:
    *_, end = read_answer(ADDED, PART, delta("Hi"), done(ended), completed_event())
    grown = BlockEnded(part=None if expected == Text(text="Hi", extra=own(item=ITEM)) else expected)
    assert end == grown


def test_a_call_and_a_thought_that_end_as_nothing_stay() -> None:
    grown = event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta="{}")
    added = event("output_item.added", output_index=0, item=call(0))
    assert read_answer(added, grown, done(call(0)), completed_event()) == block(0, "{}")
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    thinks = event("reasoning_text.delta", item_id="rs_1", output_index=0, content_index=0, delta="Hm")
    begun = event("output_item.added", output_index=0, item=thought)
    part = Reasoning(id="rs_1", summary=(), extra=own(item={"type": True}))
    assert read_answer(begun, thinks, done(thought), completed_event()) == [
        BlockStarted(part=part),
        ReasoningDelta(text="Hm"),
        BlockEnded(),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        event("output_item.added", output_index=0, item={"type": {}, "id": "x"}),
        event("output_item.added", output_index=0, item={"type": [], "id": "x"}),
        event("content_part.added", **AT, part={"type": [], "text": "x"}),
    ],
)
def test_a_type_that_is_no_word_fails_the_stream(broken: JSONObject) -> None:
    """C15."""
    failed = read(event("created", response=ANSWER), broken)[-1]
    assert isinstance(failed, Failed)
    assert failed.failure.message.startswith("the upstream's stream is malformed: ")


def test_an_id_that_is_no_word_names_nothing() -> None:
    first, second = message(text("a")), message(text("b"), id=["x"])
    events = read_answer(done(first), completed_event(first, second))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]


def test_items_without_a_name_are_told_by_their_place() -> None:
    first, second = message(text("a"), id=""), message(text("b"), id="")
    added = event("output_item.added", output_index=0, item=MESSAGE | {"id": ""})
    events = read_answer(added, done(first), completed_event(first, second))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]


def test_an_end_without_an_answer_is_an_end() -> None:
    end = read(event("created", response=ANSWER), {"type": "response.completed", "response": None})[-1]
    assert isinstance(end, Finished)
    assert end.finish == STOP.finish
