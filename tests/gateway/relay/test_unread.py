"""What a gateway holds for a client that reads nothing of a stream, in counted bytes (C06)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.backends import raw_server
from tests.backends.http.responses import CHUNKED
from tests.backends.raw_server import Peer, becomes, on_each_loop, turns
from tests.gateway.scripted_backends import CHAT, MESSAGES
from tests.gateway.server_on_loop import RawConnection, ServerOnLoop, post_bytes
from xenoglot.backends.http.connection import READ_BYTES
from xenoglot.gateway.config.load import check
from xenoglot.gateway.http.connection import ClientConnection
from xenoglot.gateway.http.server import HTTPServer
from xenoglot.gateway.http.write_side import HIGH_WATER
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import bind
from xenoglot.gateway.relay.push_driver import PushRelay

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


def chunk(*deltas: JSON) -> bytes:
    """Return the events of so many deltas, in one chunk of HTTP."""
    begun: JSONObject = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [begun | {"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    data = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    return b"%x\r\n%b\r\n" % (len(data), data)


BEGIN = CHUNKED.replace(b"\r\n\r\n", b"\r\ncontent-type: text/event-stream\r\n\r\n") + chunk({"role": "assistant"})
WORDS = chunk(*[{"content": "word " * 20}] * 4_000)


async def flood(peer: Peer) -> None:
    """Answer with words without end, as fast as they are taken."""
    await peer.request()
    peer.send(BEGIN)
    while True:
        peer.send(WORDS)
        await peer.drain()


def held(connection: ClientConnection) -> int:
    """Return the bytes held for a client, outside the kernel."""
    exchange = connection._exchange
    passage = None if exchange is None else exchange.passage
    reply = passage.reply if isinstance(passage, PushRelay) else None
    unread = 0 if reply is None else sum(map(len, reply.unread))
    return connection.transport.get_write_buffer_size() + connection._size + unread


async def unread(stage: ServerOnLoop, request: bytes) -> tuple[RawConnection, ClientConnection]:
    """Return a client that stops reading its stream, and its connection once nothing moves any more.

    It reads some megabytes before that, so that the kernel has learned to take much at once.
    """
    client = await stage.connect()
    (connection,) = stage.server.connections
    assert isinstance(connection, ClientConnection)
    client.send(request)
    await client.reader.readexactly(8_000_000)
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's have it
    await becomes(wanted=True, look=lambda: connection.paused)
    await turns(500)
    return client, connection


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/chat/completions", CHAT, id="findings-10-bytes-that-pass"),
        pytest.param("/v1/messages", MESSAGES, id="findings-10-events-written-anew"),
    ],
)
@on_each_loop
async def test_c06_a_stream_that_is_not_read_holds_a_few_reads(path: str, body: dict[str, JSON]) -> None:
    async with raw_server.serving(flood) as upstream:
        value: JSON = {
            "server": {"port": 0},
            "store": {"url": "off"},
            "upstreams": {"u": {"dialect": "chat", "base_url": upstream.url}},
            "models": [{"name": "*", "upstream": "u"}],
        }
        async with build_gateway(check(value, {}, "the test")) as gateway:
            with bind("127.0.0.1", 0) as listener:
                stage = ServerOnLoop(HTTPServer(gateway), listener.getsockname()[:2])
                stage.server.open([listener])
                client, connection = await unread(stage, post_bytes(path, {**body, "stream": True}))
                assert 0 < held(connection) <= HIGH_WATER + 2 * READ_BYTES
                stage.server.stop_accepting()
                client.writer.transport.abort()
                await stage.server.drained(0.0)
