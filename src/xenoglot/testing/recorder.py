"""Recording proxy: forwards requests and answers unchanged, and saves each exchange.

The body of an answer is forwarded read by read. Only hop-by-hop fields are rewritten (RFC 9110 section 7.6.1), and no
compression is requested, so that recordings are readable.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.backends.urls import endpoint
from xenoglot.http1.syntax import CONNECTION_FIELDS, LAST_CHUNK, chunk
from xenoglot.testing.cassette import Meta, RecordedExchange, dialect_at, redacted, save
from xenoglot.testing.playback import encode_head
from xenoglot.testing.raw_http import MessageReader
from xenoglot.testing.script import ResponseHead

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from xenoglot.backends.http.client import UpstreamResponse
    from xenoglot.testing.raw_http import Received

READ_BYTES = 65_536
BAD_GATEWAY = 502
HOP_BY_HOP = CONNECTION_FIELDS | {"accept-encoding", "proxy-connection"}


class Recorder:
    """Forwards each connection to the server at `base_url`; exchanges are saved in `folder`.

    `secrets` are texts to redact, in addition to credentials in headers and queries. `say` is called with a line for
    each exchange.
    """

    def __init__(
        self,
        base_url: str,
        folder: Path,
        *,
        secrets: Sequence[str] = (),
        transport: Transport | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._base_url = base_url
        self._folder = folder
        self._secrets = tuple(secrets)
        self._transport = transport or Transport()
        self._say = say
        self._count = sum(1 for _ in folder.glob("*/")) if folder.exists() else 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Start serving; return the server, which the caller closes before `aclose`."""
        return await asyncio.start_server(self._accept, host, port)

    async def aclose(self) -> None:
        """Cancel requests in progress, and close the upstream connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._transport.aclose()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or we stop: either way there is nobody to tell
        finally:
            writer.transport.abort()
            if task is not None:
                self._tasks.discard(task)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held = b""
        while True:
            message = MessageReader("request")
            message.feed(held)
            while not message.complete:
                data = await reader.read(READ_BYTES)
                if not data:
                    return
                message.feed(data)
            held = message.surplus
            request = message.received(asyncio.get_running_loop().time())
            if not await self._pass_on(request, writer):
                return

    async def _pass_on(self, request: Received, writer: asyncio.StreamWriter) -> bool:
        """Answer one request, and save it; return whether the connection can be reused."""
        exchange = _new_exchange(request)
        try:
            whole = await self._answer(request, writer, exchange)
        finally:
            self._save(exchange)
        await writer.drain()
        return whole and (request.header("connection") or "").lower() != "close"

    async def _answer(self, request: Received, writer: asyncio.StreamWriter, exchange: RecordedExchange) -> bool:
        url = endpoint(self._base_url, request.path, request.query)
        headers = [(name, value) for name, value in request.headers if name not in HOP_BY_HOP]
        try:
            reply = await self._transport.send(request.method, url, headers, request.body)
        except TransportError as error:
            writer.write(encode_head(ResponseHead(status=BAD_GATEWAY, length=0)))
            self._say(f"{request.method} {request.path}: {error}")
            return True
        try:
            return await _relay(reply, request, writer, exchange)
        except TransportError:  # cut: the client is to see that too
            return False
        finally:
            await reply.aclose()

    def _save(self, exchange: RecordedExchange) -> None:
        self._count += 1
        clean = redacted(exchange, self._secrets)
        place = save(clean, self._folder, self._count)
        meta = clean.meta
        self._say(
            f"{meta.method} {meta.path} -> {meta.status or 'no answer'} ({len(exchange.body)} bytes): {place.name}"
        )


def _new_exchange(request: Received) -> RecordedExchange:
    dialect = dialect_at(request.path) if request.method == "POST" else None
    meta = Meta(
        method=request.method,
        path=request.path,
        query=request.query,
        dialect=dialect.name if dialect else "",
        ending="cut",
        request_headers=request.headers,
    )
    return RecordedExchange(meta=meta, request=request.body)


async def _relay(
    reply: UpstreamResponse, request: Received, writer: asyncio.StreamWriter, exchange: RecordedExchange
) -> bool:
    """Pass the answer on, read by read, and note each."""
    loop = asyncio.get_running_loop()
    headers = tuple((name, value) for name, value in reply.headers if name not in HOP_BY_HOP)
    length = reply.header("content-length")
    coded = reply.header("content-encoding") is not None  # then it is decoded here, and of another length
    head = ResponseHead(status=reply.status, headers=headers, length=int(length) if length and not coded else None)
    writer.write(encode_head(head))
    body, chunks = bytearray(), []
    ending = "cut"
    try:
        async for piece in reply:
            body += piece
            chunks.append((round(loop.time() - request.at, 6), len(piece)))
            writer.write(piece if head.length is not None else chunk(piece))
            await writer.drain()
        ending = "whole"
    finally:
        exchange.body = bytes(body)
        exchange.meta = _ended(exchange.meta, reply.status, headers, tuple(chunks), whole=ending == "whole")
    if head.length is None:
        writer.write(LAST_CHUNK)
    return True


def _ended(
    meta: Meta, status: int, headers: tuple[tuple[str, str], ...], chunks: tuple[tuple[float, int], ...], *, whole: bool
) -> Meta:
    return Meta(
        method=meta.method,
        path=meta.path,
        query=meta.query,
        dialect=meta.dialect,
        status=status,
        ending="whole" if whole else "cut",
        request_headers=meta.request_headers,
        headers=headers,
        chunks=chunks,
    )
