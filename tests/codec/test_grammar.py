"""The grammar of streams: what it lets pass, what it refuses and in which words."""

from collections.abc import Iterator

import pytest

from xenoglot.codec.grammar import Grammar
from xenoglot.codec.stage import through
from xenoglot.errors import GrammarError
from xenoglot.model.content import (
    Audio,
    Citation,
    CompactedHistory,
    File,
    HostedCall,
    HostedResult,
    Image,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.events import (
    BETWEEN,
    DONE,
    GRAMMAR,
    GROWTH,
    IDLE,
    INSIDE,
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    HostedProgress,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish, Usage

STARTED = Started()
TEXT = BlockStarted(part=Text(text=""))
WORD = TextDelta(text="x")
END = BlockEnded()
USAGE = UsageReported(usage=Usage())
FINISHED = Finished(finish=Finish(reason="stop"))
FAILED = Failed(failure=Failure(kind="upstream", message="cut"))
NEWS = OpaqueDelta(dialect="messages", data={})
PING = Ping()

LAWFUL: dict[str, list[Event]] = {
    "the-shortest": [STARTED, FINISHED],
    "failed-at-once": [FAILED],
    "U13-failed-inside": [STARTED, TEXT, WORD, FAILED],
    "failed-between": [STARTED, TEXT, END, FAILED],
    "failed-after-the-end": [STARTED, FINISHED, FAILED],
    "pitfall-107-pings": [PING, STARTED, PING, TEXT, PING, WORD, END, PING, FINISHED, PING],
    "pitfall-97-98-usage": [STARTED, USAGE, TEXT, USAGE, END, USAGE, FINISHED, USAGE],
    "U34-news": [NEWS, STARTED, NEWS, TEXT, NEWS, END, NEWS, FINISHED, NEWS],
    "an-empty-block": [STARTED, TEXT, END, FINISHED],
    "U33-two-candidates-interleaved": [
        STARTED,
        TEXT,
        BlockStarted(part=Text(text=""), candidate=1),
        WORD,
        TextDelta(text="y", candidate=1),
        BlockEnded(candidate=1),
        Finished(finish=Finish(reason="stop"), candidate=1),
        WORD,
        END,
        FINISHED,
    ],
}


@pytest.mark.parametrize("events", [pytest.param(events, id=name) for name, events in LAWFUL.items()])
def test_lawful_streams_pass_unchanged(events: list[Event]) -> None:
    assert list(through(events, Grammar())) == events


UNLAWFUL: dict[str, tuple[list[Event], str]] = {
    "before-the-start": ([TEXT], "`BlockStarted` while `idle`: expected one of OpaqueDelta, Ping, Started"),
    "usage-before-the-start": ([USAGE], "`UsageReported` while `idle`: expected one of OpaqueDelta, Ping, Started"),
    "started-twice": (
        [STARTED, STARTED],
        "`Started` while `between`: expected one of BlockStarted, Finished, OpaqueDelta, Ping, UsageReported",
    ),
    "started-inside": (
        [STARTED, TEXT, STARTED],
        "`Started` while `between`: expected one of BlockStarted, Finished, OpaqueDelta, Ping, UsageReported",
    ),
    "pitfall-86-two-blocks-at-once": (
        [STARTED, TEXT, TEXT],
        (
            "`BlockStarted` while `inside`: expected one of ArgumentsDelta, AudioDelta, BlockEnded, CitationDelta, "
            "HostedProgress, OpaqueDelta, Ping, ReasoningDelta, SignatureDelta, TextDelta, UsageReported"
        ),
    ),
    "a-delta-without-a-block": (
        [STARTED, WORD],
        "`TextDelta` while `between`: expected one of BlockStarted, Finished, OpaqueDelta, Ping, UsageReported",
    ),
    "a-block-ended-twice": (
        [STARTED, TEXT, END, END],
        "`BlockEnded` while `between`: expected one of BlockStarted, Finished, OpaqueDelta, Ping, UsageReported",
    ),
    "U16-a-block-after-the-end": (
        [STARTED, FINISHED, TEXT],
        "`BlockStarted` while `done`: expected one of OpaqueDelta, Ping, UsageReported",
    ),
    "finished-twice": (
        [STARTED, FINISHED, FINISHED],
        "`Finished` while `done`: expected one of OpaqueDelta, Ping, UsageReported",
    ),
    "U16-after-a-failure": ([STARTED, FAILED, PING], "`Ping` after `Failed`: nothing may follow"),
    "failed-twice": ([FAILED, FAILED], "`Failed` after `Failed`: nothing may follow"),
    "U14-nothing": ([], "the stream ended without `Finished` or `Failed`"),
    "U14-only-started": ([STARTED], "the stream ended without `Finished` or `Failed`"),
    "U14-cut-between": ([STARTED, TEXT, END], "the stream ended without `Finished` or `Failed`"),
    "U33-one-of-two-is-not-finished": (
        [STARTED, BlockStarted(part=Text(text=""), candidate=1), FINISHED],
        "the stream ended without `Finished` or `Failed`",
    ),
    "a-block-that-ends-as-another": (
        [STARTED, TEXT, BlockEnded(part=Refusal(text=""))],
        "a `Text` ended as a `Refusal`",
    ),
}


@pytest.mark.parametrize(("events", "error"), [pytest.param(*case, id=name) for name, case in UNLAWFUL.items()])
def test_unlawful_streams_are_refused(events: list[Event], error: str) -> None:
    with pytest.raises(GrammarError) as caught:
        list(through(events, Grammar()))
    assert str(caught.value) == error


PARTS: dict[type[Part], Part] = {
    Text: Text(text=""),
    Refusal: Refusal(text=""),
    Reasoning: Reasoning(),
    ToolCall: ToolCall(id="1", name="f"),
    Audio: Audio(),
    Image: Image(source=Remote("https://example.com/a.png")),
    Video: Video(source=Remote("https://example.com/a.mp4")),
    File: File(source=Remote("https://example.com/a.pdf")),
    ToolResult: ToolResult(call_id="1"),
    HostedCall: HostedCall(id="1", kind="web_search"),
    HostedResult: HostedResult(call_id="1", kind="web_search"),
    CompactedHistory: CompactedHistory(text="x"),
    Opaque: Opaque(dialect="messages", data={}),
}
DELTAS: list[Event] = [
    WORD,
    CitationDelta(citation=Citation(kind="url_citation")),
    ReasoningDelta(text="x"),
    SignatureDelta(signature="x"),
    ArgumentsDelta(text="x"),
    AudioDelta(data="eA=="),
    HostedProgress(),
    NEWS,
]


def growths() -> Iterator[tuple[Part, Event]]:
    yield from ((part, delta) for part in PARTS.values() for delta in DELTAS)


@pytest.mark.parametrize(
    ("part", "delta"),
    [pytest.param(*case, id=f"pitfall-96-{type(case[1]).__name__}-in-{type(case[0]).__name__}") for case in growths()],
)
def test_a_block_grows_by_its_own_deltas_alone(part: Part, delta: Event) -> None:
    events: list[Event] = [STARTED, BlockStarted(part=part), delta, END, FINISHED]
    if type(delta) in (*GROWTH[type(part)], OpaqueDelta):
        assert list(through(events, Grammar())) == events
    else:
        with pytest.raises(GrammarError) as caught:
            list(through(events, Grammar()))
        block = type(part).__name__
        assert str(caught.value) == f"`{type(delta).__name__}` in a `{block}`: it does not grow by that"


def test_the_tables_name_every_event_and_part() -> None:
    """The table is the documentation: no event is missing from it, none leads nowhere."""
    named = {kind for following in GRAMMAR.values() for kind in following}
    assert named | {Failed} == set(Event.__args__)
    assert {state for following in GRAMMAR.values() for state in following.values()} | {IDLE} == set(GRAMMAR)
    assert set(GRAMMAR) == {IDLE, BETWEEN, INSIDE, DONE}
    assert set(GROWTH) == set(Part.__args__) == set(PARTS)
    assert {delta for growth in GROWTH.values() for delta in growth} | {OpaqueDelta} == {type(d) for d in DELTAS}
