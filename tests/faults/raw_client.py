"""A client that sends bytes and stores what it receives."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from xenoglot.testing.raw_http import MessageReader


class RawResponse(Struct):
    """What the client got: `complete` says that the framing of HTTP says so, `ending` how the connection ended."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool
    raw: bytes


class RawClient(asyncio.Protocol):
    """A client that sends bytes and keeps what comes."""

    def __init__(self) -> None:
        self.reader = MessageReader("response")
        self.closed = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self.transport = transport  # type: ignore[assignment]  # TCP's

    def data_received(self, data: bytes) -> None:
        """Keep what came."""
        self.reader.feed(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """Note the end."""
        self.closed = True

    @property
    def finished(self) -> bool:
        """Whether nothing more is to come."""
        return self.reader.complete or self.closed

    def response(self) -> RawResponse:
        """Return what came so far."""
        reader = self.reader
        headers = dict(reversed(reader.headers))
        return RawResponse(reader.status or 0, headers, reader.body, reader.complete, bytes(reader.raw))
