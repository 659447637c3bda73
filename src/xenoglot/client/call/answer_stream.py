"""Async stream of one answer: its events, the answer received so far, and the complete answer at the end."""

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
    """An answer that has started."""

    def batches(self) -> AsyncGenerator[Sequence[Item_co], None]:
        """Yield the items in batches, as they arrived together; no batch is empty."""
        ...

    async def aclose(self) -> None:
        """Stop the upstream at once."""
        ...


class AsyncItems(Generic[Item]):
    """Async iterator over the items of an answer, used in `async with`; leaving the block stops the upstream at once.

    The request is sent on entry or at the first item. Errors are raised when the next item is awaited: a truncated
    answer always raises, it never looks complete.
    """

    def __init__(self, begin: Callable[[], Awaitable[Source[Item]]], seconds: float | None) -> None:
        self._open = begin
        self._seconds = seconds
        self._deadline: float | None = None
        self._source: Source[Item] | None = None
        self._batches: AsyncGenerator[Sequence[Item], None] | None = None
        self._ready: deque[Item] = deque()
        """Items that arrived and were not returned yet."""
        self._ended = False
        self._closed = False
        self._busy = False
        """Whether a task waits for an item."""

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
        """Stop. A task that waits for an item gets the end of the stream. Later calls do nothing."""
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
        """Record an item that is returned to the caller."""
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
    """One answer, event by event; returned by `AsyncClient.stream`.

    Iterating it yields events, `texts()` yields pieces of text, `reply()` returns the complete `Reply`; `response` is
    the answer received so far.

    Args:
        begin: Sends the request, and returns the answer that has started.
        finish: Returns the reply for a complete answer.
        seconds: Time limit of the whole stream. `None` is no limit.

    Raises:
        FailureError: While reading: no answer, or an incomplete one.

    Example:
        >>> import asyncio, xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> async def main():
        ...     client = xenoglot.AsyncClient(Callable(lambda request: iter(["One, ", "two."])))
        ...     async with client.stream("Count.") as stream:
        ...         print([text async for text in stream.texts()])
        >>> asyncio.run(main())
        ['One, ', 'two.']
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
        """The answer received so far; a growing block has the content received so far."""
        return self._folder.response(growing=True)

    async def texts(self) -> AsyncGenerator[str, None]:
        """Yield the text of the first candidate as it arrives."""
        async for event in self:
            if isinstance(event, TextDelta) and event.candidate == 0:
                yield event.text

    async def reply(self) -> Reply:
        """Return the complete answer, reading what is left of the stream.

        Raises:
            FailureError: no complete answer.
            RuntimeError: the stream was closed before its end.
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
