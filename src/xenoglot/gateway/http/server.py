"""Our own HTTP/1.1 server: the connections of one event loop, their deadlines, and the application that they call."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec.structs import replace

from xenoglot.gateway.http import process_resources
from xenoglot.gateway.http.acceptor import Acceptor
from xenoglot.gateway.http.application import Application
from xenoglot.gateway.http.write_side import OVERFLOW, SLOW_SECONDS

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Sequence

    from xenoglot.gateway.config.settings import ConnectionSettings
    from xenoglot.gateway.http.connection import ClientConnection
    from xenoglot.gateway.http.connection_exchange import ConnectionExchange
    from xenoglot.gateway.http.web_socket import WebSocketConnection
    from xenoglot.gateway.http.write_side import WriteSide

Application_ = TypeVar("Application_", bound=Application)

SWEEP_SECONDS: Final = 1.0
"""How often deadlines are looked at."""

BATCH: Final = 64
"""Connections that are evicted together where the process, or the system, is out of descriptors."""

_logger = logging.getLogger("xenoglot.gateway")

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class HTTPServer(Generic[Application_]):
    """Answers with an `application`, which may be exchanged for another at any time.

    It belongs to one event loop: `open` begins, `drain` ends it.
    """

    def __init__(self, application: Application_, bounds: ConnectionSettings | None = None) -> None:
        self.application = application
        self.former: set[Application_] = set()
        """Those before it that still have requests."""
        self.bounds = bounds or application.connections
        self.connections: set[ClientConnection | WebSocketConnection] = set()
        self.tasks: set[asyncio.Task[None] | None] = set()
        """Those that serve a request, clients that are gone included."""
        self.draining = False
        self.date = ""
        """The line of the response's head with the time when it was made (RFC 9110 section 6.6.1)."""
        self.loop: asyncio.AbstractEventLoop
        self.gathers = False
        """Whether the writes of a turn of the loop are made together at its end, so that their readers wake up once."""
        self._gathered: list[WriteSide] = []
        self._waiting: dict[ClientConnection | WebSocketConnection, None] = {}
        self._receiving: dict[ClientConnection | WebSocketConnection, None] = {}
        """Those whose request's body is not whole, the longest without progress first."""
        self._acceptors: list[Acceptor] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._stopping: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None
        self._peaks = process_resources.PeakDetector()
        self._files = 0
        """Descriptors that were open before the first connection."""
        self.crowded = False
        """Whether accepting has stopped until a connection closes or becomes idle."""
        self._closing = 0
        """Connections that were evicted and whose sockets are not closed yet."""

    def open(self, listeners: Sequence[socket.socket]) -> None:
        """Begin to let clients in."""
        self.loop = asyncio.get_running_loop()
        self.gathers = not type(self.loop).__module__.startswith("uvloop")  # which does that by itself
        self._files = process_resources.count_open()
        self.bounds = self._fitted(self.bounds)
        self._sweep()
        self._acceptors = [Acceptor(self, listener) for listener in listeners]
        for acceptor in self._acceptors:
            acceptor.start()
        self.application.take_up()

    def handle(self, exchange: ConnectionExchange) -> Awaitable[None]:
        """Answer one request."""
        return self.application.handle(exchange, exchange.seen, exchange.since)

    def exchange(self, application: Application_) -> None:
        """Have another `application` answer from the next request on."""
        self.former.add(self.application)
        self.application.begin_nothing()
        application.draining = self.draining
        self.bounds = self._fitted(application.connections)
        self.application = application
        application.take_up()
        self._accept_again()  # there may be more room than there was

    def redact(self, text: str) -> str:
        """Return `text` without the secrets of any application that is at work."""
        for application in (self.application, *self.former):
            text = application.redact(text)
        return text

    def stop_accepting(self) -> None:
        """Accept no more connections, and close idle ones; the others close after their next response."""
        self.draining = self.application.draining = True
        self.application.begin_nothing()
        for acceptor in self._acceptors:
            acceptor.stop()
        for connection in tuple(self._waiting):
            connection.retire()
        self._stopping = self.loop.call_later(SLOW_SECONDS, self._stop_waiting)

    def stop_now(self) -> None:
        """Abort responses in progress; a connection without a complete request head is closed."""
        for connection in tuple(self._waiting):
            connection.drop()
        for connection in tuple(self.connections):
            connection.hurry()
        self.loop.call_soon(self._break_off)  # when those who were hurried have begun

    async def drained(self, seconds: float) -> None:
        """Wait until all is answered and everybody gone, for at most so long; then break the rest off."""
        self._empty = self.loop.create_future()
        self._look_if_empty()
        await asyncio.wait({self._empty}, timeout=seconds)
        for connection in tuple(self.connections):
            connection.drop()
        for application in (self.application, *self.former):
            application.abandon()
        left = [task for task in self.tasks if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for timer in filter(None, (self._sweeper, self._stopping)):
            timer.cancel()

    # What connections tell.

    def gather(self, connection: WriteSide) -> None:
        """Have it write what it holds when this turn of the loop is over."""
        if not self._gathered:
            self.loop.call_soon(self._write)
        self._gathered.append(connection)

    def _write(self) -> None:
        gathered, self._gathered = self._gathered, []
        for connection in gathered:
            connection.flush()

    def waits(self, connection: ClientConnection | WebSocketConnection) -> None:
        """It has no request."""
        self._waiting[connection] = None
        if self.crowded:
            self._accept_again()

    def busy(self, connection: ClientConnection | WebSocketConnection) -> None:
        """It has one."""
        self._waiting.pop(connection, None)

    def receives(self, connection: ClientConnection) -> None:
        """The body of its request is on its way, and comes fast enough."""
        self._receiving.pop(connection, None)
        self._receiving[connection] = None

    def received(self, connection: ClientConnection) -> None:
        """No body is expected from it any more."""
        self._receiving.pop(connection, None)

    def forget(self, connection: ClientConnection | WebSocketConnection) -> None:
        """It is gone."""
        self._waiting.pop(connection, None)
        self._receiving.pop(connection, None)
        if connection in self.connections:
            self.connections.discard(connection)
            if self.crowded:
                self._accept_again()
        self._look_if_empty()

    def succeed(self, connection: ClientConnection, successor: WebSocketConnection) -> None:
        """Another is at its place: it has become a WebSocket."""
        self.busy(connection)
        self.connections.discard(connection)
        self.connections.add(successor)

    def _accept_again(self) -> None:
        self.crowded = False
        for acceptor in self._acceptors:
            acceptor.room()

    # What the acceptor asks.

    @property
    def full(self) -> bool:
        """Whether there are as many connections as are wanted."""
        return len(self.connections) >= self.bounds.most

    @property
    def roomy(self) -> bool:
        """Whether one more connection may be accepted, if only to be answered 503."""
        return len(self.connections) < self.bounds.most + OVERFLOW

    def make_room(self) -> None:
        """Let the one go that waits longest, if one more would be too many."""
        if self.full:
            self.drop_oldest()

    def admit(self, connection: ClientConnection) -> bool:
        """Return whether a connection beyond the limit may be served: a slot is free, or an idle one is closed."""
        self.busy(connection)
        return len(self.connections) <= self.bounds.most or self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Close the connection that has been idle longest; return whether there is one."""
        oldest = self._oldest(1)
        for connection in oldest:
            connection.drop()
        return bool(oldest)

    def evict(self) -> bool:
        """Close the connections that have been idle longest, a batch of them; return whether descriptors come free.

        While those of the last batch are still closing, no more are evicted.
        """
        if not self._closing:
            for connection in self._oldest(BATCH):
                self._closing += connection.evict()
        return self._closing > 0

    def evicted(self) -> None:
        """The socket of an evicted connection is closed."""
        self._closing -= 1

    def _oldest(self, number: int) -> list[ClientConnection | WebSocketConnection]:
        """Return connections on which no work has begun: the longest idle first, then those with a slow body."""
        found = list(islice(self._waiting, number))
        if len(found) < number:
            now = self.loop.time()
            found += islice((one for one in self._receiving if one.is_slow(now)), number - len(found))
        return found

    def _stop_waiting(self) -> None:
        """While it drains: wait no longer for half a head, nor for a body that comes slowly."""
        now = self.loop.time()
        self._stopping = self.loop.call_later(SLOW_SECONDS, self._stop_waiting)
        for connection in [*self._waiting, *(one for one in self._receiving if one.is_slow(now))]:
            connection.stop_waiting()

    def _fitted(self, bounds: ConnectionSettings) -> ConnectionSettings:
        """Raise the limit on open files for `bounds`, or fit `bounds` to it."""
        limit = process_resources.raise_limit(process_resources.needed(bounds.most, self._files))
        most = process_resources.fit_connections(bounds.most, self._files, limit)
        if most == bounds.most:
            return bounds
        _logger.warning(
            "server.connections.most is %d instead of %d: the process may open %s files, and each connection needs %d; "
            "raise the hard limit (ulimit -Hn) to %d",
            *(
                most,
                bounds.most,
                limit,
                process_resources.PER_CONNECTION,
                process_resources.needed(bounds.most, self._files),
            ),
        )
        return replace(bounds, most=most)

    def _break_off(self) -> None:
        for application in (self.application, *self.former):
            application.stop_now()

    def _sweep(self) -> None:
        now = self.loop.time()
        self._sweeper = self.loop.call_at(now + SWEEP_SECONDS, self._sweep)
        self.date = f"date: {http_date(time.time())}\r\n"
        for connection in [one for one in self.connections if one.due <= now or one.muffled]:
            connection.look(now)
        if self._peaks.ended(len(self.connections) - len(self._waiting), now):
            _ = self.loop.run_in_executor(None, process_resources.trim)

    def _look_if_empty(self) -> None:
        if self._empty is not None and not self.connections and not self._empty.done():
            self._empty.set_result(None)


def http_date(now: float) -> str:
    """Return the moment `now` (Unix seconds) as headers have it, always in English (RFC 9110 section 5.6.7)."""
    at = time.gmtime(now)
    clock = time.strftime("%H:%M:%S", at)
    return f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {_MONTHS[at.tm_mon - 1]} {at.tm_year:04} {clock} GMT"
