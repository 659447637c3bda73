"""The gateway as an ASGI application, spoken to in ASGI's own messages."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO, MESSAGES, EndlessBackend
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.http.asgi import Application
from xenoglot.gateway.http.asgi_exchange import ASGIExchange

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from xenoglot.backends.backend import Backend

    Message: TypeAlias = MutableMapping[str, Any]

TURNS = 100
"""More turns of the event loop than anything here takes to stand still."""


def application(backend: Backend) -> Application:
    """Return the application around one backend."""
    return Application(Gateway(config_for("scripted"), {"scripted": backend}))


def scope(path: str = "/v1/messages", **changes: object) -> Message:
    """Return the scope of a request."""
    usual = {"method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "type": "http"}
    return {**usual, "headers": [(b"host", b"localhost"), (b"content-length", b"1")], **changes}


async def some_turns() -> None:
    """Let everybody else have their turns."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Wire:
    """A server's side: what it hands in, and what it was handed. After the last message it waits."""

    def __init__(self, *messages: Message) -> None:
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self._messages = list(messages)

    async def receive(self) -> Message:
        """Hand in the next message; at the end, wait until the client is gone."""
        if self._messages:
            return self._messages.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message, and let others have their turn."""
        self.sent.append(message)
        await asyncio.sleep(0)


def body(value: object) -> Message:
    """Return the message of a whole body."""
    return {"type": "http.request", "body": json.dumps(value).encode(), "more_body": False}


async def test_lifespan() -> None:
    wire = Wire({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    await application(Scripted(HELLO))({"type": "lifespan"}, wire.receive, wire.send)
    assert wire.sent == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


async def test_a_request_in_pieces_and_its_answer() -> None:
    whole = json.dumps(MESSAGES).encode()
    pieces = [{"type": "http.request", "body": whole[at : at + 7], "more_body": True} for at in range(0, len(whole), 7)]
    wire = Wire(*pieces, {"type": "http.request"})
    await application(Scripted(HELLO))(scope(), wire.receive, wire.send)
    kinds = [(message["type"], message.get("status"), message.get("more_body")) for message in wire.sent]
    assert kinds == [("http.response.start", 200, None), ("http.response.body", None, False)]


async def test_c06_while_the_client_does_not_read_the_source_stands_still() -> None:
    backend = EndlessBackend()
    wire = Wire(body({**MESSAGES, "stream": True}))
    readable = asyncio.Event()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await readable.wait()
        await wire.send(message)

    serving = asyncio.create_task(application(backend)(scope(), wire.receive, send))
    await some_turns()
    assert backend.sent == 0
    readable.set()
    await some_turns()
    assert backend.sent > 0
    wire.gone.set()
    await serving


async def test_c22_what_cannot_stand_in_a_header_does_not() -> None:
    wire = Wire()
    exchange = ASGIExchange(scope(headers=[]), wire.receive, wire.send)
    await exchange.start(200, [("x-a", "1\r\nx-b: 2"), ("x-c", "naïve\0")])
    assert wire.sent[0]["headers"] == [(b"x-a", b"1??x-b: 2"), (b"x-c", b"na?ve?")]


async def test_after_an_abort_nothing_is_sent() -> None:
    wire = Wire()
    exchange = ASGIExchange(scope(headers=[]), wire.receive, wire.send)
    await exchange.start(200, [])
    exchange.abort()
    await exchange.write(b"x")
    await exchange.end(b"y")
    assert [message["type"] for message in wire.sent] == ["http.response.start"]


async def test_a_cancelled_server_is_not_answered_for_the_client() -> None:
    """Cancelled by its server, not by a client that left: the cancellation goes on to the server."""
    wire = Wire(body({**MESSAGES, "stream": True}))
    serving = asyncio.create_task(application(EndlessBackend())(scope(), wire.receive, wire.send))
    await some_turns()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


@pytest.mark.parametrize("end", ["gone", "answered"])
async def test_no_watcher_is_left_behind(end: str) -> None:
    wire = Wire(body({**MESSAGES, "stream": end == "gone"}))
    backend: Backend = EndlessBackend() if end == "gone" else Scripted(HELLO)
    serving = asyncio.create_task(application(backend)(scope(), wire.receive, wire.send))
    if end == "gone":
        await some_turns()
        wire.gone.set()
    await serving
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
