"""HTTP client for tests: sends exact bytes, reads as slowly as required, and sees how a connection ended."""

from __future__ import annotations

import asyncio
import socket
import struct
import warnings
from typing import TYPE_CHECKING, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.testing.raw_http import MessageReader
from xenoglot.testing.script import pieces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSON
    from xenoglot.testing.script import Split

READ_BYTES = 65_536
PATIENCE = 20.0
"""Timeout of a blocking read, in seconds."""
LINGER_NOT = struct.pack("ii", 1, 0)

Ending: TypeAlias = Literal["whole", "fin", "reset"]
"""How a response ended: as framed, or by FIN or RST before that."""


class RawReply(Struct, kw_only=True):
    """A response, as far as it arrived. `pieces` are its reads; `interim` the statuses of 1xx heads."""

    raw: bytes
    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    ending: Ending
    pieces: tuple[bytes, ...]
    interim: tuple[int, ...] = ()

    def header(self, name: str) -> str | None:
        """The first value of the header `name` (lower case)."""
        return next((value for named, value in self.headers if named == name), None)

    @property
    def json(self) -> JSON:
        """The body, decoded.

        Raises:
            WireError: it is not JSON.
        """
        return decode_json(self.body)


class ResponseReader:
    """One response being read: `feed` the bytes, `fail` if the connection ended; `complete` at its end."""

    def __init__(self, held: bytes = b"", *, bodiless: bool = False) -> None:
        self._reader = MessageReader("response", bodiless=bodiless)
        self._pieces: list[bytes] = []
        self._ended: Ending | None = None
        if held:
            self.feed(held)

    @property
    def complete(self) -> bool:
        """Whether the response has ended."""
        return self._reader.complete or self._ended is not None

    @property
    def raw(self) -> bytes:
        """All bytes of it so far."""
        return bytes(self._reader.raw)

    def feed(self, data: bytes) -> None:
        """Process one read; empty means FIN."""
        if data:
            self._pieces.append(data)
            self._reader.feed(data)
        else:
            self._reader.end()
            self._ended = "fin"

    def fail(self) -> None:
        """The connection was reset."""
        self._ended = "reset"

    @property
    def surplus(self) -> bytes:
        """Bytes after its end."""
        return self._reader.surplus if self._reader.complete else b""

    def reply(self) -> RawReply:
        """Return the response."""
        reader = self._reader
        return RawReply(
            raw=bytes(reader.raw[: len(reader.raw) - len(self.surplus)]),
            status=reader.status,
            headers=reader.headers,
            body=reader.body,
            ending="whole" if reader.complete else self._ended or "fin",
            pieces=tuple(self._pieces),
            interim=tuple(reader.interim),
        )


def request(
    method: str,
    path: str,
    body: JSON | bytes = None,
    headers: Mapping[str, str] | None = None,
    *,
    host: str = "localhost",
) -> bytes:
    """Return the bytes of a plain request with a `content-length`; a `body` that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else b"" if body is None else encode_json(body)
    typed = {} if isinstance(body, bytes) or body is None else {"content-type": "application/json"}
    sized = {"content-length": str(len(data))} if data or method not in {"GET", "HEAD"} else {}
    fields = {"host": host, **typed, **sized, **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def address(url: str) -> tuple[str, int]:
    """Return the host and the port that a URL names."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


class RawClient:
    """A connection to the server at `url`, for a program that blocks. Use it as a context manager."""

    def __init__(self, url: str, *, timeout: float = PATIENCE) -> None:
        self._socket = socket.create_connection(address(url), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes, split: Split = 0) -> None:
        """Send bytes, each piece of `split` in a segment of its own."""
        for piece in pieces(data, split):
            self._socket.sendall(piece)

    def read(self, count: int = READ_BYTES) -> bytes:
        """Return one read of at most `count` bytes; empty if the server has closed.

        Raises:
            ConnectionResetError: the server reset the connection.
            TimeoutError: no data.
        """
        return self._socket.recv(count)

    def read_until(self, mark: bytes) -> bytes:
        """Return the data up to the read that contains `mark`, or to the end of the connection."""
        data = self._unread
        while mark not in data and (piece := self.read()):
            data += piece
        self._unread = b""
        return data

    def reply(self, *, count: int = READ_BYTES, bodiless: bool = False, begun: bytes = b"") -> RawReply:
        """Return the next response, read `count` bytes at a time; `begun` is the part read before."""
        reading = ResponseReader(begun + self._unread, bodiless=bodiless)
        while not reading.complete:
            try:
                reading.feed(self.read(count))
            except ConnectionError:
                reading.fail()
        self._unread = reading.surplus
        return reading.reply()

    def request(
        self, method: str, path: str, body: JSON | bytes = None, headers: Mapping[str, str] | None = None
    ) -> RawReply:
        """Send a plain request, and return the response."""
        self.send(request(method, path, body, headers))
        return self.reply(bodiless=method == "HEAD")

    def ask(
        self, method: str, path: str, body: JSON | bytes = None, headers: Mapping[str, str] | None = None
    ) -> RawReply:
        """Call `request`, whose name in the last release this is."""
        warnings.warn("`RawClient.ask` is now `RawClient.request`", DeprecationWarning, stacklevel=2)
        return self.request(method, path, body, headers)

    def half_close(self) -> None:
        """Send FIN, and continue reading."""
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Send RST at once."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self._socket.close()

    def close(self) -> None:
        """Close."""
        self._socket.close()


class AsyncRawClient:
    """The same for an event loop. Data stays in the socket until it is read.

    `window` bounds the kernel's receive buffer, in bytes, to back-pressure the server.
    """

    def __init__(self, url: str, *, window: int | None = None) -> None:
        self._address = address(url)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)  # noqa: FBT003 - a socket's own spelling
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if window is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self._unread = b""

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            OSError: the server cannot be reached.
        """
        try:
            await asyncio.get_running_loop().sock_connect(self._socket, self._address)
        except BaseException:
            self._socket.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def send(self, data: bytes, split: Split = 0) -> None:
        """Send bytes, each piece of `split` in a segment of its own, seen separately by a server in this loop."""
        for number, piece in enumerate(pieces(data, split)):
            if number:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await asyncio.get_running_loop().sock_sendall(self._socket, piece)

    async def read(self, count: int = READ_BYTES) -> bytes:
        """Return one read of at most `count` bytes; empty if the server has closed.

        Raises:
            ConnectionResetError: the server reset the connection.
        """
        return await asyncio.get_running_loop().sock_recv(self._socket, count)

    async def read_until(self, mark: bytes) -> bytes:
        """Return the data up to the read that contains `mark`, or to the end of the connection."""
        data = self._unread
        while mark not in data and (piece := await self.read()):
            data += piece
        self._unread = b""
        return data

    async def reply(self, *, count: int = READ_BYTES, bodiless: bool = False, begun: bytes = b"") -> RawReply:
        """Return the next response, read `count` bytes at a time; `begun` is the part read before."""
        reading = ResponseReader(begun + self._unread, bodiless=bodiless)
        while not reading.complete:
            try:
                reading.feed(await self.read(count))
            except ConnectionError:
                reading.fail()
        self._unread = reading.surplus
        return reading.reply()

    async def request(
        self, method: str, path: str, body: JSON | bytes = None, headers: Mapping[str, str] | None = None
    ) -> RawReply:
        """Send a plain request, and return the response."""
        await self.send(request(method, path, body, headers))
        return await self.reply(bodiless=method == "HEAD")

    async def ask(
        self, method: str, path: str, body: JSON | bytes = None, headers: Mapping[str, str] | None = None
    ) -> RawReply:
        """Call `request`, whose name in the last release this is."""
        warnings.warn("`AsyncRawClient.ask` is now `AsyncRawClient.request`", DeprecationWarning, stacklevel=2)
        return await self.request(method, path, body, headers)

    def half_close(self) -> None:
        """Send FIN, and continue reading."""
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Send RST at once."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self._socket.close()

    def close(self) -> None:
        """Close."""
        self._socket.close()
