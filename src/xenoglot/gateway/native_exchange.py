"""One request on a connection of our own server, as an `Exchange`: its body coming in, its response going out."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from xenoglot.gateway.exchange import BodyBrokenError, BodyTooLargeError, ClientGoneError
from xenoglot.gateway.native_body import body_of
from xenoglot.gateway.native_bounds import HIGH_WATER
from xenoglot.gateway.printable import LONGEST_HEADER, for_header

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.native import Connection
    from xenoglot.gateway.native_head import Head

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
LAST_INFORMATIONAL: Final = 199
BODILESS: Final = frozenset({204, 304})
"""Statuses whose responses have no body, and no word of its length (RFC 9110 section 6.4.1)."""


class NativeExchange:
    """A request whose head is here, and its response."""

    reads_behind_upgrade = True

    def __init__(self, connection: Connection, head: Head, peer: str) -> None:
        self.method = head.method
        self.path = head.path
        self.query = head.query
        self.headers: Sequence[tuple[str, str]] = head.headers
        self.variables: Mapping[str, str] = {}
        self.peer = peer
        self.close = head.close
        """Whether the connection ends with the response."""
        self.body = body_of(head.length)
        self.over = False
        """Whether the response is complete, or broken off."""
        self.begun = False
        """Whether somebody is at work on it."""
        self.size = 0
        """Bytes of the body that have come."""
        self._length = head.length
        self._plain = head.plain
        self._waits = head.waits
        self._connection = connection
        self._pieces: list[bytes] = []
        self._limit: int | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._problem: Exception | None = None
        self._bodiless = head.method == "HEAD"
        self._chunked = False
        self._left: int | None = None
        """Bytes of the response's body that its head has promised and that are still to come."""

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        return next((value for field, value in self.headers if field == name), None)

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            BodyBrokenError: it is malformed, or comes too slowly.
            ClientGoneError: the client left before it was complete.
        """
        self._limit = limit
        self._connection.regulate()  # nothing brims any more: who is not read from is not seen to leave
        self._weigh(self._length or 0)
        self._weigh(self.size)
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

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response; what cannot stand in a header is replaced."""
        connection = self._connection
        if not self.body.done or connection.server.draining:
            self.close = True
        fields = fields_of(headers)
        promised = _promised(headers)
        if status <= LAST_INFORMATIONAL or status in BODILESS:
            self._bodiless = True
        elif promised is not None:
            self._left = None if self._bodiless else promised
        elif self._plain:
            self.close = connection.unframed = True
        else:
            self._chunked = not self._bodiless
            fields += "transfer-encoding: chunked\r\n"
        closing = "connection: close\r\n" if self.close else ""
        connection.hold(f"{_first_line(status)}{connection.server.date}{fields}{closing}\r\n".encode("ascii"))

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; wait while the client is slower than that."""
        if self.over or not data:
            return
        self._send(data)
        if self._connection.paused:
            await self._connection.writable()

    async def end(self, data: bytes = b"") -> None:
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

    def abort(self) -> None:
        """Send nothing more, and close without the final chunk."""
        self.over = self.close = True

    # What the connection tells.

    def feed(self, data: bytes) -> None:
        """Take what has been read behind the head."""
        piece = self.body.feed(data)
        if piece and self._problem is None and not self.over:
            self.size += len(piece)
            self._pieces.append(piece)
            if self._limit is not None and self.size > self._limit:
                self._problem = _too_large(self._limit)
                self.close = True
                self._pieces.clear()
                self._wake()
        if self.body.done:
            self._wake()

    def fail(self, problem: Exception) -> None:
        """Note why there will be no (more) body; whoever waits for it is told."""
        if self._problem is None and not self.body.done:
            self.close = True
            self._problem = problem
            self._pieces.clear()
            self._wake()

    def leave(self) -> None:
        """Note that the client is gone."""
        self.over = True
        self._problem = ClientGoneError("the client left before its request was complete")
        self._pieces.clear()
        self._wake()

    @property
    def brimming(self) -> bool:
        """Whether as much of the body has come as is kept for somebody who has not asked for it."""
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
        if self._chunked:
            self._connection.send(b"%x\r\n%b\r\n" % (len(data), data))
            return
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        self._connection.send(data)


def fields_of(headers: Sequence[tuple[str, str]]) -> str:
    """Return the lines of `headers`; nothing in a value can end its line, or be more than visible ASCII (C22)."""
    lines = "".join([f"{name}: {value}\n" for name, value in headers])
    fit = lines.replace("\n", "")
    if len(fit) + len(headers) == len(lines) <= LONGEST_HEADER and fit.isascii() and fit.isprintable():
        return lines.replace("\n", "\r\n")
    return "".join([f"{for_header(name)}: {for_header(value)}\r\n" for name, value in headers])


def _promised(headers: Sequence[tuple[str, str]]) -> int | None:
    return next((int(value) for name, value in headers if name == "content-length"), None)


@lru_cache(maxsize=128)
def _first_line(status: int) -> str:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    return f"HTTP/1.1 {status} {reason}\r\n"


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the request's body is larger than {limit} bytes")


def too_slow() -> BodyBrokenError:
    """The body does not come as fast as it must."""
    return BodyBrokenError("the request's body comes too slowly", REQUEST_TIMEOUT)


REQUEST_TIMEOUT: Final = 408
