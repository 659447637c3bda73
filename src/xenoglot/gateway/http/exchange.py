"""One HTTP request and its response, as a server hands them to an endpoint. Endpoint and relay know no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from xenoglot.errors import XenoglotError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence


class BodyTooLargeError(XenoglotError):
    """The request's body is larger than allowed; it was not read to its end."""


class InvalidBodyError(XenoglotError):
    """The request's body is malformed, or does not come in time; `status` is how HTTP says that."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem)
        self.status = status


class ClientDisconnectedError(XenoglotError):
    """The client closed its connection; whoever is at work for it should stop."""


@runtime_checkable
class StreamedBody(Protocol):
    """An exchange whose body can be taken piece by piece."""

    def pieces(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield the body as it comes, in place of `read_body`; while nobody takes it, no more is read.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            BodyBrokenError: it is malformed, or comes too slowly.
            ClientGoneError: the client left before it was complete.
        """
        ...


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
    """Whether a body can be read behind the proposal of another protocol (`upgrade`)."""
    variables: Mapping[str, str]
    """What stands in the path where the route's template has braces, escapes and all; the route table says it."""

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        ...

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body, the same again however often it is asked for.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            BodyBrokenError: it is malformed, or comes too slowly.
            ClientGoneError: the client left before it was complete.
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
