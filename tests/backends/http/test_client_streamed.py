"""Requests whose bodies are sent while they come: pace, refusals in the middle, and bodies that break off."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.backends.http.http1 import prepare

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PIECE = bytes(64 * 1024)
PIECES = 256
LENGTH = PIECES * len(PIECE)
DONE = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone"


class Pieces:
    """A body in pieces, and how many of them were taken."""

    def __init__(self, count: int = PIECES - 1, error: Exception | None = None) -> None:
        self.taken = 0
        self._count, self._error = count, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield them."""
        for _ in range(self._count):
            self.taken += 1
            yield PIECE
            await asyncio.sleep(0)
        if self._error is not None:
            raise self._error


@asynccontextmanager
async def posting(serve: Handler) -> AsyncGenerator[Callable[[Pieces], Awaitable[tuple[int, bytes]]]]:
    """Give what posts a body in pieces to a server."""

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = Transport()

    async def post(pieces: Pieces) -> tuple[int, bytes]:
        request = prepare("POST", f"http://127.0.0.1:{port}/", ()).streamed(PIECE, LENGTH)
        async with await transport.send_streamed(request, aiter(pieces)) as reply:
            return reply.status, await reply.read()

    async with server:
        try:
            yield post
        finally:
            await transport.aclose()


async def test_a_body_arrives_whole() -> None:
    seen: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append(len(await reader.readexactly(LENGTH)))
        writer.write(DONE)

    async with posting(serve) as post:
        assert await post(Pieces()) == (200, b"done")
    assert seen == [LENGTH]


async def test_an_upstream_that_does_not_read_is_not_sent_more_than_it_takes() -> None:
    read = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read.wait()
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(LENGTH)
        writer.write(DONE)

    pieces = Pieces()
    async with posting(serve) as post:
        posted = asyncio.ensure_future(post(pieces))
        before = -1
        while pieces.taken != before or not before:  # until it waits for the server
            before = pieces.taken
            for _ in range(50):
                await asyncio.sleep(0)
        assert before < PIECES - 1
        read.set()
        assert await posted == (200, b"done")
    assert pieces.taken == PIECES - 1


async def test_a_refusal_in_the_middle_ends_the_sending() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nmuch"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        with suppress(ConnectionError):
            await reader.read()

    pieces = Pieces()
    async with posting(serve) as post:
        assert await post(pieces) == (413, b"much")
    assert pieces.taken < PIECES - 1


async def test_a_body_that_breaks_off_closes_the_connection() -> None:
    ends: list[bytes] = []
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            ends.append(await reader.readexactly(LENGTH))
        except (asyncio.IncompleteReadError, ConnectionError):
            closed.set()

    async with posting(serve) as post:
        with pytest.raises(ValueError, match="no form"):
            await post(Pieces(3, ValueError("no form")))
        await closed.wait()
    assert ends == []


async def test_an_upstream_that_closes_in_the_middle_is_a_transport_error() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with posting(serve) as post:
        with pytest.raises(TransportError):
            await post(Pieces())
