"""HTTP/1.1 client for upstreams, over TCP, TLS and unix sockets; the only HTTP client of the package.

It is small because each part costs CPU per request and per token, and the usual clients cost 3 to 100 times as much:
asyncio protocols over httptools (llhttp), no task, queue or timer per piece of body. It follows no redirect, keeps no
cookies, and uses a proxy only if one is set; but it can wait, stop and clean up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from copy import copy
from math import inf
from typing import TYPE_CHECKING, cast

from xenoglot.backends.http.connect import AddressLookup, connect_problem, is_exhausted
from xenoglot.backends.http.connection import NO_SUCCESS, ConnectionPool, UpstreamConnection
from xenoglot.backends.http.exchange import ExchangeDeadlines, UpstreamExchange, seconds
from xenoglot.backends.http.http1 import prepare
from xenoglot.backends.http.response import BodySink, UpstreamResponse
from xenoglot.backends.http.timeouts import Deadlines, TransportError, TransportLimits
from xenoglot.backends.http.tunnel import UNKNOWN_TO_PROXY, ProxyTunnel, wants_credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from xenoglot.backends.http.connect import Resolve
    from xenoglot.backends.http.http1 import HTTPRequest, Origin
    from xenoglot.backends.http.proxies import Proxy

__all__ = ["BodySink", "Deadlines", "Transport", "TransportError", "TransportLimits", "UpstreamResponse"]


class Transport:
    """Sends requests over connections it keeps. It belongs to the event loop of its first request.

    `resolve` returns the addresses of a host, for each new connection; without it, the system does. Through a
    `proxy`, whose addresses these are then, goes everything except requests to unix sockets.
    """

    def __init__(
        self,
        *,
        deadlines: Deadlines | None = None,
        limits: TransportLimits | None = None,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self.deadlines = deadlines or Deadlines()
        self.limits = limits or TransportLimits()
        self._exchange_deadlines = ExchangeDeadlines(self.deadlines)
        self._ssl_context = ssl_context
        self._resolve = resolve or AddressLookup()
        self._passage = None if proxy is None else ProxyTunnel(proxy, self._tls)
        self._pool: ConnectionPool | None = None
        self._closed = False

    async def send(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[str, str]],
        body: bytes = b"",
        *,
        socket_path: str | None = None,
    ) -> UpstreamResponse:
        """Send a request and wait for the head of its response, whatever its status.

        `headers` are the end-to-end fields; `host`, lengths and connection fields are written here. With `socket_path`
        the connection is to that unix socket, and the URL only has the path. A request on a kept connection
        that turns out to be closing is sent again, on a new one.

        Raises:
            TransportError: there is no response, or none that is allowed; nothing of it stays open.
        """
        return await self.send_prepared(prepare(method, url, headers, socket_path).request(body))

    async def send_prepared(self, request: HTTPRequest) -> UpstreamResponse:
        """The same, for a request that is prepared."""
        kept = self.start(request)
        if kept is not None:
            await kept.wait()
            if not kept.stale:
                return self.reply(kept)
        fresh = await self.begin(request, kept)
        await fresh.wait()
        return self.reply(fresh)

    async def send_streamed(self, request: HTTPRequest, rest: AsyncIterator[bytes]) -> UpstreamResponse:
        """The same, for a request whose body continues with `rest`, on a new connection: it cannot be sent again.

        Where the response comes before all is sent, the rest is not, unless the response is a success. What `rest`
        raises is raised, and the connection is closed.
        """
        exchange = await self.begin(request)
        connection = cast("UpstreamConnection", exchange.connection)
        sending = exchange.loop.create_task(connection.send_rest(rest))
        try:
            waiting = exchange.loop.create_task(exchange.wait())
            try:
                await asyncio.wait((sending, waiting), return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
                await waiting
            finally:
                await _cancelled(waiting)
            if exchange.head is not None and exchange.head.status < NO_SUCCESS:
                await sending
        except BaseException:
            exchange.abandon()
            raise
        finally:
            await _cancelled(sending)
        return self.reply(exchange)

    def start(self, request: HTTPRequest) -> UpstreamExchange | None:
        """Send a request at once, on a kept connection; `None` where there is none.

        For those who do not wait but are `told`. Where the exchange is `stale` at its end, it has to `begin` again.
        """
        pool = self._bound()
        now = pool.loop.time()
        kept = pool.acquire(request.origin, now)
        if kept is None:
            return None
        exchange = self._write(kept, request, now, now + self._exchange_deadlines.total)
        exchange.reused = True
        return exchange

    async def begin(self, request: HTTPRequest, stale: UpstreamExchange | None = None) -> UpstreamExchange:
        """Send a request on a new connection; instead of the one that was stale, if there was one.

        Raises:
            TransportError: no connection comes up.
        """
        if self._closed and stale is not None and stale.error is not None:
            raise stale.error.copy()
        pool = self._bound()
        total_at = pool.loop.time() + self._exchange_deadlines.total if stale is None else stale.total_at
        connection = await self._connect(pool, request.origin, total_at, sent=stale is not None)
        return self._write(connection, request, pool.loop.time(), total_at)

    def reply(self, exchange: UpstreamExchange) -> UpstreamResponse:
        """The response whose head has come.

        Raises:
            TransportError: none has, or none that is allowed.
        """
        head = exchange.head
        if head is None:
            raise closed() if exchange.error is None else exchange.error.copy()
        if self._passage is not None and head.status == UNKNOWN_TO_PROXY:
            error = TransportError("connect", "head", str(wants_credentials(self._passage.proxy)), sent=False)
            exchange.fail(error.copy())
            raise error
        try:
            return UpstreamResponse(head, exchange, self.limits)
        except TransportError as error:
            exchange.fail(error.copy())
            raise

    def with_deadlines(self, deadlines: Deadlines) -> Transport:
        """Return one that waits for other `deadlines` over the same connections, which stay this one's to close."""
        self._bound()
        other = copy(self)
        other.deadlines, other._exchange_deadlines = deadlines, ExchangeDeadlines(deadlines)  # noqa: SLF001  it is one of us
        return other

    async def aclose(self) -> None:
        """Close every connection; what is still being read fails. Returns when the sockets are closed.

        A request that still waits for a connection fails as soon as that is open, or at its deadline.
        """
        self._closed = True
        if self._pool is not None:
            await self._pool.aclose()

    def _bound(self) -> ConnectionPool:
        if self._closed:
            raise closed()
        loop = asyncio.get_running_loop()
        if self._pool is None:
            self._pool = ConnectionPool(loop, self.limits)
        elif self._pool.loop is not loop:
            raise RuntimeError("a Transport belongs to the event loop of its first request: make one for each loop")
        return self._pool

    def _write(
        self, connection: UpstreamConnection, request: HTTPRequest, now: float, total_at: float
    ) -> UpstreamExchange:
        exchange = UpstreamExchange(connection, self._exchange_deadlines, now, total_at)
        connection.begin(request, exchange, now)
        return exchange

    async def _connect(
        self, pool: ConnectionPool, origin: Origin, total_at: float, *, sent: bool
    ) -> UpstreamConnection:
        """A new connection to `origin`. Its error is raised outside of the handlers: its cause has no traceback."""
        until = min(pool.loop.time() + seconds(self.deadlines.connect), total_at)
        try:
            async with asyncio.timeout_at(None if until == inf else until):
                connection = await self._dial_within(pool, origin, until)
        except TimeoutError:
            error = TransportError("timeout", "connect", "no connection within the deadline", sent=sent)
        except OSError as failure:
            kind, problem = connect_problem(failure, secure=origin.scheme == "https")
            error = TransportError(kind, "connect", problem, sent=sent)
            error.__cause__ = failure.with_traceback(None)
        else:
            if connection.usable and not self._closed:
                pool.connections.add(connection)
                return connection
            connection.close()
            error = TransportError("closed", "connect", "the connection was closed as soon as it was made", sent=sent)
        raise error

    async def _dial_within(self, pool: ConnectionPool, origin: Origin, until: float) -> UpstreamConnection:
        """Call `_dial`; where no descriptor is left, close idle connections and call it again. Raises `OSError`."""
        try:
            return await self._dial(pool, origin, until)
        except OSError as failure:
            if not is_exhausted(failure) or not pool.close_idle():
                raise
        await asyncio.sleep(0)  # their sockets are closed in the next turn of the loop
        return await self._dial(pool, origin, until)

    async def _dial(self, pool: ConnectionPool, origin: Origin, until: float) -> UpstreamConnection:
        """Connect to the first of the host's addresses that lets us; each has its share of the time there is.

        Raises:
            OSError: none does; `TimeoutError` where the last did not answer in time.
        """
        if origin.socket_path is not None:
            return await self._open(pool, origin, origin.socket_path)
        passage = self._passage
        addresses = await (passage.addresses(self._resolve) if passage else self._resolve(origin.host))
        for left, address in zip(range(len(addresses), 1, -1), addresses, strict=False):
            now = pool.loop.time()
            with contextlib.suppress(OSError):  # a certificate that is refused, too: the next may have a better one
                async with asyncio.timeout_at(None if until == inf else now + (until - now) / left):
                    return await self._open(pool, origin, address)
        return await self._open(pool, origin, addresses[-1])

    async def _open(self, pool: ConnectionPool, origin: Origin, address: str) -> UpstreamConnection:
        """Make one connection; `address` is that of the host or of the proxy before it, or the path of a socket."""
        if self._passage is not None and origin.socket_path is None:
            return await self._passage.open(pool, origin, address)
        connection = UpstreamConnection(pool, origin)
        secure = self._tls() if origin.scheme == "https" else None
        name = origin.host if secure else None
        loop = pool.loop
        if origin.socket_path is None:
            await loop.create_connection(lambda: connection, address, origin.port, ssl=secure, server_hostname=name)
        else:
            await loop.create_unix_connection(lambda: connection, address, ssl=secure, server_hostname=name)
        return connection

    def _tls(self) -> ssl.SSLContext:
        """The caller's context; or the system's authorities, names checked, read at the first https request."""
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        return self._ssl_context


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Cancel `task`, and wait until it is over; what it raises is of no interest any more."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def closed() -> TransportError:
    """The transport was closed before this request was sent."""
    return TransportError("closed", "request", "the transport was closed", sent=False)
