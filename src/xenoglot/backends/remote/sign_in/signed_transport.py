"""A transport that signs in: adds the fields of a `SignIn` to each request, and sends a refused one again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from xenoglot.backends.http.exchange import UpstreamExchange
    from xenoglot.backends.http.http1 import HTTPRequest
    from xenoglot.backends.http.response import UpstreamResponse
    from xenoglot.backends.remote.sign_in.strategy import SignIn


class RequestTransport(Protocol):
    """What sends the requests of a `Remote`: a `Transport`, or one that signs in."""

    async def send_prepared(self, request: HTTPRequest) -> UpstreamResponse:
        """Send a request and wait for the head of its response. Raises `TransportError`."""
        ...

    async def send_streamed(self, request: HTTPRequest, rest: AsyncIterator[bytes]) -> UpstreamResponse:
        """The same, for a request whose body continues with `rest`."""
        ...

    def start(self, request: HTTPRequest) -> UpstreamExchange | None:
        """Send a request at once; `None` where that cannot be done."""
        ...

    async def begin(self, request: HTTPRequest, stale: UpstreamExchange | None = None) -> UpstreamExchange:
        """Send a request on a new connection. Raises `TransportError`."""
        ...

    def reply(self, exchange: UpstreamExchange) -> UpstreamResponse:
        """Return the response whose head has come. Raises `TransportError`."""
        ...


class SignedTransport:
    """Sends over `transport`, signed in by `sign_in`; neither is closed here."""

    def __init__(self, transport: RequestTransport, sign_in: SignIn[Any]) -> None:
        self._transport = transport
        self.sign_in = sign_in

    async def send_prepared(self, request: HTTPRequest) -> UpstreamResponse:
        """Send a request; where its credential is refused, again with another one."""
        await self.sign_in.wait()
        used = self.sign_in.value
        return await self.accepted(await self._transport.send_prepared(self._signed(request)), request, used)

    async def accepted(self, reply: UpstreamResponse, request: HTTPRequest, used: object) -> UpstreamResponse:
        """Return `reply`; if it refuses the credential `used`, the response to `request` with another one, sent once.

        If the clock of this machine is wrong, it is sent once with the same credential before that.

        Raises:
            TransportError: there is no response.
        """
        if reply.status not in self.sign_in.refusals:
            return reply
        if self.sign_in.corrected(reply.header("date")):
            reply.close()
            reply = await self._transport.send_prepared(self._signed(request))
            if reply.status not in self.sign_in.refusals:
                return reply
        if not await self.sign_in.renew(used):
            return reply
        reply.close()
        return await self._transport.send_prepared(self._signed(request))

    async def send_streamed(self, request: HTTPRequest, rest: AsyncIterator[bytes]) -> UpstreamResponse:
        """Send a request whose body continues; it cannot be sent again, but a refusal fetches another credential."""
        await self.sign_in.wait()
        used = self.sign_in.value
        reply = await self._transport.send_streamed(self._signed(request, whole=False), rest)
        if reply.status in self.sign_in.refusals and not self.sign_in.corrected(reply.header("date")):
            await self.sign_in.renew(used)
        return reply

    def start(self, request: HTTPRequest) -> UpstreamExchange | None:
        """Send a request at once; `None` also where there is no credential."""
        exchange = self._transport.start(self._signed(request)) if self.sign_in.ready else None
        if exchange is not None:
            exchange.credential = self.sign_in.value
        return exchange

    async def begin(self, request: HTTPRequest, stale: UpstreamExchange | None = None) -> UpstreamExchange:
        """Send a request on a new connection, once there is a credential."""
        await self.sign_in.wait()
        used = self.sign_in.value
        exchange = await self._transport.begin(self._signed(request), stale)
        exchange.credential = used
        return exchange

    def reply(self, exchange: UpstreamExchange) -> UpstreamResponse:
        """Return the response whose head has come."""
        return self._transport.reply(exchange)

    def _signed(self, request: HTTPRequest, *, whole: bool = True) -> HTTPRequest:
        return self.sign_in.signed(request, whole=whole)
