"""The boundary between the HTTP server and the program that it serves: neither knows more of the other than this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from xenoglot.gateway.http.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.gateway.config.settings import ConnectionSettings
    from xenoglot.http1.request_head import InvalidHeadError, RequestHead


class HeadState(Struct):
    """What an application has found out from a request's head.

    A server may keep one beside a head, and pass it with each request that has the same. `entry` is the application's.
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
        """Abort, and tell the client."""
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
        """The response is complete, or aborted: the connection may go on."""
        ...


class Application(Protocol):
    """The program behind an HTTP server."""

    draining: bool
    """Whether no new requests are admitted; those under way are completed."""

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
        """Answer bytes that are no valid request, or a request for which there is no room."""
        ...

    def take_up(self) -> None:
        """Begin work in the background: the server accepts connections."""
        ...

    def begin_nothing(self) -> None:
        """Begin no further work in the background: another application takes over, or the server stops."""
        ...

    def stop_now(self) -> None:
        """Abort what is under way, and tell the clients."""
        ...

    def abandon(self) -> None:
        """Abort what is served without a task, as if its clients had disconnected."""
        ...

    def redact(self, text: str) -> str:
        """Return `text` without secrets."""
        ...

    async def aclose(self) -> None:
        """Release everything: nothing is under way."""
        ...
