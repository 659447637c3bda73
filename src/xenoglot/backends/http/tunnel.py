"""Connections through a proxy: a CONNECT tunnel for https, absolute-form requests for http."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, cast

from xenoglot.backends.http.connect import ProxyError, connect_problem
from xenoglot.backends.http.connection import UpstreamConnection
from xenoglot.backends.http.http1 import DEFAULT_PORTS, HTTPRequest
from xenoglot.http1.syntax import HEAD_END

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from xenoglot.backends.http.connect import Resolve
    from xenoglot.backends.http.connection import ConnectionPool
    from xenoglot.backends.http.exchange import UpstreamExchange
    from xenoglot.backends.http.http1 import Origin
    from xenoglot.backends.http.proxies import Proxy

UNKNOWN_TO_PROXY: Final = 407
"""The status with which a proxy asks who we are (RFC 9110 section 15.5.8): no upstream's answer."""

_HEAD_BYTES: Final = 16_384
"""Most bytes of a proxy's response to `CONNECT`; usual ones have less than a thousand."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r\n")
_OK = range(200, 300)


def authority_of(origin: Origin, *, port: bool) -> str:
    """Return host and port as they are written; without `port` only where it is not the usual one."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return f"{host}:{origin.port}" if port or origin.port != DEFAULT_PORTS[origin.scheme] else host


def wants_credentials(proxy: Proxy) -> ProxyError:
    """Return the error of a proxy that does not know us."""
    refused = "refused our credentials" if proxy.authorization else "wants credentials"
    return ProxyError("connect", f"the proxy {refused} (status {UNKNOWN_TO_PROXY})")


class ForwardProxyConnection(UpstreamConnection):
    """A connection to a proxy that carries requests to one http origin; each has the absolute URL."""

    def __init__(self, pool: ConnectionPool, origin: Origin, proxy: Proxy) -> None:
        super().__init__(pool, origin)
        self._origin_form = f"http://{authority_of(origin, port=False)}".encode("ascii")
        known = proxy.authorization
        self._field = f"proxy-authorization: {known}\r\n".encode("ascii") if known else b""

    def begin(self, request: HTTPRequest, exchange: UpstreamExchange, now: float) -> None:
        """Write a request and expect its response."""
        method, _, rest = request.head.partition(b" ")
        line, _, fields = rest.partition(b"\r\n")
        head = b"%b %b%b\r\n%b%b" % (method, self._origin_form, line, self._field, fields)
        super().begin(HTTPRequest(request.method, request.origin, head, request.body), exchange, now)


class _Tunnel(asyncio.Protocol):
    """The request for a tunnel, and its answer: `opened` is done when there is one, or raises `ProxyError`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, origin: Origin, proxy: Proxy) -> None:
        self.opened: asyncio.Future[None] = loop.create_future()
        self.opened.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait any more
        self._proxy = proxy
        self._origin = origin
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection to the proxy is open."""
        to = authority_of(self._origin, port=True)
        known = self._proxy.authorization
        field = f"proxy-authorization: {known}\r\n" if known else ""
        asked = f"CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n{field}\r\n"
        cast("asyncio.Transport", transport).write(asked.encode("ascii"))

    def data_received(self, data: bytes) -> None:
        """asyncio: one read."""
        self._head += data
        head, end, rest = self._head.partition(HEAD_END)
        if self.opened.done():
            return
        if not end:
            if len(head) > _HEAD_BYTES:
                self._fail(ProxyError("too_large", "the proxy's answer to the request for a tunnel is too large"))
            return
        status = _STATUS.match(head + end)
        if status is None:
            self._fail(ProxyError("protocol", "the proxy's answer to the request for a tunnel is not lawful HTTP"))
        elif int(status[1]) == UNKNOWN_TO_PROXY:
            self._fail(wants_credentials(self._proxy))
        elif int(status[1]) not in _OK:
            self._fail(ProxyError("connect", f"the proxy gives no tunnel (status {int(status[1])})"))
        elif rest:  # in TLS it is our turn: whoever speaks is not the upstream
            self._fail(ProxyError("protocol", "the proxy says something within the tunnel"))
        else:
            self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the proxy has closed the connection, or we did."""
        del exc
        self._fail(ProxyError("closed", "the proxy closed the connection before there was a tunnel"))

    def _fail(self, error: ProxyError) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)


class ProxyTunnel:
    """How connections are made through one proxy; `tls` gives what both it and the upstreams are trusted by."""

    def __init__(self, proxy: Proxy, tls: Callable[[], ssl.SSLContext]) -> None:
        self.proxy = proxy
        self._tls = tls

    async def addresses(self, resolve: Resolve) -> Sequence[str]:
        """Return the addresses of the proxy. Raises `ProxyError` where there are none."""
        try:
            return await resolve(self.proxy.host)
        except OSError as failure:
            error = ProxyError(*connect_problem(failure, secure=False, who="proxy"))
        raise error

    async def open(self, pool: ConnectionPool, origin: Origin, address: str) -> UpstreamConnection:
        """Make a connection to `origin`; `address` is that of the proxy.

        Raises:
            OSError: there is none; a `ProxyError`, where that is the proxy's doing.
        """
        if origin.scheme == "http":
            forwarded = ForwardProxyConnection(pool, origin, self.proxy)
            await self._reach(pool.loop, lambda: forwarded, address)
            return forwarded
        tunnel = _Tunnel(pool.loop, origin, self.proxy)
        transport = await self._reach(pool.loop, lambda: tunnel, address)
        connection = UpstreamConnection(pool, origin)
        try:
            await tunnel.opened
            within = await pool.loop.start_tls(transport, connection, self._tls(), server_hostname=origin.host)
        except BaseException:
            transport.abort()
            raise
        if within is None:  # the proxy went between the two
            raise ConnectionResetError
        connection.connection_made(within)
        return connection

    async def _reach(
        self, loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.BaseProtocol], address: str
    ) -> asyncio.Transport:
        """Connect to the proxy. Its error is raised outside of the handler: the context of that names addresses."""
        proxy = self.proxy
        secure = self._tls() if proxy.scheme == "https" else None
        name = proxy.host if secure else None
        try:
            transport, _ = await loop.create_connection(protocol, address, proxy.port, ssl=secure, server_hostname=name)
        except OSError as failure:
            error = ProxyError(*connect_problem(failure, secure=secure is not None, who="proxy"))
        else:
            return transport
        raise error
