"""One connection to an upstream, and the pool of idle connections."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from typing import TYPE_CHECKING, cast

from xenoglot.backends.http.http1 import ResponseParser
from xenoglot.backends.http.timeouts import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from xenoglot.backends.http.exchange import UpstreamExchange
    from xenoglot.backends.http.http1 import HTTPRequest, Origin
    from xenoglot.backends.http.timeouts import Kind, TransportLimits

CHECK_SECONDS = 5.0
"""How often the pool looks for exchanges that may be late before long."""
SOON = 2 * CHECK_SECONDS
SMALL_BODY = 64 * 1024
"""A request body up to this size is copied after its head, for one write instead of two."""
READ_BYTES = 64 * 1024
"""The most that one read takes. It bounds what a connection holds for a client that stops reading: one read beyond the
high-water mark, and what was written for it. The event loops' own reads are four times as large."""

NO_SUCCESS = 300
"""The first status that is not one of success (RFC 9110 section 15.4)."""


class UpstreamConnection(asyncio.BufferedProtocol):
    """A connection to one origin. It is opened for a request, then carries one exchange at a time, or idles.

    All connections of a pool read into one buffer: a read is parsed before the next begins, and the parser copies the
    body out of it.
    """

    transport: asyncio.Transport

    def __init__(self, pool: ConnectionPool, origin: Origin) -> None:
        self.loop = pool.loop
        self._clock = pool.loop.time
        self.origin = origin
        self.idle_since = 0.0
        self._opened_at = self.loop.time()
        self.pool = pool
        self._buffer = pool.buffer
        # Each read calls it: this costs a quarter of a method. The expected size that it is given does not matter.
        self.get_buffer = partial(getattr, pool, "buffer")  # type: ignore[method-assign]
        self._parser = ResponseParser(pool.limits)
        self._exchange: UpstreamExchange | None = None
        self._connected = False
        self._closed = False
        self._sending = False
        """Whether a part of the request is still to be written."""
        self._writable: asyncio.Future[None] | None = None
        """What waits until the upstream takes more; `None` while it does."""

    @property
    def usable(self) -> bool:
        """Whether a request can be written."""
        return not self._closed and not self.transport.is_closing()

    def is_expired(self, now: float) -> bool:
        """Whether it is too old for another request."""
        return now - self._opened_at >= self.pool.limits.connection_seconds

    def begin(self, request: HTTPRequest, exchange: UpstreamExchange, now: float) -> None:
        """Write a request and expect its response."""
        self._parser.begin(request.method)
        self._exchange = exchange
        self.pool.check_deadlines(exchange, now)
        if len(request.body) <= SMALL_BODY:
            self.transport.write(request.head + request.body)
        else:
            self.transport.write(request.head)
            self.transport.write(request.body)

    async def send_rest(self, pieces: AsyncIterator[bytes]) -> None:
        """Write the rest of the request that was begun, as fast as the upstream takes it, unless that refuses it."""
        exchange, self._sending = self._exchange, True
        async for piece in pieces:
            if self._writable is not None:
                await self._writable
            if exchange is None or self._exchange is not exchange:
                return
            if exchange.head is not None and exchange.head.status >= NO_SUCCESS:
                return
            exchange.restart()
            self.transport.write(piece)
        self._sending = False

    def pause_writing(self) -> None:
        """asyncio: much is unwritten."""
        self._writable = self.loop.create_future()

    def resume_writing(self) -> None:
        """asyncio: little is unwritten."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def fail(self, error: TransportError) -> None:
        """End the exchange with `error`, leaving what was read before it to be read, and close."""
        exchange, self._exchange = self._exchange, None
        self.close()
        if exchange is not None:
            exchange.end(error)

    def stop(self, kind: Kind, problem: str) -> None:
        """Fail for a reason that lies outside the response."""
        self.fail(TransportError(kind, "body" if self._parser.head else "head", problem))

    def close(self) -> None:
        """Close now, without a word: what is unwritten and unread is dropped."""
        self._exchange = None
        if self._closed:
            return
        self._closed = True
        self.resume_writing()
        self._parser.close()
        self.pool.forget(self)
        if self._connected:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: TCP and TLS are up."""
        self.transport = cast("asyncio.Transport", transport)
        self._connected = True

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: one read, which is in the buffer."""
        exchange = self._exchange
        if exchange is None:
            self.close()
            return
        parser = self._parser
        now = exchange.last_data_at = self._clock()
        body = parser.feed(self._buffer[:nbytes])
        sink = exchange.sink
        if sink is None:
            news = exchange.take(parser.head, body)
        else:
            news = False
            if body:
                failed = exchange.on_sink_error
                try:
                    sink(body)
                except Exception as reason:  # noqa: BLE001  it is the reader's own
                    failed(reason)
        if self._exchange is not exchange:  # its reader was called, and is done with it
            return
        if parser.error is not None:
            self.fail(parser.error)
        elif parser.complete:
            self._finish(exchange, now)
        elif news:
            exchange.wake()

    def eof_received(self) -> None:
        """asyncio: the upstream sends no more."""
        exchange = self._exchange
        if exchange is None:
            self.close()
            return
        self._parser.end()
        if self._parser.error is not None:
            self.fail(self._parser.error)
        else:
            self._finish(exchange, self.loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the socket is closed, by either side."""
        if exc is None:
            self.eof_received()
        else:
            self.stop("tls" if isinstance(exc, ssl.SSLError) else "closed", "the connection to the upstream broke")
        self.pool.lost(self)

    def _finish(self, exchange: UpstreamExchange, now: float) -> None:
        """The response is whole. The next request may come, unless part of this one is still unwritten."""
        self._exchange = None
        unwritten = self._sending or self.transport.get_write_buffer_size()
        if not self._parser.reusable or unwritten or self.is_expired(now):
            self.close()
        else:
            if exchange.paused:
                self.transport.resume_reading()
            self.pool.release(self, now)
        exchange.end(None)


class ConnectionPool:
    """The connections of one event loop. Idle ones wait by origin: the newest is taken first, the oldest ages out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: TransportLimits) -> None:
        self.loop = loop
        self.limits = limits
        self.buffer = memoryview(bytearray(READ_BYTES))
        """What connections read into; of use only within one call."""
        self.connections: set[UpstreamConnection] = set()
        """All open connections, idle or not. For a cancelled attempt, uvloop never calls `connection_lost`."""
        self.unwatched: set[UpstreamExchange] = set()
        """Exchanges in progress that do not check their deadlines themselves yet."""
        self._idle: dict[Origin, dict[UpstreamConnection, None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    def acquire(self, origin: Origin, now: float) -> UpstreamConnection | None:
        """An idle connection to `origin`, if there is one."""
        idle = self._idle.get(origin)
        while idle:
            connection, _ = idle.popitem()
            if connection.usable and not connection.is_expired(now):
                return connection
            connection.close()
        return None

    def release(self, connection: UpstreamConnection, now: float) -> None:
        """Keep a connection for the next request."""
        connection.idle_since = now
        idle = self._idle.setdefault(connection.origin, {})
        idle[connection] = None
        if len(idle) > self.limits.idle_connections:
            next(iter(idle)).close()
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(self.limits.idle_seconds, self._sweep)

    def close_idle(self) -> int:
        """Close the connections that wait for a request, to free their descriptors; return how many."""
        idle = [connection for waiting in self._idle.values() for connection in waiting]
        for connection in idle:
            connection.close()
        return len(idle)

    def check_deadlines(self, exchange: UpstreamExchange, now: float) -> None:
        """See to it that the exchange keeps its deadlines."""
        if exchange.deadlines.soonest < SOON or exchange.total_at - now < SOON:
            exchange.start_timer(now)
            return
        self.unwatched.add(exchange)
        if self._check_timer is None:
            self._check_timer = self.loop.call_later(CHECK_SECONDS, self._check)

    def forget(self, connection: UpstreamConnection) -> None:
        """It is closing: it is not reused any more."""
        self._idle.get(connection.origin, {}).pop(connection, None)

    def lost(self, connection: UpstreamConnection) -> None:
        """Its socket is closed."""
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def aclose(self) -> None:
        """Close every connection, failing what is on it, and wait until the sockets are closed."""
        for timer in filter(None, (self._sweeper, self._check_timer)):
            timer.cancel()
        self._sweeper = self._check_timer = None
        for connection in tuple(self.connections):
            connection.stop("closed", "the transport was closed")
        if self.connections:
            self._emptied = self.loop.create_future()
            await self._emptied

    def _sweep(self) -> None:
        """Close what has been idle too long; come back when the oldest of the rest will be."""
        self._sweeper = None
        horizon = self.loop.time() - self.limits.idle_seconds
        for idle in self._idle.values():
            for connection in tuple(idle):
                if connection.idle_since > horizon:
                    break
                connection.close()
        self._idle = {origin: idle for origin, idle in self._idle.items() if idle}
        if self._idle:
            oldest = min(next(iter(idle)).idle_since for idle in self._idle.values())
            self._sweeper = self.loop.call_at(oldest + self.limits.idle_seconds, self._sweep)

    def _check(self) -> None:
        """Have those watch the time that may be late before the look after the next."""
        self._check_timer = None
        now = self.loop.time()
        soon = {one for one in self.unwatched if one.next_deadline(now) - now < SOON}
        self.unwatched -= soon
        for exchange in soon:
            exchange.start_timer(now)
        if self.unwatched:
            self._check_timer = self.loop.call_later(CHECK_SECONDS, self._check)
