"""Events are written as the life of an answer: what comes when, and what is told how often."""

import pytest

from tests.dialects.responses.wire import ANSWER, answered, encoded, event, written
from xenoglot.model.content import (
    Audio,
    Citation,
    Extra,
    Image,
    Logprob,
    Opaque,
    Origin,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
)
from xenoglot.model.events import (
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
from xenoglot.model.fold import unfold, unfold_part
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Finish, Usage

BEGUN = Started(id="resp_1", model="m", created=7)
END = Finished(finish=Finish(reason="stop"))
OBJECT: JSONObject = {"item": {"type": True}, "arguments": "object"}


def life(frames: list[JSON]) -> list[str]:
    """Return the kinds of events, without the `response.` before each."""
    return [frame if isinstance(frame, str) else frame["type"].removeprefix("response.") for frame in frames]


def inside(*parts: Text | Refusal | Reasoning | ToolCall | Opaque | Audio | Image) -> list[JSON]:
    """Return what is written of the parts of an answer, without its numbers, its start and its end."""
    frames, _ = written(unfold(answered(*parts)))
    return [{key: value for key, value in frame.items() if key != "sequence_number"} for frame in frames[2:-1]]


def test_the_life_of_an_answer() -> None:
    """pitfall-111, pitfall-113: numbers without a gap, and at the end all items once more."""
    frames, losses = written(
        [BEGUN, *unfold_part(Text(text="Hi")), END, UsageReported(usage=Usage(input_tokens=1, output_tokens=2))]
    )
    assert life(frames) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [frame["sequence_number"] for frame in frames] == list(range(9))
    last, item = frames[-1]["response"], frames[-2]["item"]
    assert last["output"] == [item]
    assert item == {
        "type": "message",
        "id": "msg_1_0",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
    }
    assert last["usage"]["total_tokens"] == 3
    assert losses == [
        "$.usage cached_tokens approximated (not reported, and the dialect requires a number: 0)",
        "$.usage cache_write_tokens approximated (not reported, and the dialect requires a number: 0)",
        "$.usage reasoning_tokens approximated (not reported, and the dialect requires a number: 0)",
    ]


def test_words_that_stand_together_are_one_message() -> None:
    frames = inside(Text(text="a"), Refusal(text="b"), ToolCall(id="c", name="f", arguments="{}"), Text(text="d"))
    added = [(frame["output_index"], frame["item"]["type"], frame["item"]["id"]) for frame in frames if "item" in frame]
    assert added[::2] == [(0, "message", "msg_1_0"), (1, "function_call", "fc_1_1"), (2, "message", "msg_1_2")]
    assert added[::2] == added[1::2]


def test_citations_and_probabilities() -> None:
    """pitfall-119."""
    cited = Citation(kind="url_citation", url="u", title="t", start=0, end=1)
    likely = Logprob(token="a", logprob=-0.5, bytes=(97,), top=())
    frames = inside(Text(text="a", citations=(cited,), logprobs=(likely,)))
    told = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    annotation = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    at = {"item_id": "msg_1_0", "output_index": 0, "content_index": 0}
    assert frames[2:5] == [
        event("output_text.delta", **at, delta="a", logprobs=[told]),
        event("output_text.annotation.added", **at, annotation_index=0, annotation=annotation),
        event("output_text.done", **at, text="a", logprobs=[told]),
    ]


def test_a_call_without_arguments_takes_none() -> None:
    """pitfall-94: what is parsed must be something."""
    at = {"item_id": "fc_1_0", "output_index": 0}
    assert inside(ToolCall(id="call_1", name="f"))[1:3] == [
        event("function_call_arguments.delta", **at, delta="{}"),
        event("function_call_arguments.done", **at, name="f", arguments="{}"),
    ]


def test_a_free_text_call() -> None:
    """pitfall-62."""
    item = {"type": "custom_tool_call", "id": "ctc_1_0", "status": "completed", "call_id": "c", "name": "patch"}
    at = {"item_id": "ctc_1_0", "output_index": 0}
    assert inside(ToolCall(id="c", name="patch", arguments="*** x", kind="custom")) == [
        event("output_item.added", output_index=0, item={**item, "status": "in_progress", "input": ""}),
        event("custom_tool_call_input.delta", **at, delta="*** x"),
        event("custom_tool_call_input.done", **at, input="*** x"),
        event("output_item.done", output_index=0, item={**item, "input": "*** x"}),
    ]


def test_a_thought_has_its_own_item() -> None:
    """pitfall-112: a part for each summary, opened before it grows; the seal of another comes with the end."""
    maker = Origin(dialect="messages")
    frames = inside(Reasoning(text="hm", summary=("a", "b"), signature="s", origin=maker), Text(text="x"))
    assert life(frames)[:13] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "reasoning_text.done",
        "content_part.done",
    ]
    item = frames[13]["item"]
    assert item.pop("encrypted_content").startswith("xenoglot:sealed:")
    assert item == {
        "type": "reasoning",
        "id": "rs_1_0",
        "status": "completed",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }


def test_what_cannot_grow_is_told_whole() -> None:
    frames = inside(Image(source=Remote(url="u")), Audio(transcript="said"), Opaque(dialect="x", data={}, text="words"))
    assert life(frames) == [
        "output_item.added",
        *("content_part.added", "output_text.delta", "output_text.done", "content_part.done") * 2,
        "output_item.done",
    ]
    assert [content["text"] for content in frames[-1]["item"]["content"]] == ["said", "words"]


def test_whole_or_streamed_it_is_the_same() -> None:
    answer = answered(Reasoning(text="hm"), Text(text="a"), ToolCall(id="c", name="f"), Opaque(dialect="x", data={}))
    frames, losses = written(unfold(answer))
    assert (frames[-1]["response"], losses) == encoded(answer)


def test_a_sign_of_life_is_an_event_that_every_client_reads() -> None:
    """pitfall-108: Codex has no eyes for comments; but before the answer begins there is nothing else to say."""
    growing: list[Event] = [BlockStarted(part=Text(text="")), TextDelta(text="a"), Ping(), BlockEnded()]
    frames, _ = written([Ping(), BEGUN, Ping(), *growing, Ping(), *unfold_part(Text(text="b")), END])
    assert [frame if isinstance(frame, str) else frame["type"] for frame in frames[:2]] == [
        ": ping",
        "response.created",
    ]
    lives = [frame for frame in frames[3:] if frame["type"] == "response.in_progress" or frame.get("delta") == ""]
    item = {"type": "message", "id": "msg_1_0", "status": "in_progress", "role": "assistant"}
    told = [{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}]
    assert [frame.get("delta", frame.get("response", {}).get("output")) for frame in lives] == [
        [],
        "",
        [{**item, "content": told}],
    ]


def test_a_thought_lives_by_what_grows_in_it() -> None:
    thought: list[Event] = [
        BlockStarted(part=Reasoning(text="")),
        Ping(),
        ReasoningDelta(text="a"),
        Ping(),
        BlockEnded(),
    ]
    frames, _ = written([BEGUN, *thought, END])
    assert life(frames)[2:8] == [
        "output_item.added",
        "in_progress",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
    ]
    assert frames[6]["delta"] == ""


def test_a_failure_is_told_inside_the_answer() -> None:
    """pitfall-104: what was done is in it, what was not is not."""
    failure = Failure(kind="rate_limit", message="Slow down.", retry_after=2.5)
    events = [BEGUN, *unfold_part(Text(text="a")), *unfold_part(ToolCall(id="c", name="f")), Failed(failure=failure)]
    frames, _ = written(events)
    answer = frames[-1]["response"]
    assert frames[-1]["type"] == "response.failed"
    assert (answer["status"], [item["type"] for item in answer["output"]]) == ("failed", ["message"])
    assert answer["error"] == {"code": "rate_limit_exceeded", "message": "Slow down. Please try again in 2.5s."}


def test_a_failure_before_the_start_has_a_start() -> None:
    frames, _ = written([Failed(failure=Failure(kind="context_overflow", message="too long"))])
    assert life(frames) == ["created", "in_progress", "failed"]
    assert frames[-1]["response"]["error"]["code"] == "context_length_exceeded"


def test_what_has_no_end_failed() -> None:
    """pitfall-103, U13."""
    frames, _ = written([BEGUN, BlockStarted(part=Text(text="")), TextDelta(text="a")])
    assert life(frames)[-1] == "failed"


def test_the_dialects_own_events_keep_their_item() -> None:
    """pitfall-115: an event that nobody else knows is numbered anew, and told of the item that is open here."""
    mood = OpaqueDelta(dialect="responses", data=event("x.mood", item_id="msg_9", output_index=9, mood=1))
    theirs = OpaqueDelta(dialect="y", data={}, name="z")
    frames, losses = written([BEGUN, BlockStarted(part=Text(text="")), mood, theirs, BlockEnded(), END])
    assert frames[4] == {**event("x.mood", item_id="msg_1_0", output_index=0, mood=1), "sequence_number": 4}
    assert losses == ["$ z dropped (only y has it)"]


def test_an_answer_goes_home_with_what_its_end_told() -> None:
    told = Extra(dialect="responses", fields={"tool_usage": 1, "event.beside": 2}, form={"completed_at": 9})
    begun = Started(id="resp_1", extra=Extra(dialect="responses", form={"echo": {"store": False}, "absent": ["error"]}))
    frames, losses = written([begun, Finished(finish=END.finish, extra=told)])
    assert frames[-1] == {
        **event("completed", sequence_number=2, beside=2),
        "response": {
            **{key: value for key, value in ANSWER.items() if key != "error"},
            "created_at": 0,
            "status": "completed",
            "completed_at": 9,
            "store": False,
            "tool_usage": 1,
        },
    }
    assert losses == []


def test_an_item_without_contents_is_added_before_it_is_done() -> None:
    empty = Text(text="", extra=Extra(dialect="responses", form={"item": {"type": True, "content": "empty"}}))
    frames, _ = written([BEGUN, BlockStarted(part=empty), BlockEnded(), END])
    assert life(frames) == ["created", "in_progress", "output_item.added", "output_item.done", "completed"]
    assert [frame["sequence_number"] for frame in frames] == list(range(5))


def test_a_content_that_turns_out_to_be_none_is_done_all_the_same() -> None:
    empty = Text(text="", extra=Extra(dialect="responses", form={"item": {"type": True, "content": "empty"}}))
    frames, _ = written([BEGUN, BlockStarted(part=Text(text="")), BlockEnded(part=empty), END])
    assert life(frames)[2:] == [
        "output_item.added",
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_arguments_that_are_an_object_are_told_when_they_are_there() -> None:
    call = ToolCall(id="c", name="f", arguments='{"a":1}', extra=Extra(dialect="responses", form=OBJECT))
    added, *_, done = inside(call)
    assert (added["item"].get("arguments"), done["item"]["arguments"]) == ("", {"a": 1})


@pytest.mark.parametrize("reason", ["length", "refusal"])
@pytest.mark.parametrize("last", [Text(text="Hi"), ToolCall(id="c", name="f", arguments='{"a":'), Reasoning(text="Hm")])
def test_the_item_in_which_an_answer_is_cut_is_incomplete(last: Text | ToolCall | Reasoning, reason: str) -> None:
    """pitfall-82."""
    response = answered(Reasoning(text="first"), last, finish=Finish(reason=reason))  # type: ignore[arg-type]
    body, _ = encoded(response)
    assert [item["status"] for item in body["output"]] == ["completed", "incomplete"]
    frames, _ = written(unfold(response))
    assert frames[-1]["response"]["output"] == body["output"]
    assert [frame["item"] for frame in frames if "output_item.done" in frame["type"]] == body["output"]


def test_many_citations_and_summaries_are_each_looked_at_once() -> None:
    """Half a minute if each looked at all before it."""
    citation = CitationDelta(citation=Citation(kind="url_citation", url="u"))
    cited: list[Event] = [TextDelta(text="a"), citation] * 5000
    frames, _ = written([BEGUN, BlockStarted(part=Text(text="")), *cited, BlockEnded(), END])
    notes = [frame["annotation"]["end_index"] for frame in frames if "annotation.added" in frame["type"]]
    assert notes == list(range(1, 5001))
    thoughts = [ReasoningDelta(text="a", summary=index) for index in range(3000)]
    frames, _ = written([BEGUN, BlockStarted(part=Reasoning()), *thoughts, BlockEnded(), END])
    assert [frame["text"] for frame in frames if frame["type"].endswith("summary_text.done")] == ["a"] * 3000


def test_a_sign_of_life_beside_a_content_that_is_told_at_its_end() -> None:
    """pitfall-107."""
    sound: list[Event] = [BlockStarted(part=Audio(id="a")), Ping(), BlockEnded()]
    frames, _ = written([BEGUN, *unfold_part(Text(text="Hi")), *sound, END])
    (alive,) = [frame for frame in frames[2:] if frame["type"] == "response.in_progress"]
    (item,) = alive["response"]["output"]
    assert [content["text"] for content in item["content"]] == ["Hi"]
