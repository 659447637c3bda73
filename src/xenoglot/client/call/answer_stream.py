"""A streamed answer: its events as they come, what has grown of it so far, and the whole of it at the end."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from xenoglot.client.call.retry import deadline_after, wait_until
from xenoglot.model.events import Event, TextDelta
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from types import TracebackType

    from xenoglot.client.call.attempt import StartedAnswer
    from xenoglot.client.results.result import Reply
    from xenoglot.model.response import Response

CLOSED_EARLY = "the stream was left before its end: there is no whole answer"

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Source(Protocol[Item_co]):
    """An answer that has begun."""

    def batches(self) -> AsyncGenerator[Sequence[Item_co], None]:
        """Yield what it is made of, what came together in one; none is empty."""
        ...

    async def aclose(self) -> None:
        """Stop the upstream at once."""
        ...


class AsyncItems(Generic[Item]):
    """What a stream gives, to be iterated in `async with`: leaving the block stops the upstream at once.

    Nothing is sent before it is entered or the first item is asked for. Whatever goes wrong on the way is raised where
    the next item is waited for: an answer that breaks off never looks like one that is over.
    """

    def __init__(self, begin: Callable[[], Awaitable[Source[Item]]], seconds: float | None) -> None:
        self._open = begin
        self._seconds = seconds
        self._deadline: float | None = None
        self._source: Source[Item] | None = None
        self._batches: AsyncGenerator[Sequence[Item], None] | None = None
        self._ready: deque[Item] = deque()
        """What has come, and was not asked for yet."""
        self._ended = False
        self._closed = False
        self._busy = False
        """Whether somebody waits for an item."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if self._closed:
            raise StopAsyncIteration
        if not self._ready:
            self._ready.extend(await self._more())
            if not self._ready:
                raise StopAsyncIteration
        return self._record(self._ready.popleft())

    async def aclose(self) -> None:
        """Stop. Whoever waits for an item hears that there is none any more. Does nothing the second time."""
        self._closed = True
        if self._busy:
            if self._source is not None:
                with suppress(RuntimeError):  # what runs in this process is closed by whoever waits for it
                    await self._source.aclose()
            return
        batches, self._batches = self._batches, None
        try:
            if batches is not None:
                await batches.aclose()
        finally:
            if self._source is not None:
                await self._source.aclose()

    async def __aenter__(self) -> Self:
        if self._batches is None and not self._closed:
            await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _more(self) -> Sequence[Item]:
        """Return what comes next, all that came together; nothing where there is no more."""
        if self._closed:
            return ()
        batches = self._batches or await self._start()
        if self._closed:  # while it began
            await self.aclose()
            return ()
        try:
            batch = await self._await_batch(batches)
        except StopAsyncIteration:
            self._ended = not self._closed
            await self.aclose()
            return ()
        except Exception:
            stopped = self._closed
            await self.aclose()
            if stopped:  # by somebody else, while this was waited for
                return ()
            raise
        except BaseException:
            await self.aclose()
            raise
        if self._closed:
            await self.aclose()
            return ()
        return batch

    def _record(self, item: Item) -> Item:
        """Note what is given out now."""
        return item

    async def _await_batch(self, batches: AsyncGenerator[Sequence[Item], None]) -> Sequence[Item]:
        self._busy = True
        try:
            return await wait_until(self._deadline, anext(batches))
        finally:
            self._busy = False

    async def _start(self) -> AsyncGenerator[Sequence[Item], None]:
        self._deadline = deadline_after(self._seconds)
        self._source = await wait_until(self._deadline, self._open())
        self._batches = self._source.batches()
        return self._batches


class AsyncReplyStream(AsyncItems[Event]):
    """One answer, event by event.

    async with client.stream("Hello") as stream:
        async for text in stream.texts():
            print(text, end="")
        reply = await stream.reply()
    """

    def __init__(
        self,
        begin: Callable[[], Awaitable[StartedAnswer]],
        finish: Callable[[StartedAnswer, Response], Awaitable[Reply]],
        seconds: float | None = None,
    ) -> None:
        super().__init__(self._started, seconds)
        self._begin_answer = begin
        self._finish = finish
        self._folder = Folder()
        self._answer: StartedAnswer | None = None

    @property
    def response(self) -> Response:
        """The answer as far as it has come; of a block that still grows, what is there."""
        return self._folder.response(growing=True)

    async def texts(self) -> AsyncGenerator[str, None]:
        """Yield the words of the first candidate as they come."""
        async for event in self:
            if isinstance(event, TextDelta) and event.candidate == 0:
                yield event.text

    async def reply(self) -> Reply:
        """Return the whole answer; what has not been read of it yet is read now.

        Raises:
            FailureError: there is none.
            RuntimeError: the stream was left before its end.
        """
        async for _ in self:
            pass
        if self._answer is None or not self._ended:
            raise RuntimeError(CLOSED_EARLY)
        return await self._finish(self._answer, self._folder.response())

    def _record(self, item: Event) -> Event:
        self._folder.feed(item)
        return item

    async def _started(self) -> StartedAnswer:
        self._answer = await self._begin_answer()
        return self._answer
