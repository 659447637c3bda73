"""One request and what has arrived of its response, between the connection that reads it and the one who waits."""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import TYPE_CHECKING

from xenoglot.backends.transport_bounds import TransportError

if TYPE_CHECKING:
    from xenoglot.backends.http1 import Head
    from xenoglot.backends.transport_bounds import Deadlines
    from xenoglot.backends.transport_connection import Connection

HIGH_WATER = 256 * 1024
"""Unread body bytes at which the upstream has to wait ..."""
LOW_WATER = 64 * 1024
"""... and at which it may go on."""
STALE_SECONDS = 2.0
"""A kept connection that closes unanswered this soon was closing already when we wrote; later, it was the request."""


def seconds(deadline: float | None) -> float:
    """A deadline as a number that can be compared."""
    return inf if deadline is None else deadline


class Exchange:
    """One request on a connection: what has arrived of its response, who waits for it, and until when.

    Time is one timer. It rings no later than the nearest deadline can be, looks where that is by now, and is set again:
    what arrives only moves a number.
    """

    head: Head | None = None
    complete = False
    error: TransportError | None = None
    paused = False
    heard_at = -inf
    """When the upstream last sent something, on the loop's clock."""

    _unread = 0
    _waiter: asyncio.Future[None] | None = None
    _alarm: asyncio.TimerHandle | None = None

    def __init__(self, connection: Connection, deadlines: Deadlines, total_at: float) -> None:
        self.loop = connection.loop
        self.connection: Connection | None = connection
        """Whose turn this is; `None` once the response is whole or has failed."""
        self.pieces: deque[bytes] = deque()
        self._started_at = self.loop.time()
        self._first_byte_at = self._started_at + seconds(deadlines.first_byte)
        self._idle = seconds(deadlines.idle)
        self._total_at = total_at
        self._watch(self._started_at)

    @property
    def stale(self) -> bool:
        """Nothing came, for the upstream was closing the connection as the request was written."""
        unanswered = self.error is not None and self.error.kind == "closed" and self.heard_at == -inf
        return unanswered and self.loop.time() - self._started_at < STALE_SECONDS

    async def news(self) -> None:
        """Wait for a part of the response, its end, or an error. Cancelled, it closes the connection."""
        if self._waiter is not None:
            raise RuntimeError("a response has one reader: another task is waiting for it")
        self._waiter = self.loop.create_future()
        try:
            await self._waiter
        except (asyncio.CancelledError, GeneratorExit):
            self.abandon()
            raise
        finally:
            self._waiter = None

    async def answered(self) -> Head | None:
        """Wait for the head, or the error in its stead."""
        while self.head is None and self.error is None:
            await self.news()
        return self.head

    def take(self) -> bytes:
        """The oldest unread piece of body."""
        piece = self.pieces.popleft()
        self._unread -= len(piece)
        if self.paused and self._unread <= LOW_WATER:
            self.paused = False
            if self.connection is not None and self.connection.usable:
                self.connection.transport.resume_reading()
                self.heard_at = self.loop.time()
        return piece

    def fail(self, error: TransportError) -> None:
        """Give the response up, unread pieces too; every later read gets `error`."""
        connection = self.connection
        self.pieces.clear()
        self.end(error)
        if connection is not None:
            connection.close()

    def abandon(self) -> None:
        """The reader goes away: the upstream sees its connection close, now."""
        self.fail(TransportError("closed", "body" if self.head else "head", "the response was given up by its reader"))

    def open(self, head: Head) -> None:
        """The head has arrived."""
        self.head = head
        self._wake()

    def put(self, piece: bytes) -> None:
        """What one read held of the body has arrived."""
        self.pieces.append(piece)
        self._unread += len(piece)
        if self._unread > HIGH_WATER and not self.paused and self.connection is not None:
            self.paused = True
            self.connection.transport.pause_reading()
        self._wake()

    def end(self, error: TransportError | None) -> None:
        """The response is whole, or will never be."""
        self.complete = error is None
        self.error = error
        self.connection = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _due(self) -> float:
        """The nearest deadline, as things are. Nobody is late while reading is paused."""
        if self.head is None:
            return min(self._first_byte_at, self._total_at)
        if self.paused:
            return self._total_at
        return min(self.heard_at + self._idle, self._total_at)

    def _watch(self, now: float) -> None:
        """Ring at the nearest deadline, or where one may be when the upstream falls silent now."""
        at = min(self._due(), now + self._idle)
        self._alarm = self.loop.call_at(at, self._ring) if at < inf else None

    def _ring(self) -> None:
        now = self.loop.time()
        if now < self._due():
            self._watch(now)
        elif now >= self._total_at:
            self._time_out("the exchange took longer than its total deadline")
        elif self.head is None:
            self._time_out("the upstream did not answer within the deadline of the first byte")
        else:
            self._time_out("the upstream went silent within the body")

    def _time_out(self, problem: str) -> None:
        if self.connection is not None:
            self.connection.stop("timeout", problem)
