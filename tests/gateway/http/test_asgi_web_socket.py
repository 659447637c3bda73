"""The gateway's WebSocket as an ASGI application: in ASGI's own messages, and in uvicorn."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect

from tests.backends.raw_server import advance, becomes, leakless, turns
from tests.gateway.asgi_server import ASGIServer
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, BlockingBackend, EndlessBackend
from tests.gateway.web_socket.socket_client import ENDS, created
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.auth.keys import Keyring
from xenoglot.gateway.http.asgi import Application
from xenoglot.gateway.http.write_side import HIGH_WATER
from xenoglot.gateway.process.serve import bind

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.http.asgi_exchange import Message
    from xenoglot.model.json import JSON, JSONObject

STATUS: Any = {"websocket.http.response": {}}


class SocketWire:
    """A server's side of one connection that was opened."""

    def __init__(self, gateway: Gateway, *headers: tuple[bytes, bytes], extensions: JSON = None) -> None:
        self.sent: list[Message] = []
        self.open = asyncio.Event()
        self.open.set()
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._messages.put_nowait({"type": "websocket.connect"})
        self.application = Application(gateway)
        scope = {"type": "websocket", "path": "/v1/responses", "raw_path": b"/v1/responses", "query_string": b""}
        scope |= {"headers": [(b"host", b"localhost"), *headers], "extensions": extensions}
        self.task = asyncio.get_running_loop().create_task(self.application(scope, self._messages.get, self._send))

    async def _send(self, message: Message) -> None:
        await self.open.wait()
        self.sent.append(message)
        await asyncio.sleep(0)

    def say(self, event: JSONObject) -> None:
        """Send an event to the gateway."""
        self.give({"type": "websocket.receive", "text": json.dumps(event)})

    def give(self, message: Message) -> None:
        """Hand in a message."""
        self._messages.put_nowait(message)

    def events(self) -> list[JSONObject]:
        """Return the events that were sent."""
        return [json.loads(message["text"]) for message in self.sent if message["type"] == "websocket.send"]

    async def ends(self, count: int) -> list[JSONObject]:
        """Return the events that end answers, when there are so many."""
        await becomes(count, lambda: len([one for one in self.events() if one["type"] in ENDS]))
        return [event for event in self.events() if event["type"] in ENDS]

    async def close(self) -> None:
        """Disconnect the client, and wait for the application."""
        self.give({"type": "websocket.disconnect", "code": 1000})
        await self.task
        await self.application.gateway.aclose()


def gateway_for(backend: Backend, *, body_limit: int | None = None) -> Gateway:
    """Return a gateway around one backend."""
    config = config_for("scripted")
    if body_limit is not None:
        config = replace(config, server=replace(config.server, body_limit=body_limit))
    return Gateway(config, {"scripted": backend})


@leakless
async def test_requests_continue_one_another_until_the_client_disconnects() -> None:
    backend = Scripted(HELLO)
    wire = SocketWire(gateway_for(backend))
    wire.say(created("Hi"))
    (first,) = await wire.ends(1)
    wire.say(created("On", previous_response_id=first["response"]["id"]))
    assert (await wire.ends(2))[-1]["type"] == "response.completed"
    accepted = wire.sent[0]
    names = [name for name, _ in accepted["headers"]]
    assert accepted["type"] == "websocket.accept"
    assert b"x-request-id" in names
    assert not {b"upgrade", b"connection", b"sec-websocket-accept"} & set(names)
    assert len(backend.requests[-1].messages) == 3
    await wire.close()
    assert wire.sent[-1]["type"] == "websocket.send"


@pytest.mark.parametrize(
    ("extensions", "sent"),
    [
        pytest.param(
            STATUS, [("websocket.http.response.start", 401), ("websocket.http.response.body", None)], id="C28"
        ),
        pytest.param(None, [("websocket.close", None)], id="C28-without-a-status"),
    ],
)
@leakless
async def test_a_handshake_without_the_key_is_refused(extensions: JSON, sent: list[tuple[str, int | None]]) -> None:
    gateway = gateway_for(Scripted(HELLO))
    gateway.auth.keyring = Keyring(["secret-key"])
    wire = SocketWire(gateway, extensions=extensions)
    await wire.task
    assert [(message["type"], message.get("status")) for message in wire.sent] == sent
    await gateway.aclose()


@leakless
async def test_a_page_of_another_origin_is_refused() -> None:
    """S05: a browser asks no leave before a WebSocket."""
    wire = SocketWire(gateway_for(Scripted(HELLO)), (b"origin", b"https://evil.example"), extensions=STATUS)
    await wire.task
    assert wire.sent[0]["status"] == 403
    await wire.application.gateway.aclose()


@leakless
async def test_a_client_that_disconnects_stops_the_upstream() -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    wire = SocketWire(gateway_for(backend))
    wire.say(created())
    await becomes(1, lambda: int(bool(wire.events())))
    await wire.close()
    assert backend.cancelled.is_set()


@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param({"type": "websocket.receive", "bytes": b"{}"}, 1003, id="binary"),
        pytest.param({"type": "websocket.receive", "text": "x" * 2_001}, 1009, id="too-large"),
    ],
)
@leakless
async def test_what_is_no_message_closes_the_connection(message: Message, code: int) -> None:
    wire = SocketWire(gateway_for(Scripted(HELLO), body_limit=2_000))
    wire.give(message)
    await wire.task
    assert (wire.sent[-1]["type"], wire.sent[-1]["code"]) == ("websocket.close", code)
    await wire.application.gateway.aclose()


@leakless
async def test_a_slow_client_slows_the_upstream_down_and_one_that_takes_nothing_has_disconnected() -> None:
    backend = EndlessBackend()
    wire = SocketWire(gateway_for(backend))
    wire.say(created())
    await becomes(1, lambda: int(len(wire.events()) > 3))
    wire.open.clear()
    await turns(2_000)
    sent = backend.sent
    await turns(200)
    assert backend.sent == sent
    assert sent * len(wire.sent[-1]["text"]) < 10 * HIGH_WATER
    await advance(config_for("scripted").server.connections.stall_seconds + 1)
    await wire.task
    await wire.application.gateway.aclose()


async def test_in_uvicorn() -> None:
    """A client of its own asks twice, leaves in the middle, and the server stops while another is connected."""
    backend = BlockingBackend(FIRST_EVENTS)
    gateway = Gateway(config_for("scripted"), {"scripted": backend})
    server = ASGIServer(gateway, sockets=True)
    listener = bind("127.0.0.1", 0)
    serving = asyncio.get_running_loop().create_task(server.serve([listener]))
    url = f"ws://127.0.0.1:{listener.getsockname()[1]}/v1/responses"
    async with connect(url) as client:
        await client.send(json.dumps(created(generate=False)))
        events = [json.loads(await client.recv()) for _ in range(3)]
        assert events[-1]["type"] == "response.completed"
        await client.send(json.dumps(created(previous_response_id=events[-1]["response"]["id"])))
        assert json.loads(await client.recv())["type"] == "response.created"
    await becomes(1, lambda: int(backend.cancelled.is_set()))
    async with connect(url) as other:
        server.should_exit = True
        await other.wait_closed()
    await serving
    await gateway.aclose()
