"""If an answer breaks off in the middle of its words, another target continues it from there.

Theory of operation. What the client has been given cannot be taken back, so the next target is called with the words so
far as the beginning of its turn, and its answer is spliced on: its own beginning is left out, its words are trimmed of
those that it repeats, its usage is added to what was used before. That is done only where words are all there is (no
call, no candidates in parallel) and only by targets that continue a turn; anything else fails as it would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.wrappers.fanout import UsageSum
from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.model.content import Reasoning, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Failed,
    Finished,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.fold import merge_usage
from xenoglot.model.request import Message
from xenoglot.text.resume_overlap import LONGEST_OVERLAP, overlap

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from xenoglot.backends.backend import EventAnswer
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

MOST_PARTS = 3
"""Targets that an answer is put together from."""


class SentAnswer:
    """The part of an answer that was sent, and whether another target could continue from there."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.open = False
        """Whether a block of words is open."""
        self._words: list[str] = []
        self._before = 0
        """How many of them are of blocks before the open one."""
        self._plain = True
        self._in_other = False
        self._over = False

    @property
    def text(self) -> str:
        """All words."""
        return "".join(self._words)

    @property
    def block(self) -> str:
        """The words of the block that is open."""
        return "".join(self._words[self._before :]) if self.open else ""

    @property
    def can_go_on(self) -> bool:
        """Whether it is nothing but words and reasoning, and no reasoning is incomplete."""
        return any(self._words) and self._plain and not self._in_other and not self._over

    def feed(self, event: Event) -> None:
        """Note what is given out."""
        match event:
            case BlockStarted(part=Text(text=text), candidate=0):
                self._before = len(self._words)
                self._words.append(text)
                self.open = True
            case TextDelta(text=text, candidate=0) if self.open:
                self._words.append(text)
            case BlockStarted(part=part, candidate=candidate):
                self._plain = self._plain and candidate == 0 and isinstance(part, Reasoning)
                self._in_other = True
            case BlockEnded():
                self.open = self._in_other = False
            case UsageReported(usage=usage):
                self.usage = merge_usage(self.usage, usage)
            case Finished():
                self._over = True
            case _:
                pass


class ResumeStage:
    """A stage over the answer of the target that continues: the rest of it, to be sent after `said`."""

    def __init__(self, said: SentAnswer) -> None:
        self._tail = said.text[-LONGEST_OVERLAP:]
        self._open = said.open
        self._block = said.block
        """What the open block held before."""
        self._cut = 0
        """How many characters of it are trimmed."""
        self._counts = UsageSum()
        self._held = ""
        self._trimming = True
        if said.usage is not None:
            self._counts.put(0, said.usage)

    def feed(self, event: Event, /) -> Sequence[Event]:  # noqa: PLR0911  one for each kind
        """Return what is given out."""
        match event:
            case Started():
                return ()
            case UsageReported(usage=usage):
                return (UsageReported(usage=self._counts.put(1, usage)),)
            case BlockStarted(part=Text(text=text), candidate=0) if self._trimming:
                begun: tuple[Event, ...] = () if self._open else (BlockStarted(part=Text(text="")),)
                self._open = True
                return (*begun, *self._words(text))
            case TextDelta(text=text, candidate=0) if self._trimming and self._open:
                return self._words(text)
            case BlockEnded():
                return (*self._rest(), self._whole(event))
            case BlockStarted() | Finished():
                return (*self._rest(), *self._ended(), event)
            case _:
                return (event,)

    def close(self) -> Sequence[Event]:
        """Return what was held back."""
        return self._rest()

    def _words(self, text: str) -> Sequence[Event]:
        """Hold words back for as long as they may repeat what was sent before."""
        self._held += text
        longer = range(len(self._held) + 1, len(self._tail) + 1)
        if any(self._tail[-length:].startswith(self._held) for length in longer):
            return ()
        return self._rest()

    def _rest(self) -> Sequence[Event]:
        if not self._trimming or not self._held:
            return ()
        self._trimming = False
        self._cut = overlap(self._tail, self._held)
        words = self._held[self._cut :]
        return (TextDelta(text=words),) if words else ()

    def _ended(self) -> Sequence[Event]:
        """End the block of words, where one is open."""
        ended = (BlockEnded(),) if self._open else ()
        self._open, self._block, self._cut = False, "", 0
        return ended

    def _whole(self, ended: BlockEnded) -> BlockEnded:
        """Return the end of a block; where it has the block's whole text, that includes what was sent before."""
        before, cut = self._block, self._cut
        self._open, self._block, self._cut = False, "", 0
        if isinstance(ended.part, Text) and (before or cut):
            return replace(ended, part=replace(ended.part, text=before + ended.part.text[cut:]))
        return ended


def continued(answer: EventAnswer, go_on: Callable[[SentAnswer, Failure], Awaitable[EventAnswer]]) -> EventAnswer:
    """Return `answer`; where it breaks off, `go_on` is called for the rest of it.

    `go_on` raises as a backend does where no target can continue; then the answer fails as it failed at first.
    """
    parts = [answer]
    batches = _batches(parts, go_on)

    async def aclose() -> None:
        await batches.aclose()
        await parts[-1].aclose()

    return replace(answer, batches=batches, aclose=aclose)


async def _batches(
    parts: list[EventAnswer], go_on: Callable[[SentAnswer, Failure], Awaitable[EventAnswer]]
) -> AsyncGenerator[Sequence[Event]]:
    said = SentAnswer()
    splice: ResumeStage | None = None
    while True:
        failure: Failure | None = None
        while batch := await _next(parts[-1].batches):
            failure = batch[-1].failure if isinstance(batch[-1], Failed) else None
            made = _made(batch if failure is None else batch[:-1], splice)
            if failure is not None and splice is not None:
                made = [*made, *splice.close()]
            for event in made:
                said.feed(event)
            if made:
                yield made
            if failure is not None:
                break
        if failure is None:
            return
        following = await _following(parts, said, failure, go_on)
        if following is None:
            yield (Failed(failure=failure),)
            return
        parts.append(following)
        splice = ResumeStage(said)


async def _next(batches: AsyncIterator[Sequence[Event]]) -> Sequence[Event]:
    """Return the next batch, none after the last; a failure raised in place of one becomes an event."""
    try:
        return await anext(batches)
    except StopAsyncIteration:  # not by a default: CPython 3.11 has a bug there
        return ()
    except FailureError as error:
        return (Failed(failure=error.failure),)


async def _following(
    parts: list[EventAnswer],
    said: SentAnswer,
    failure: Failure,
    go_on: Callable[[SentAnswer, Failure], Awaitable[EventAnswer]],
) -> EventAnswer | None:
    if not said.can_go_on or len(parts) == MOST_PARTS:
        return None
    await parts[-1].aclose()
    try:
        return await go_on(said, failure)
    except (FailureError, LossError, WireError):
        return None


def _made(batch: Sequence[Event], splice: ResumeStage | None) -> Sequence[Event]:
    return batch if splice is None else [made for event in batch for made in splice.feed(event)]


def begun_request(request: Request, said: SentAnswer) -> Request:
    """Return the request for the rest of an answer: its words so far are the turn that is to be continued."""
    words = Text(text=said.text)
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant":  # the client itself had begun the turn
        messages = (*request.messages[:-1], replace(last, content=(*last.content, words)))
    else:
        messages = (*request.messages, Message(role="assistant", content=(words,)))
    sampling = replace(request.sampling, max_tokens=remaining(said, request.sampling.max_tokens))
    return replace(request, messages=messages, sampling=sampling)


_BYTES_PER_TOKEN = 4
"""Of English prose, the coarsest: a continued answer must not end too early."""


def remaining(said: SentAnswer, most: int | None) -> int | None:
    """Return how many tokens the rest of an answer may have, if the whole of it may have `most`.

    Many servers report what was used at the end alone, and some a first count at the beginning: the words count, too.
    """
    if most is None:
        return None
    told = 0 if said.usage is None else said.usage.output_tokens or 0
    return max(1, most - max(told, len(said.text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN))
