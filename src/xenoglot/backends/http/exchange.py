"""One request and its partly received response, between the connection and the reader of the body."""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Protocol

from xenoglot.backends.http.timeouts import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.backends.http.http1 import ResponseHead
    from xenoglot.backends.http.timeouts import Deadlines, Kind

HIGH_WATER = 128 * 1024
"""Unread body bytes at which the upstream has to wait ..."""
LOW_WATER = 32 * 1024
"""... and at which it may go on."""
STALE_SECONDS = 2.0
"""A kept connection that closes unanswered this soon was closing already when we wrote; later, it was the request."""


def seconds(deadline: float | None) -> float:
    """A deadline as a number that can be compared."""
    return inf if deadline is None else deadline


class ExchangeDeadlines:
    """The deadlines of an exchange as numbers that can be compared, in seconds."""

    __slots__ = ("first_byte", "idle", "soonest", "total")

    def __init__(self, deadlines: Deadlines) -> None:
        self.first_byte = seconds(deadlines.first_byte)
        self.idle = seconds(deadlines.idle)
        self.total = seconds(deadlines.total)
        self.soonest = min(self.first_byte, self.idle)


class ResponseListener(Protocol):
    """Receives callbacks for new data, instead of being woken."""

    def data_available(self) -> None:
        """Data is available: the head, a piece, the end, or an error; everything of one read."""
        ...


class ExchangeOwner(Protocol):
    """What an exchange needs of the pool of its connection."""

    @property
    def unwatched(self) -> set[UpstreamExchange]:
        """Exchanges in progress that do not check their deadlines themselves yet."""
        ...


class ExchangeConnection(Protocol):
    """What an exchange needs of the connection that carries it."""

    transport: asyncio.Transport

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that it belongs to."""
        ...

    @property
    def pool(self) -> ExchangeOwner:
        """The pool that it belongs to."""
        ...

    @property
    def usable(self) -> bool:
        """Whether it is open."""
        ...

    def stop(self, kind: Kind, problem: str) -> None:
        """Close, and fail the exchange for a reason that lies outside the response."""
        ...

    def close(self) -> None:
        """Close now; unwritten and unread bytes are dropped."""
        ...


class UpstreamExchange:
    """One request on a connection: what has arrived of its response, who waits for it, and until when.

    Most exchanges end long before a deadline, so they have no timer of their own. The pool checks all of them at an
    interval, and calls `start_timer` on those whose nearest deadline comes before its next check. That one timer fires
    no later than the nearest deadline can be, computes the deadline again, and is set again: data that arrives only
    changes a number.
    """

    head: ResponseHead | None = None
    complete = False
    error: TransportError | None = None
    paused = False
    last_data_at = -inf
    """When the upstream last sent something, on the loop's clock."""
    unread = 0
    """Bytes of body that are here."""
    reused = False
    """Whether the connection had served before."""
    credential: object = None
    """What the request was signed in with, where a `SignIn` did it."""

    sink: Callable[[bytes], None] | None = None
    """What takes each piece as it arrives. It is set only while nothing is unread, and the stream is not paused."""
    on_sink_error: Callable[[Exception], object] = bool
    """Called with an exception of `sink`."""
    _reader: ResponseListener | None = None
    _waiter: asyncio.Future[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    def __init__(
        self, connection: ExchangeConnection, patience: ExchangeDeadlines, now: float, total_at: float
    ) -> None:
        self.loop = connection.loop
        self.connection: ExchangeConnection | None = connection
        """Whose turn this is; `None` once the response is whole or has failed."""
        self.pieces: deque[bytes] = deque()
        self.deadlines = patience
        self.total_at = total_at
        self._started_at = now

    @property
    def stale(self) -> bool:
        """Nothing came, for the upstream was closing the connection, a kept one, as the request was written."""
        if not self.reused or self.error is None or self.error.kind != "closed" or self.last_data_at != -inf:
            return False
        return self.loop.time() - self._started_at < STALE_SECONDS

    def restart(self) -> None:
        """More of the request is written: the wait for the response begins now."""
        self._started_at = self.loop.time()

    async def wait(self) -> None:
        """Wait for a part of the response, its end, or an error. Cancelled, it closes the connection."""
        if self._reader is not None:
            raise RuntimeError("a response has one reader: this one has a listener already")
        self._check_single_reader()
        self._waiter = self.loop.create_future()
        try:
            await self._waiter
        except (asyncio.CancelledError, GeneratorExit):
            self.abandon()
            raise
        finally:
            self._waiter = None

    def set_listener(self, reader: ResponseListener | None) -> None:
        """From now on call only `reader` for new data; `None` is no listener."""
        self._check_single_reader()
        self._reader = reader
        self.sink = None

    def pause(self) -> None:
        """Let the upstream wait, and keep what arrives all the same."""
        self.sink = None
        connection = self.connection
        if not self.paused and connection is not None and connection.usable:
            self.paused = True
            connection.transport.pause_reading()

    def resume_into(self, fed: Callable[[bytes], None] | None, failed: Callable[[Exception], None]) -> None:
        """Resume the upstream; `fed` takes each piece as it arrives. Nothing is unread."""
        self.sink, self.on_sink_error = fed, failed
        if self.paused:
            self._resume()

    def peek_all(self) -> bytes:
        """What is unread, in one piece, and still unread."""
        if len(self.pieces) > 1:
            self.pieces = deque((b"".join(self.pieces),))
        return self.pieces[0] if self.pieces else b""

    def next_piece(self) -> bytes:
        """The oldest unread piece of body."""
        piece = self.pieces.popleft()
        self.unread -= len(piece)
        if self.paused and self.unread <= LOW_WATER:
            self._resume()
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

    def take(self, head: ResponseHead | None, piece: bytes) -> bool:
        """Add what one read held, without a sink; return whether the listener is to be called."""
        news = self.head is None and head is not None
        if news:
            self.head = head
        if not piece:
            return news
        self.pieces.append(piece)
        self.unread += len(piece)
        if self.unread > HIGH_WATER and not self.paused and self.connection is not None:
            self.paused = True
            self.connection.transport.pause_reading()
        return True

    def wake(self) -> None:
        """Wake the waiting reader, because data has arrived."""
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif self._reader is not None:
            self._reader.data_available()

    def end(self, error: TransportError | None) -> None:
        """The response is whole, or will never be."""
        connection = self.connection
        self.complete = error is None
        self.error = error
        self.connection = None
        self.sink = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif connection is not None:
            connection.pool.unwatched.discard(self)
        self.wake()
        self._reader, self.on_sink_error = None, bool  # what is called holds us, and would keep us for the collector

    def next_deadline(self, now: float) -> float:
        """The nearest deadline, or where one may be when the upstream falls silent now."""
        return min(self._deadline(), now + self.deadlines.idle)

    def start_timer(self, now: float) -> None:
        """Look at the deadlines itself, from now on."""
        at = self.next_deadline(now)
        self._timer = self.loop.call_at(at, self._on_timer) if at < inf else None

    def _check_single_reader(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("a response has one reader: another task is waiting for it")

    def _resume(self) -> None:
        self.paused = False
        if self.connection is not None and self.connection.usable:
            self.connection.transport.resume_reading()
            self.last_data_at = self.loop.time()

    def _deadline(self) -> float:
        """The nearest deadline. While reading is paused, only `total` counts."""
        if self.head is None:
            return min(self._started_at + self.deadlines.first_byte, self.total_at)
        if self.paused:
            return self.total_at
        return min(self.last_data_at + self.deadlines.idle, self.total_at)

    def _on_timer(self) -> None:
        now = self.loop.time()
        if now < self._deadline():
            self.start_timer(now)
        elif now >= self.total_at:
            self._time_out("the exchange took longer than its total deadline")
        elif self.head is None:
            self._time_out("the upstream did not answer within the deadline of the first byte")
        else:
            self._time_out("the upstream went silent within the body")

    def _time_out(self, problem: str) -> None:
        if self.connection is not None:
            self.connection.stop("timeout", problem)
