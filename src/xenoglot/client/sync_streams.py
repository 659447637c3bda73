"""Streams for blocking callers: read in the client's event loop, returned in the caller's thread."""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from xenoglot.client.call.answer_stream import CLOSED_EARLY
from xenoglot.client.thread_stream import ThreadStream
from xenoglot.model.events import Event, TextDelta

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from xenoglot.client.call.answer_stream import AsyncItems, AsyncReplyStream
    from xenoglot.client.loop_thread import LoopThread
    from xenoglot.client.results.result import Reply
    from xenoglot.model.response import Response

Item = TypeVar("Item")


class Items(Generic[Item]):
    """Iterator over the items of an answer, used in `with`; leaving the block stops the upstream at once.

    It behaves like `AsyncItems`. A stream that is not closed stops when it is collected; its `owner`, the client, lives
    as long as the stream.
    """

    def __init__(self, portal: LoopThread, items: AsyncItems[Item], owner: object = None) -> None:
        self._portal = portal
        self._owner = owner
        self._inner = items
        self._pump = ThreadStream(portal, items)
        self._ready: deque[Item] = deque()
        self._started = False
        self._ended = False
        """Whether all items were returned."""
        self._finalizer = weakref.finalize(self, portal.schedule, self._pump.aclose)
        self._finalizer.atexit = False  # then the portal ends everything

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if not self._finalizer.alive:
            raise StopIteration
        if not self._ready:
            self._start()
        try:
            if not self._ready:
                self._ready.extend(self._pump.receive())
            if not self._ready:
                self._ended = self._finalizer.alive
                raise StopIteration  # noqa: TRY301  what is read has to be told apart here
            item = self._inner._record(self._ready.popleft())  # noqa: SLF001  the same room
        except StopIteration:
            raise
        except BaseException:  # it failed, or was interrupted: then an item may be lost, and none may follow it
            self.close()
            raise
        return item

    def close(self) -> None:
        """Stop. Does nothing the second time, on a closed client, or in another process."""
        if not self._finalizer.alive:
            return
        try:
            with suppress(RuntimeError):  # the client is closed, and the stream with it, or is another process's
                self._portal.call(self._pump.aclose)
            self._finalizer.detach()
        except BaseException:  # interrupted
            self._finalizer()
            raise

    def __enter__(self) -> Self:
        if self._finalizer.alive:
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        if self._portal.in_other_process:
            raise RuntimeError("this stream belongs to another process")
        if not self._started:
            try:
                self._portal.call(self._pump.start)
                self._started = True
            except Exception:
                raise
            except BaseException:  # interrupted: `__exit__` may not be called
                self.close()
                raise


class ReplyStream(Items[Event]):
    """One answer, event by event; returned by `Client.stream`.

    Iterating it yields events, `texts()` yields pieces of text, `reply()` returns the complete `Reply`; `response` is
    the answer received so far.

    Args:
        portal: The thread with the client's event loop.
        items: The stream in that loop.
        owner: The client, which lives as long as the stream.

    Raises:
        FailureError: While reading: no answer, or an incomplete one.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> client = xenoglot.Client(Callable(lambda request: iter(["One, ", "two."])))
        >>> with client.stream("Count.") as stream:
        ...     print(list(stream.texts()))
        ['One, ', 'two.']
    """

    def __init__(self, portal: LoopThread, items: AsyncReplyStream, owner: object = None) -> None:
        super().__init__(portal, items, owner)
        self._stream = items

    @property
    def response(self) -> Response:
        """The answer received so far; a growing block has the content received so far."""
        return self._stream.response

    def texts(self) -> Generator[str, None, None]:
        """Yield the text of the first candidate as it arrives."""
        for event in self:
            if isinstance(event, TextDelta) and event.candidate == 0:
                yield event.text

    def reply(self) -> Reply:
        """Return the complete answer, reading what is left of the stream.

        Raises:
            FailureError: no complete answer.
            RuntimeError: the stream was closed before its end.
        """
        for _ in self:
            pass
        if not self._ended:
            raise RuntimeError(CLOSED_EARLY)
        return self._portal.call(self._stream.reply)
