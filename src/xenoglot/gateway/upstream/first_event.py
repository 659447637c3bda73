"""The beginning of an answer, looked at before any of it is passed on: till then another target can take its place."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec.structs import replace

from xenoglot.backends.backend import EventAnswer, Piece
from xenoglot.codec.responses.answer_start import AnswerStart, failure_of
from xenoglot.errors import FailureError
from xenoglot.model.events import ArgumentsDelta, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.gateway.config.targets import StreamBuffer
    from xenoglot.model.events import Event

Item = TypeVar("Item", bound="Piece | Sequence[Event]")


async def begun(answer: Answer, hold_back: StreamBuffer) -> Answer:
    """Return `answer` once it has begun; what was looked at is read again from what is returned.

    Raises:
        FailureError: it fails before that, or while its beginning is held back.
    """
    if isinstance(answer, EventAnswer):
        batches = await _begun(answer.batches, hold_back)
        return replace(answer, batches=batches, aclose=partial(_stop, batches, answer.aclose))
    pieces = await _begun(answer.pieces, hold_back)
    return replace(answer, pieces=pieces, aclose=partial(_stop, pieces, answer.aclose))


async def gathered(answer: Answer) -> Answer:
    """Return the whole of `answer`.

    Raises:
        FailureError: it does not come whole.
    """
    if isinstance(answer, EventAnswer):
        batches = [batch async for batch in answer.batches]
        _check(batches)
        return replace(answer, batches=_Replayed(deque(batches)))
    pieces = [piece async for piece in answer.pieces]
    _check(pieces)
    return replace(answer, pieces=_Replayed(deque(pieces)))


class _Replayed(Generic[Item]):
    """What was read already, then the rest. `pending` reads on, in a task of its own."""

    __slots__ = ("_items", "_pending", "_rest")

    def __init__(
        self, items: deque[Item], rest: AsyncIterator[Item] | None = None, pending: asyncio.Task[Item] | None = None
    ) -> None:
        self._items = items
        self._rest = rest
        self._pending = pending

    def __aiter__(self) -> _Replayed[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._items:
            return self._items.popleft()
        if self._pending is not None:
            item = await self._pending
            self._pending = None
            return item
        if self._rest is None:
            raise StopAsyncIteration
        return await anext(self._rest)

    async def stop(self) -> None:
        """Stop reading: a source cannot be closed while it is read."""
        pending, self._pending = self._pending, None
        if pending is not None and not pending.done():
            pending.cancel()
            await asyncio.wait((pending,))


async def _stop(items: _Replayed[Item], close: Callable[[], Awaitable[None]]) -> None:
    try:
        await items.stop()
    finally:
        await close()


async def _begun(items: AsyncIterator[Item], hold_back: StreamBuffer) -> _Replayed[Item]:
    read: deque[Item] = deque()
    start = AnswerStart()
    async for item in items:
        read.append(item)
        if start.feed(_events(item)) != "waiting":
            _check((item,))
            break
    else:
        return _Replayed(read)
    if hold_back.seconds > 0:
        return await _held_back(read, items, hold_back)
    return _Replayed(read, items)


async def _held_back(read: deque[Item], items: AsyncIterator[Item], hold_back: StreamBuffer) -> _Replayed[Item]:
    """Read on for a while, or until there is enough."""
    until = asyncio.get_running_loop().time() + hold_back.seconds
    size = _size(read[-1])
    while size < hold_back.bytes:
        pending = asyncio.ensure_future(anext(items))
        pending.add_done_callback(_seen)  # nobody waits for it any more where the client leaves
        try:
            await asyncio.wait((pending,), timeout=until - asyncio.get_running_loop().time())
        except asyncio.CancelledError:
            pending.cancel()
            await asyncio.wait((pending,))
            raise
        if not pending.done():
            return _Replayed(read, items, pending)
        try:
            item = pending.result()
        except StopAsyncIteration:
            return _Replayed(read)
        read.append(item)
        _check((item,))
        size += _size(item)
    return _Replayed(read, items)


def _seen(pending: asyncio.Task[Item]) -> None:
    """Retrieve the outcome of a read, so that asyncio does not log it."""
    if not pending.cancelled():
        pending.exception()


def _check(items: Sequence[Item]) -> None:
    """Refuse what fails.

    Raises:
        FailureError: something in it does.
    """
    for item in items:
        failure = failure_of(_events(item))
        if failure is not None:
            raise FailureError(failure)


def _events(item: Piece | Sequence[Event]) -> Sequence[Event]:
    return item.events if isinstance(item, Piece) else item


def _size(item: Piece | Sequence[Event]) -> int:
    """Return about how many bytes of an answer it holds."""
    if isinstance(item, Piece):
        return len(item.data)
    return sum(len(event.text) for event in item if isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta))
