"""Answers put together from those of several targets: lawful wherever one breaks off, with all words and counts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.laws.streams import streams
from xenoglot.backends.backend import EventAnswer
from xenoglot.codec.grammar import Grammar
from xenoglot.errors import FailureError
from xenoglot.gateway.upstream.midstream_failover import SentAnswer, begun_request, continued, remaining
from xenoglot.model.content import Reasoning, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Failed,
    Finished,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, fold
from xenoglot.model.request import Message, Request, Sampling
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.model.events import Event

CUT = Failure(kind="upstream", message="connection lost: the upstream closed it", cause="closed")
STORY = "Once upon a time there was a fox."
BEGUN = (Started(id="x"), BlockStarted(part=Text(text="")), TextDelta(text=STORY))
STOP = Finished(finish=Finish(reason="stop"))


class Source:
    """The answer of one target, and how often it was closed; where it is `raised`, its failure is no event."""

    def __init__(self, events: Sequence[Event], *, raised: bool = False) -> None:
        self.closed = 0
        self._events = events
        self._raised = raised

    @property
    def answer(self) -> EventAnswer:
        """It as an answer."""
        return EventAnswer(batches=self._batches(), aclose=self.aclose)

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1

    async def _batches(self) -> AsyncGenerator[Sequence[Event]]:
        for event in self._events:
            if isinstance(event, Failed) and self._raised:
                raise FailureError(event.failure)
            yield (event,)


async def put_together(first: Source, *others: Source) -> list[Event]:
    """Return the events of `first`, gone on with by the others, one after the other; all are closed in the end."""
    left = [*others]

    async def go_on(_said: SentAnswer, failure: Failure) -> EventAnswer:
        if not left:
            raise FailureError(failure)
        return left.pop(0).answer

    answer = continued(first.answer, go_on)
    events = [event async for batch in answer.batches for event in batch]
    await answer.aclose()
    assert all(source.closed for source in (first, *others) if source not in left)
    return events


@settings(max_examples=40)
@given(st.data())
async def test_what_is_put_together_is_lawful(data: st.DataObject) -> None:
    sources = []
    for _ in range(2):
        whole = data.draw(streams(may_fail=False))
        place = data.draw(st.integers(0, len(whole)))
        sources.append(Source((*whole[:place], Failed(failure=CUT)), raised=data.draw(st.booleans())))
    sources.append(Source(data.draw(streams(may_fail=False))))
    grammar = Grammar()
    for event in await put_together(*sources):
        grammar.feed(event)
    grammar.close()


def texts(events: Sequence[Event]) -> str:
    """Return the words of an answer, by its deltas."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@given(st.data())
async def test_words_are_the_same_wherever_the_first_breaks_off(data: st.DataObject) -> None:
    text = data.draw(st.text(min_size=12, max_size=60))
    place = data.draw(st.integers(1, len(text)))
    again = data.draw(st.sampled_from([0, *range(8, place + 1)]))  # what the second repeats
    rest = text[place - again :]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(rest)), max_size=5)) | {0, len(rest)})
    longer = range(max(again + 1, 8), len(rest) + 1)
    assume(not any(text[:place].endswith(rest[:size]) for size in longer))  # the same by chance
    first = Source((*BEGUN[:2], TextDelta(text=text[:place]), Failed(failure=CUT)))
    pieces = [TextDelta(text=rest[start:end]) for start, end in pairwise(cuts)]
    following: list[Event] = [
        Started(),
        BlockStarted(part=Text(text="")),
        *pieces,
        BlockEnded(part=Text(text=rest)),
        STOP,
    ]
    events = await put_together(first, Source(following))
    answer = fold(events)
    assert isinstance(answer, Response)
    assert answer.candidates == (Candidate(content=(Text(text=text),), finish=STOP.finish),)
    assert texts(events) == text


async def test_a_thought_before_the_rest_changes_nothing_of_the_trimming() -> None:
    thought = (BlockStarted(part=Reasoning(text="")), ReasoningDelta(text="Hm."), SignatureDelta(signature="s"))
    words = (BlockStarted(part=Text(text="")), TextDelta(text=STORY[-12:] + " It ran."), BlockEnded())
    rest = (Started(), *thought, BlockEnded(), *words, STOP)
    answer = fold(await put_together(Source((*BEGUN, Failed(failure=CUT))), Source(rest)))
    assert isinstance(answer, Response)
    assert answer.candidates[0].content == (
        Text(text=STORY),
        Reasoning(text="Hm.", signature="s"),
        Text(text=" It ran."),
    )


async def test_one_that_is_done_at_once_ends_it() -> None:
    events = await put_together(Source((*BEGUN, Failed(failure=CUT))), Source((Started(), STOP)))
    assert events == [*BEGUN, BlockEnded(), STOP]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param((Started(), BlockStarted(part=Reasoning(text="")), ReasoningDelta(text="Hm")), id="in-a-thought"),
        pytest.param((Started(),), id="before-any-word"),
        pytest.param((*BEGUN, BlockStarted(part=Text(text=""), candidate=1)), id="two-candidates"),
        pytest.param((*BEGUN, BlockEnded(), STOP), id="behind-its-end"),
    ],
)
async def test_where_nobody_can_go_on(first: Sequence[Event]) -> None:
    events = await put_together(Source((*first, Failed(failure=CUT))), Source((Started(), STOP)))
    assert events == [*first, Failed(failure=CUT)]


async def test_what_was_held_back_of_the_second_is_known_to_the_third() -> None:
    asked: list[str] = []
    second = (Started(), BlockStarted(part=Text(text="")), TextDelta(text=STORY[-4:]), Failed(failure=CUT))
    sources = [Source(second), Source((Started(), STOP))]

    async def go_on(said: SentAnswer, _failure: Failure) -> EventAnswer:
        asked.append(said.text)
        return sources.pop(0).answer

    answer = continued(Source((*BEGUN, Failed(failure=CUT))).answer, go_on)
    events = [event async for batch in answer.batches for event in batch]
    assert texts(events) == asked[-1] == STORY + STORY[-4:]  # four characters may be the same by chance


async def test_usage_that_comes_in_parts_is_added_whole() -> None:
    first = (Started(), UsageReported(usage=Usage(input_tokens=5, output_tokens=1)), *BEGUN[1:])
    more = UsageReported(usage=Usage(output_tokens=8))
    rest = (Started(), UsageReported(usage=Usage(input_tokens=13, output_tokens=3)), STOP)
    folder = Folder()
    for event in await put_together(Source((*first, more, Failed(failure=CUT))), Source(rest)):
        folder.feed(event)
    assert folder.response().usage == Usage(input_tokens=18, output_tokens=11)


@pytest.mark.parametrize(
    ("usage", "most", "left"),
    [
        (None, None, None),
        (None, 100, 92),
        (Usage(input_tokens=5), 100, 92),
        (Usage(output_tokens=1), 100, 92),
        (Usage(output_tokens=30), 100, 70),
        (Usage(output_tokens=100), 100, 1),
    ],
)
def test_the_rest_may_have_what_is_left(usage: Usage | None, most: int | None, left: int | None) -> None:
    said = SentAnswer()
    for event in BEGUN:
        said.feed(event)
    if usage is not None:
        said.feed(UsageReported(usage=usage))
    assert remaining(said, most) == left


def test_a_turn_that_the_client_began_stays_one() -> None:
    said = SentAnswer()
    for event in BEGUN:
        said.feed(event)
    asked = Message(role="user", content=(Text(text="Tell."),))
    request = Request(
        model="m",
        messages=(asked, Message(role="assistant", content=(Text(text="Well: "),))),
        sampling=Sampling(max_tokens=50),
    )
    assert begun_request(request, said).messages == (
        asked,
        Message(role="assistant", content=(Text(text="Well: "), Text(text=STORY))),
    )
