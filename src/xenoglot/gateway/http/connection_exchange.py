"""One request on a connection of our own server, as an `Exchange`: its body coming in, its response going out."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from xenoglot.backends.redaction import LONGEST_HEADER, for_header
from xenoglot.gateway.http.application import BodyTooLargeError, ClientDisconnectedError, InvalidBodyError
from xenoglot.gateway.http.write_side import HIGH_WATER
from xenoglot.http1.body import WHOLE, body_of
from xenoglot.http1.syntax import CHUNK, LAST_CHUNK

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from xenoglot.gateway.http.application import HeadState, MessageSocket, PushHandler
    from xenoglot.http1.request_head import RequestHead

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_INFORMATIONAL: Final = 199
SWITCHING_PROTOCOLS: Final = 101
BODILESS: Final = frozenset({204, 304})
"""Statuses whose responses have no body, and no word of its length (RFC 9110 section 6.4.1)."""

_VISIBLE: Final = bytes(range(0x20, 0x7F))
_NO_VARIABLES: Final[Mapping[str, str]] = {}


class ExchangeServer(Protocol):
    """What an exchange needs to know of the server."""

    draining: bool
    date: str
    """The `date` line of a response's head."""


class ExchangeConnection(Protocol):
    """The connection of an exchange, as the exchange uses it."""

    loop: asyncio.AbstractEventLoop
    paused: bool
    """Whether the client takes less than it is sent."""
    unframed: bool
    """Whether only the end of the connection ends the response (HTTP/1.0)."""

    @property
    def server(self) -> ExchangeServer:
        """The server."""
        ...

    def regulate(self) -> None:
        """Resume or pause reading, as the exchange takes its body."""
        ...

    def hold(self, data: bytes) -> None:
        """Send `data` with what comes next."""
        ...

    def send(self, data: bytes) -> None:
        """Send `data`."""
        ...

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was sent."""
        ...

    def have_served(self, exchange: ConnectionExchange, work: Callable[[], Awaitable[None]]) -> None:
        """Have a task do `work` for the exchange."""
        ...

    def served(self, exchange: ConnectionExchange) -> None:
        """Continue: the response is complete, or aborted."""
        ...

    def become(self, limit: int, session: Callable[[MessageSocket], Awaitable[None]]) -> None:
        """Become a WebSocket once the handshake is answered."""
        ...


class ConnectionExchange:
    """A request whose head is here, and its response; what is `seen` of the head is the connection's to keep."""

    __slots__ = (
        "_bodiless",
        "_chunked",
        "_connection",
        "_flows",
        "_head",
        "_left",
        "_limit",
        "_pieces",
        "_problem",
        "_waiter",
        "_waits",
        "begun",
        "body",
        "close",
        "gone",
        "headers",
        "method",
        "over",
        "passage",
        "path",
        "peer",
        "query",
        "seen",
        "since",
        "size",
        "variables",
    )
    reads_behind_upgrade = True

    def __init__(
        self, connection: ExchangeConnection, head: RequestHead, peer: str, seen: HeadState | None = None
    ) -> None:
        self.method = head.method
        self.path = head.path
        self.query = head.query
        self.headers: Sequence[tuple[str, str]] = head.headers
        self.variables: Mapping[str, str] = _NO_VARIABLES
        self.peer = peer
        self.seen = seen
        self.since: float | None = None
        """When its head came, by the observer's clock, where it is looked at later."""
        self.close = head.close
        """Whether the connection ends with the response."""
        self.body = body_of(head.length)
        self.over = False
        """Whether the response is complete, or broken off."""
        self.begun = False
        """Whether a handler works on it."""
        self.size = 0
        """Bytes of the body that have come."""
        self.gone = False
        """Whether the client has disconnected."""
        self.passage: PushHandler | None = None
        """The handler that serves it without a task."""
        self._head = head
        self._waits = head.waits
        self._connection = connection
        self._pieces: list[bytes] = []
        self._limit: int | None = None
        self._flows = False
        """Whether the body is taken piece by piece."""
        self._waiter: asyncio.Future[None] | None = None
        self._problem: Exception | None = None
        self._bodiless = head.method == "HEAD"
        self._chunked = False
        self._left: int | None = None
        """Bytes of the response's body that its head has promised and that are still to come."""

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        for field, value in self.headers:
            if field == name:
                return value
        return None

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            InvalidBodyError: it is malformed, or comes too slowly.
            ClientDisconnectedError: the client disconnected before it was complete.
        """
        self._limit = limit
        if self.size > HIGH_WATER:
            self._connection.regulate()  # nothing brims any more: who is not read from is not seen to leave
        self._weigh(max(self._head.length or 0, self.size))
        if not self.body.done and self._problem is None:
            if self._waits and not self.size:
                self._connection.send(CONTINUE)
            self._waits = False
            self._waiter = self._connection.loop.create_future()
            await self._waiter
        if self._problem is not None:
            raise self._problem
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    async def pieces(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield the body as it comes; what is not consumed stays in the network.

        Raises:
            BodyTooLargeError: as above. `InvalidBodyError` and `ClientDisconnectedError` alike.
        """
        self._limit = limit
        self._flows = True
        self._weigh(max(self._head.length or 0, self.size))
        if self._waits and not self.size and not self.body.done:
            self._connection.send(CONTINUE)
        self._waits = False
        while self._problem is None and (self._pieces or not self.body.done):
            if self._pieces:
                piece = b"".join(self._pieces)
                self._pieces.clear()
                self._connection.regulate()
                yield piece
            else:
                self._waiter = self._connection.loop.create_future()
                await self._waiter
        if self._problem is not None:
            raise self._problem

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response; what cannot stand in a header is replaced."""
        self.open(status, headers)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; wait while the client is slower than that."""
        self.put(data)
        if self._connection.paused:
            await self._connection.writable()

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece."""
        self.finish(data)

    async def upgrade(
        self, headers: Sequence[tuple[str, str]], limit: int, session: Callable[[MessageSocket], Awaitable[None]]
    ) -> None:
        """Accept a WebSocket handshake; afterwards the connection belongs to `session`."""
        self.open(SWITCHING_PROTOCOLS, headers)
        self._connection.become(limit, session)

    # The same without waiting, for who serves without a task (`gateway.relay.push_driver`).

    def expect(self, limit: int) -> None:
        """Take a body of at most `limit` bytes, although it is not consumed yet."""
        self._limit = limit
        if self.size > HIGH_WATER:
            self._connection.regulate()

    def content(self) -> bytes:
        """Return the body, all of which is here."""
        self._limit = self.size
        if self.size > HIGH_WATER:
            self._connection.regulate()
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def open(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response, with what comes next."""
        connection = self._connection
        server = connection.server
        if not self.body.done or server.draining:
            self.close = True
        fields = render_fields(headers)
        if status <= LAST_INFORMATIONAL or status in BODILESS:
            self._bodiless = True
        elif (promised := _promised(headers)) is not None:
            self._left = None if self._bodiless else promised
        elif self._head.plain:
            self.close = connection.unframed = True
        else:
            self._chunked = not self._bodiless
            fields += "transfer-encoding: chunked\r\n"
        closing = "connection: close\r\n" if self.close else ""
        connection.hold(f"{_first_line(status)}{server.date}{fields}{closing}\r\n".encode("ascii"))

    def put(self, data: bytes) -> None:
        """Send a piece of the body, however slow the client is."""
        if self.over or not data:
            return
        if self._chunked:
            self._connection.send(CHUNK % (len(data), data))
        else:
            self._send(data)

    def finish(self, data: bytes = b"") -> None:
        """Send the last piece."""
        if self.over:
            return
        self.over = True
        self._connection.unframed = False
        if self._chunked:
            self._connection.send(b"%x\r\n%b\r\n%b" % (len(data), data, LAST_CHUNK) if data else LAST_CHUNK)
        elif data:
            self._send(data)
        if self._left:  # less came than was promised: the client must not take what follows for it
            self.close = True

    @property
    def paused(self) -> bool:
        """Whether the client takes less than it is sent."""
        return self._connection.paused

    def resume(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have a task do the rest."""
        self._connection.have_served(self, work)

    def served(self) -> None:
        """Let the connection continue: the response is complete, or broken off."""
        self._connection.served(self)

    def abort(self) -> None:
        """Send nothing more, and close without the final chunk."""
        self.over = self.close = True

    # What the connection tells.

    def take(self, body: bytes) -> None:
        """Take the whole body, which came with the head."""
        self._pieces.append(body)
        self.size = len(body)
        self.body = WHOLE

    def feed(self, data: bytes) -> None:
        """Take the bytes read after the head."""
        piece = self.body.feed(data)
        if piece and self._problem is None and not self.over:
            self.size += len(piece)
            self._pieces.append(piece)
            if self._limit is not None and self.size > self._limit:
                self._problem = _too_large(self._limit)
                self.close = True
                self._pieces.clear()
                self._wake()
        if self.body.done or self._flows:
            self._wake()

    def fail(self, problem: Exception) -> None:
        """Note why there will be no (more) body, and raise that where the body is awaited."""
        if self._problem is None and not self.body.done:
            self.close = True
            self._problem = problem
            self._pieces.clear()
            self._wake()

    def leave(self) -> None:
        """Note that the client disconnected."""
        self.over = self.gone = True
        self._problem = ClientDisconnectedError("the client disconnected before its request was complete")
        self._pieces.clear()
        self._wake()

    @property
    def brimming(self) -> bool:
        """Whether as much of the body has come as is buffered before it is consumed."""
        if self._flows:
            return sum(map(len, self._pieces)) > HIGH_WATER and not self.over
        return self._limit is None and self.size > HIGH_WATER and not self.over

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _weigh(self, size: int) -> None:
        if self._limit is not None and size > self._limit:
            self.close = True
            raise _too_large(self._limit)

    def _send(self, data: bytes) -> None:
        if self._bodiless:
            return
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        self._connection.send(data)


_FIELD: Final = ": ".join


def render_fields(headers: Sequence[tuple[str, str]]) -> str:
    """Return the lines of `headers`; nothing in a value can end its line, or be more than visible ASCII (C22)."""
    lines = "\r\n".join([*map(_FIELD, headers), ""])
    if (
        len(lines) <= LONGEST_HEADER
        and lines.isascii()
        and lines.encode("ascii").translate(None, _VISIBLE) == b"\r\n" * len(headers)
    ):
        return lines
    return "".join([f"{for_header(name)}: {for_header(value)}\r\n" for name, value in headers])


def _promised(headers: Sequence[tuple[str, str]]) -> int | None:
    for name, value in headers:
        if name == "content-length":
            return int(value)
    return None


@lru_cache(maxsize=128)
def _first_line(status: int) -> str:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    return f"HTTP/1.1 {status} {reason}\r\n"


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the request's body is larger than {limit} bytes")


def too_slow() -> InvalidBodyError:
    """The body does not come as fast as it must."""
    return InvalidBodyError("the request's body comes too slowly", REQUEST_TIMEOUT)


REQUEST_TIMEOUT: Final = 408
