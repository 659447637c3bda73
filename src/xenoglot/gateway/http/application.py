"""Interface between an HTTP server and an application: the application, and one request with its response."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from xenoglot.errors import XenoglotError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from xenoglot.gateway.config.settings import ConnectionSettings
    from xenoglot.http1.request_head import InvalidHeadError, RequestHead


class BodyTooLargeError(XenoglotError):
    """The request's body is larger than allowed; it was not read to its end."""


class InvalidBodyError(XenoglotError):
    """The request's body is malformed, or does not come in time; `status` is the HTTP status for that."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem)
        self.status = status


class ClientDisconnectedError(XenoglotError):
    """The client closed its connection; work for it should stop."""


@runtime_checkable
class StreamedBody(Protocol):
    """An exchange whose body can be taken piece by piece."""

    def pieces(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield the body as it comes, in place of `read_body`; while it is not consumed, no more is read.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            InvalidBodyError: it is malformed, or comes too slowly.
            ClientDisconnectedError: the client disconnected before it was complete.
        """
        ...


async def body_pieces(exchange: Exchange, limit: int) -> AsyncGenerator[bytes]:
    """Yield the body of a request, of at most `limit` bytes, as it arrives; raises what `StreamedBody.pieces` does."""
    if isinstance(exchange, StreamedBody):
        async with aclosing(exchange.pieces(limit)) as pieces:
            async for data in pieces:
                yield data
    else:
        yield await exchange.read_body(limit)


class Exchange(Protocol):
    """What a server gives an endpoint.

    While `write` waits, the client is slower than the upstream: that wait is the back-pressure. When the client goes
    away, the task that serves it is cancelled.
    """

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    """Names in lower case, in the order of the wire, repeated ones apart."""
    peer: str
    """The address of who is connected, without the port; empty where there is none, as at a unix socket."""
    reads_behind_upgrade: bool
    """Whether a body can be read after the proposal of another protocol (`upgrade`)."""
    variables: Mapping[str, str]
    """The path's values for the braces in the route's template, escapes included; the route table sets them."""

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        ...

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body, the same again however often it is read.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            InvalidBodyError: it is malformed, or comes too slowly.
            ClientDisconnectedError: the client disconnected before it was complete.
        """
        ...

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response."""
        ...

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; `start` came before."""
        ...

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece: the response is complete."""
        ...

    def abort(self) -> None:
        """Break the connection off without the final chunk, so that no reader takes the response for complete."""
        ...


class ExchangeWrapper:
    """An exchange that does what another does; subclasses change some of it."""

    def __init__(self, exchange: Exchange) -> None:
        self.method = exchange.method
        self.path = exchange.path
        self.query = exchange.query
        self.headers: Sequence[tuple[str, str]] = exchange.headers
        self.peer = exchange.peer
        self.reads_behind_upgrade = exchange.reads_behind_upgrade
        self.variables: Mapping[str, str] = exchange.variables
        self._exchange = exchange

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        return self._exchange.header(name)

    async def read_body(self, limit: int) -> bytes:
        """Return the body."""
        return await self._exchange.read_body(limit)

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response."""
        await self._exchange.start(status, headers)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        await self._exchange.write(data)

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece."""
        await self._exchange.end(data)

    def abort(self) -> None:
        """Break the connection off."""
        self._exchange.abort()


class MessageSocket(Protocol):
    """A client's connection after a WebSocket handshake: text messages in UTF-8 in both directions."""

    gone: bool
    """Whether it is closed, or about to be: nothing more is sent."""

    @property
    def draining(self) -> bool:
        """Whether the server takes no more work."""
        ...

    def handle(self, exchange: Exchange) -> Awaitable[None]:
        """Have the application of this moment answer a request that came as a message."""
        ...

    async def read_message(self) -> bytes | None:
        """Return the next message; `None` after a disconnect. Without a call no more is read."""
        ...

    def put(self, message: bytes) -> None:
        """Send a message, however slow the client is."""
        ...

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was sent."""
        ...

    def ping(self) -> None:
        """Send a ping."""
        ...

    def rest(self, *, idle: bool) -> None:
        """Note whether the connection is idle: idle ones are closed where there are too many."""
        ...

    def end(self, code: int, reason: str = "") -> None:
        """Close with a code of RFC 6455 section 7.4."""
        ...


@runtime_checkable
class UpgradableExchange(Protocol):
    """An exchange whose connection can become a WebSocket."""

    async def upgrade(
        self,
        headers: Sequence[tuple[str, str]],
        limit: int,
        session: Callable[[MessageSocket], Awaitable[None]],
    ) -> None:
        """Accept the handshake with these headers, and have `session` serve messages of at most `limit` bytes."""
        ...


class HeadState(Struct):
    """What an application has found out from a request's head.

    A server may store one with a head, and pass it with each request that has the same. `entry` is the application's.
    """

    entry: object = None


class PushHandler(Protocol):
    """A request that is served by callbacks, without a task, as its client's connection sees it."""

    def left(self) -> None:
        """The client has disconnected: cancel all work for this request."""
        ...

    def held_up(self) -> None:
        """The client takes less than it is sent: pause the upstream."""
        ...

    def let_on(self) -> None:
        """The client has taken what it was sent: resume the upstream."""
        ...

    def stop(self) -> None:
        """Abort, and report it to the client."""
        ...


class PushExchange(Exchange, Protocol):
    """An exchange that can be served without a task once all of its body is here."""

    passage: PushHandler | None
    """What serves it without a task."""
    gone: bool
    """Whether the client has disconnected."""
    seen: HeadState | None
    """What is known of its head."""
    since: float | None
    """When its head came, by the application's clock, if the application looks at it again later."""

    @property
    def paused(self) -> bool:
        """Whether the client takes less than it is sent."""
        ...

    def expect(self, limit: int) -> None:
        """Read a body of at most `limit` bytes, before anything awaits it."""
        ...

    def content(self) -> bytes:
        """Return the body, all of which is here."""
        ...

    def open(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response."""
        ...

    def put(self, data: bytes) -> None:
        """Send a piece of the body."""
        ...

    def finish(self, data: bytes = b"") -> None:
        """Send the last piece: the response is complete."""
        ...

    def resume(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have a task do the rest."""
        ...

    def served(self) -> None:
        """The response is complete, or aborted: the connection may continue."""
        ...


class Application(Protocol):
    """The program that an HTTP server calls."""

    draining: bool
    """Whether no new requests are admitted; those in progress are completed."""

    @property
    def connections(self) -> ConnectionSettings:
        """Limits and timeouts of the server's connections."""
        ...

    def awaits_body(self, exchange: PushExchange, head: RequestHead) -> bool:
        """Return whether to call `start` for this request, or `handle`, only when all of its body is here."""
        ...

    def start(self, exchange: PushExchange) -> bool:
        """Serve a request whose body is here without a task; return whether that is done. Else `handle` serves it."""
        ...

    def handle(self, exchange: Exchange, seen: HeadState | None = None, since: float | None = None) -> Awaitable[None]:
        """Serve a request, whose head came at the time `since`, or now. It raises nothing but its cancellation."""
        ...

    def refuse(self, exchange: Exchange, refused: InvalidHeadError) -> Awaitable[None]:
        """Answer bytes that are no valid request, or a request that exceeds the connection limit."""
        ...

    def take_up(self) -> None:
        """Begin work in the background: the server accepts connections."""
        ...

    def begin_nothing(self) -> None:
        """Begin no further work in the background: another application takes over, or the server stops."""
        ...

    def stop_now(self) -> None:
        """Abort requests in progress, and report it to the clients."""
        ...

    def abandon(self) -> None:
        """Abort what is served without a task, as if its clients had disconnected."""
        ...

    def redact(self, text: str) -> str:
        """Return `text` without secrets."""
        ...

    async def aclose(self) -> None:
        """Release everything: no request is in progress."""
        ...
