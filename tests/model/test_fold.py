"""Folding: a stream to its answer, and an answer to its shortest stream."""

import pytest

from xenoglot.model.content import (
    Audio,
    Citation,
    Extra,
    Inline,
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
from xenoglot.model.fold import Folder, fold, merge_usage, unfold
from xenoglot.model.response import Candidate, Finish, Response, Usage

STOP = Finish(reason="stop", raw="stop", dialect="chat")
EXTRA = Extra(dialect="chat", fields={"x": 1})
LOGPROB = Logprob(token="a", logprob=-0.5, bytes=(97,))
CITATION = Citation(kind="url_citation", url="https://example.com", start=0, end=3)

GROWN: dict[str, tuple[list[Event], Part]] = {
    "text": (
        [BlockStarted(part=Text(text="")), TextDelta(text="He"), TextDelta(text="y"), BlockEnded()],
        Text(text="Hey"),
    ),
    "text-begun": ([BlockStarted(part=Text(text="He")), TextDelta(text="y"), BlockEnded()], Text(text="Hey")),
    "text-empty": ([BlockStarted(part=Text(text="")), BlockEnded()], Text(text="")),
    "pitfall-119-logprobs-and-citations": (
        [
            BlockStarted(part=Text(text="", extra=EXTRA)),
            TextDelta(text="He", logprobs=(LOGPROB,)),
            CitationDelta(citation=CITATION),
            TextDelta(text="y", logprobs=(LOGPROB,)),
            BlockEnded(),
        ],
        Text(text="Hey", logprobs=(LOGPROB, LOGPROB), citations=(CITATION,), extra=EXTRA),
    ),
    "refusal": (
        [BlockStarted(part=Refusal(text="")), TextDelta(text="No", logprobs=(LOGPROB,)), BlockEnded()],
        Refusal(text="No", logprobs=(LOGPROB,)),
    ),
    "pitfall-95-arguments": (
        [
            BlockStarted(part=ToolCall(id="1", name="f")),
            ArgumentsDelta(text='{"a":"\\u'),
            ArgumentsDelta(text='00e4"}'),
            BlockEnded(),
        ],
        ToolCall(id="1", name="f", arguments='{"a":"\\u00e4"}'),
    ),
    "reasoning": (
        [
            BlockStarted(part=Reasoning(text="")),
            ReasoningDelta(text="h"),
            ReasoningDelta(text="m"),
            SignatureDelta(signature="old"),
            SignatureDelta(signature="new"),
            BlockEnded(),
        ],
        Reasoning(text="hm", signature="new"),
    ),
    "pitfall-106-a-signature-without-a-thought": (
        [BlockStarted(part=Reasoning(text="")), SignatureDelta(signature="s"), BlockEnded()],
        Reasoning(text="", signature="s"),
    ),
    "reasoning-not-said": ([BlockStarted(part=Reasoning(encrypted="e")), BlockEnded()], Reasoning(encrypted="e")),
    "reasoning-summaries": (
        [
            BlockStarted(part=Reasoning(summary=("a",), origin=Origin(dialect="responses"))),
            ReasoningDelta(text="c", summary=2),
            ReasoningDelta(text="b", summary=0),
            ReasoningDelta(text="d", summary=2),
            BlockEnded(),
        ],
        Reasoning(summary=("ab", "", "cd"), origin=Origin(dialect="responses")),
    ),
    "audio": (
        [
            BlockStarted(part=Audio(id="a")),
            AudioDelta(data="eA", transcript="he"),
            AudioDelta(transcript="y"),
            AudioDelta(data="=="),
            BlockEnded(),
        ],
        Audio(id="a", source=Inline("eA=="), transcript="hey"),
    ),
    "audio-begun": (
        [
            BlockStarted(part=Audio(source=Inline("eA", "audio/wav"), transcript="h")),
            AudioDelta(data="==", transcript="i"),
            BlockEnded(),
        ],
        Audio(source=Inline("eA==", "audio/wav"), transcript="hi"),
    ),
    "the-whole-that-the-wire-said-counts": (
        [
            BlockStarted(part=Opaque(dialect="messages", data={"input": {}})),
            OpaqueDelta(dialect="messages", data={"partial_json": "{"}),
            BlockEnded(part=Opaque(dialect="messages", data={"input": {"a": 1}})),
        ],
        Opaque(dialect="messages", data={"input": {"a": 1}}),
    ),
}


@pytest.mark.parametrize(("events", "part"), [pytest.param(*case, id=name) for name, case in GROWN.items()])
def test_a_block_grows_into_its_part(events: list[Event], part: Part) -> None:
    assert fold([Started(), Ping(), *events, Finished(finish=STOP)]) == Response(
        candidates=(Candidate(content=(part,), finish=STOP),)
    )


def test_the_whole_answer() -> None:
    """U33: candidates that interleave are kept apart; pitfall-98, pitfall-99: of usages the last counts, by field."""
    events: list[Event] = [
        Started(id="1", model="m", created=5, service_tier="flex", extra=EXTRA),
        UsageReported(usage=Usage(input_tokens=9, cache_read=4, output_tokens=1)),
        BlockStarted(part=Text(text=""), candidate=1),
        BlockStarted(part=Text(text="")),
        TextDelta(text="one", candidate=1),
        TextDelta(text="zero"),
        BlockEnded(candidate=1),
        Finished(finish=STOP, candidate=1, extra=EXTRA),
        BlockEnded(),
        BlockStarted(part=ToolCall(id="c", name="f")),
        BlockEnded(),
        Finished(finish=Finish(reason="tool_calls")),
        UsageReported(usage=Usage(input_tokens=9, output_tokens=7, reasoning=0)),
    ]
    assert fold(events) == Response(
        id="1",
        model="m",
        created=5,
        service_tier="flex",
        extra=EXTRA,
        candidates=(
            Candidate(
                content=(Text(text="zero"), ToolCall(id="c", name="f")),
                finish=Finish(reason="tool_calls"),
            ),
            Candidate(content=(Text(text="one"),), finish=STOP, extra=EXTRA),
        ),
        usage=Usage(input_tokens=9, cache_read=4, output_tokens=7, reasoning=0),
    )


def test_a_failure_is_no_answer() -> None:
    """pitfall-104: what came before a failure is not an answer; one who looks on can still have it."""
    failure = Failure(kind="upstream", message="cut")
    events: list[Event] = [
        Started(id="1"),
        BlockStarted(part=Text(text="")),
        TextDelta(text="a"),
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="b"),
        Failed(failure=failure),
    ]
    assert fold(events) == failure
    folder = Folder()
    for event in events:
        folder.feed(event)
    assert folder.failure == failure
    assert folder.response() == Response(id="1", candidates=(Candidate(content=(Text(text="a"),)),))


def test_a_stream_without_an_end_has_no_finish() -> None:
    assert fold([Started(), BlockStarted(part=Text(text="a")), BlockEnded()]) == Response(
        candidates=(Candidate(content=(Text(text="a"),)),)
    )
    assert fold([]) == Response()


MERGES: dict[str, tuple[Usage | None, Usage, Usage]] = {
    "the-first": (None, Usage(input_tokens=1), Usage(input_tokens=1)),
    "pitfall-99-replaced": (Usage(output_tokens=3), Usage(output_tokens=5), Usage(output_tokens=5)),
    "pitfall-100-kept": (
        Usage(input_tokens=1, cache_read=1, cache_write=2),
        Usage(output_tokens=5),
        Usage(input_tokens=1, cache_read=1, cache_write=2, output_tokens=5),
    ),
    "zero-is-said": (Usage(reasoning=3), Usage(reasoning=0), Usage(reasoning=0)),
    "what-was-counted-replaces-an-estimate": (
        Usage(output_tokens=3, estimated=True),
        Usage(output_tokens=4, extra=EXTRA),
        Usage(output_tokens=4, extra=EXTRA),
    ),
}


@pytest.mark.parametrize(
    ("earlier", "later", "merged"), [pytest.param(*case, id=name) for name, case in MERGES.items()]
)
def test_usages_are_snapshots(earlier: Usage | None, later: Usage, merged: Usage) -> None:
    assert merge_usage(earlier, later) == merged


def test_an_answer_unfolds_to_its_shortest_stream() -> None:
    response = Response(
        id="1",
        model="m",
        usage=Usage(input_tokens=1),
        candidates=(
            Candidate(
                content=(
                    Reasoning(text="hm", summary=("s",), signature="sig"),
                    Text(text="Hey", citations=(CITATION,)),
                    ToolCall(id="c", name="f", arguments="{}"),
                    Audio(source=Remote("https://example.com/a.wav")),
                ),
                finish=STOP,
            ),
            Candidate(content=(Refusal(text="No"), Text(text="")), finish=STOP, extra=EXTRA),
        ),
    )
    assert list(unfold(response)) == [
        Started(id="1", model="m"),
        BlockStarted(part=Reasoning(text="", summary=())),
        ReasoningDelta(text="hm"),
        ReasoningDelta(text="s", summary=0),
        SignatureDelta(signature="sig"),
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="Hey"),
        CitationDelta(citation=CITATION),
        BlockEnded(),
        BlockStarted(part=ToolCall(id="c", name="f")),
        ArgumentsDelta(text="{}"),
        BlockEnded(),
        BlockStarted(part=Audio(source=Remote("https://example.com/a.wav"))),
        BlockEnded(),
        Finished(finish=STOP),
        BlockStarted(part=Refusal(text=""), candidate=1),
        TextDelta(text="No", candidate=1),
        BlockEnded(candidate=1),
        BlockStarted(part=Text(text=""), candidate=1),
        BlockEnded(candidate=1),
        UsageReported(usage=Usage(input_tokens=1)),
        Finished(finish=STOP, candidate=1, extra=EXTRA),
    ]


def test_an_answer_of_no_candidates_keeps_its_usage() -> None:
    response = Response(id="1", usage=Usage(input_tokens=1))
    assert list(unfold(response)) == [Started(id="1"), UsageReported(usage=Usage(input_tokens=1))]
    assert fold(unfold(response)) == response


def test_what_grows_can_be_looked_at() -> None:
    folder = Folder()
    for event in (Started(id="r"), BlockStarted(part=Text(text="")), TextDelta(text="Hel")):
        folder.feed(event)
    assert folder.response(growing=True).candidates == (Candidate(content=(Text(text="Hel"),)),)
    assert folder.response().candidates == (Candidate(),)
    folder.feed(BlockEnded())
    assert folder.response(growing=True) == folder.response()
