"""Our own server on the test's own loop, whose clock stands until it is pushed on, and clients that send raw bytes."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tests.backends.raw_server import becomes, turns
from tests.gateway.running_gateway import config_for
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.settings import ConnectionSettings
from xenoglot.gateway.http.server import HTTPServer
from xenoglot.gateway.process.serve import bind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEALTHY = b'{"status":"ok"}'


def post_bytes(path: str, body: JSON | bytes, *headers: str) -> bytes:
    """Return the bytes of a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


class RawConnection:
    """One connection, from the client's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        """Send bytes, without waiting for anything."""
        self.writer.write(data)

    async def read_until(self, mark: bytes) -> bytes:
        """Return what comes, up to and including `mark`."""
        return await self.reader.readuntil(mark)

    async def read_to_end(self) -> bytes:
        """Return all that comes until the server closes; a reset ends it with `<reset>`."""
        pieces = []
        try:
            while piece := await self.reader.read(65_536):
                pieces.append(piece)
        except ConnectionError:
            pieces.append(b"<reset>")
        return b"".join(pieces)

    async def exchange(self, data: bytes) -> bytes:
        """Send bytes and return all that comes until the server closes."""
        self.send(data)
        return await self.read_to_end()

    async def close(self) -> None:
        """Close."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:  # the server had closed with bytes of ours unread
            return


class ServerOnLoop:
    """A server, and clients of it; all are gone in the end."""

    def __init__(self, server: HTTPServer[Gateway], address: tuple[str, int]) -> None:
        self.server = server
        self.clients: list[RawConnection] = []
        self._address = address

    async def connect(self) -> RawConnection:
        """Return a connection that the server has taken."""
        before = len(self.server.connections)
        client = RawConnection(*await asyncio.open_connection(*self._address, limit=2**24))
        self.clients.append(client)
        for _ in range(100):  # or it was taken in another's place
            if len(self.server.connections) != before:
                break
            await asyncio.sleep(0)
        await turns()
        return client

    async def exchange(self, data: bytes) -> bytes:
        """Return what comes on a connection of its own until the server closes it."""
        return await (await self.connect()).exchange(data)


@asynccontextmanager
async def serve_on_loop(backend: Backend, config: Config | None = None, **bounds: float) -> AsyncIterator[ServerOnLoop]:
    """Serve `backend` on the running loop."""
    config = config or config_for("scripted")
    config = replace(config, server=replace(config.server, connections=ConnectionSettings(**bounds)))  # type: ignore[arg-type]
    gateway = Gateway(config, {"scripted": backend})
    with bind("127.0.0.1", 0) as listener:
        stage = ServerOnLoop(HTTPServer(gateway), listener.getsockname()[:2])
        stage.server.open([listener])
        try:
            yield stage
        finally:
            stage.server.stop_accepting()
            for client in stage.clients:
                client.writer.transport.abort()
            await stage.server.drained(0.0)
            await gateway.aclose()
            await becomes(set(), lambda: stage.server.connections)
