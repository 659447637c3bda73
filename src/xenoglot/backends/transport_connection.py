"""One connection to an upstream, and the pool of those that wait for the next request."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

from xenoglot.backends.http1 import ResponseParser
from xenoglot.backends.transport_bounds import TransportError

if TYPE_CHECKING:
    from xenoglot.backends.http1 import Origin
    from xenoglot.backends.transport_bounds import Kind, Limits
    from xenoglot.backends.transport_exchange import Exchange

SMALL_BODY = 64 * 1024
"""A request body up to this size is copied behind its head, for one write instead of two."""


class Connection(asyncio.Protocol):
    """A connection to one origin. It is opened for a request, then carries one exchange at a time, or idles."""

    transport: asyncio.Transport

    def __init__(self, pool: Pool, origin: Origin) -> None:
        self.loop = pool.loop
        self.origin = origin
        self.idle_since = 0.0
        self._made_at = self.loop.time()
        self._pool = pool
        self._parser = ResponseParser(pool.limits)
        self._exchange: Exchange | None = None
        self._connected = False
        self._closed = False

    @property
    def usable(self) -> bool:
        """Whether a request can be written."""
        return not self._closed and not self.transport.is_closing()

    @property
    def aged(self) -> bool:
        """Whether it is too old for another request."""
        return self.loop.time() - self._made_at >= self._pool.limits.connection_seconds

    def begin(self, method: str, head: bytes, body: bytes, exchange: Exchange) -> None:
        """Write a request and expect its response."""
        self._parser.begin(method)
        self._exchange = exchange
        if len(body) <= SMALL_BODY:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)

    def fail(self, error: TransportError) -> None:
        """End the exchange with `error`, leaving what was read before it to be read, and close."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end(error)
        self.close()

    def stop(self, kind: Kind, problem: str) -> None:
        """Fail for a reason that lies outside the response."""
        self.fail(TransportError(kind, "body" if self._parser.head else "head", problem))

    def close(self) -> None:
        """Close now, without a word: what is unwritten and unread is dropped."""
        self._exchange = None
        if self._closed:
            return
        self._closed = True
        self._pool.forget(self)
        if self._connected:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: TCP and TLS are up."""
        self.transport = cast("asyncio.Transport", transport)
        self._connected = True

    def data_received(self, data: bytes) -> None:
        """asyncio: one read."""
        exchange = self._exchange
        if exchange is None:
            self.close()
            return
        parser = self._parser
        exchange.heard_at = self.loop.time()
        body = parser.feed(data)
        if parser.head is not None and exchange.head is None:
            exchange.open(parser.head)
        if body:
            exchange.put(body)
        if parser.error is not None:
            self.fail(parser.error)
        elif parser.complete:
            self._finish(exchange)

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
            self._finish(exchange)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the socket is closed, by whomever."""
        if exc is None:
            self.eof_received()
        else:
            self.stop("tls" if isinstance(exc, ssl.SSLError) else "closed", "the connection to the upstream broke")
        self._pool.lost(self)

    def _finish(self, exchange: Exchange) -> None:
        """The response is whole. The next request may come, unless part of this one is still unwritten."""
        self._exchange = None
        exchange.end(None)
        if not self._parser.reusable or self.transport.get_write_buffer_size() or self.aged:
            self.close()
            return
        if exchange.paused:
            self.transport.resume_reading()
        self._pool.put(self)


class Pool:
    """The connections of one event loop. Idle ones wait by origin: the newest is taken first, the oldest ages out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.loop = loop
        self.limits = limits
        self.connections: set[Connection] = set()
        """All that have come up and are open, idle or not. Of one given up on the way, uvloop never says it is lost."""
        self._idle: dict[Origin, dict[Connection, None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    def take(self, origin: Origin) -> Connection | None:
        """An idle connection to `origin`, if there is one."""
        idle = self._idle.get(origin)
        while idle:
            connection, _ = idle.popitem()
            if connection.usable and not connection.aged:
                return connection
            connection.close()
        return None

    def put(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        connection.idle_since = self.loop.time()
        idle = self._idle.setdefault(connection.origin, {})
        idle[connection] = None
        if len(idle) > self.limits.idle_connections:
            next(iter(idle)).close()
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(self.limits.idle_seconds, self._sweep)

    def forget(self, connection: Connection) -> None:
        """It is closing: nobody gets it any more."""
        self._idle.get(connection.origin, {}).pop(connection, None)

    def lost(self, connection: Connection) -> None:
        """Its socket is closed."""
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def aclose(self) -> None:
        """Close every connection, failing what is on it, and wait until the sockets are closed."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
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
