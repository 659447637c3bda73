"""What the relay alone decides: when an answer is whole, and what a client hears while nobody speaks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from tests.backends.raw_server import turns
from tests.gateway.running_gateway import TIMEOUT, RunningGateway, config_for, read_all, read_until
from tests.gateway.scripted_backends import FIRST_EVENTS, PATHS, BlockingBackend
from tests.gateway.test_faults import ERROR_EVENTS, FINAL_CHUNK, post
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import ServerSettings
from xenoglot.gateway.relay.task_driver import QueuedOutput
from xenoglot.model.events import BlockEnded, Finished
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.http.application import Exchange

PINGS = {"/v1/chat/completions": b": ping\n\n", "/v1/messages": b'event: ping\ndata: {"type":"ping"}\n\n'}
ENDING = (BlockEnded(), Finished(finish=Finish(reason="stop")))
QUICK = config_for("scripted", server=ServerSettings(ping_interval=0.01))


@pytest.mark.parametrize("path", PATHS, ids=["U14-chat", "U14-messages"])
def test_a_whole_answer_that_nobody_finished_is_none(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    running = gateway_server({"scripted": Scripted((*FIRST_EVENTS, BlockEnded()))}, QUICK)
    assert running.request("POST", path, PATHS[path]).status == 502


@pytest.mark.parametrize("path", PATHS, ids=["U14-chat", "U14-messages"])
def test_a_stream_that_nobody_finished_is_broken_off(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    running = gateway_server({"scripted": Scripted((*FIRST_EVENTS, BlockEnded()))}, QUICK)
    with running.connect() as connection:
        connection.sendall(post(path, {**PATHS[path], "stream": True}))
        answer = read_all(connection)
    assert answer.count(ERROR_EVENTS[path]) == 1
    assert not answer.endswith(FINAL_CHUNK)
    assert b"[DONE]" not in answer
    assert b"message_stop" not in answer


@pytest.mark.parametrize("begun", [(), FIRST_EVENTS], ids=["U09-before-the-first-word", "U10-in-the-middle"])
@pytest.mark.parametrize("path", PATHS, ids=["pitfall-107-chat", "pitfall-107-messages"])
def test_silence_is_bridged(
    gateway_server: Callable[..., RunningGateway], path: str, begun: tuple[object, ...]
) -> None:
    backend = BlockingBackend(begun, ENDING) if begun else BlockingBackend((), ())  # type: ignore[arg-type]  # what `FIRST_EVENTS` holds
    running = gateway_server({"scripted": backend}, QUICK)
    with running.connect() as connection:
        connection.sendall(post(path, {**PATHS[path], "stream": True}))
        assert backend.called.wait(TIMEOUT)
        heard = read_until(connection, PINGS[path])
        heard += read_until(connection, PINGS[path])
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (b"Hel" in heard) == bool(begun)
    assert backend.cancelled.wait(TIMEOUT)


class SlowExchange:
    """Notes what is sent, in order; a write waits until the client reads."""

    def __init__(self) -> None:
        self.sent: list[bytes | str] = []
        self.reads = asyncio.Event()

    async def start(self, status: int, _headers: object) -> None:
        self.sent.append(f"head {status}")

    async def write(self, data: bytes) -> None:
        self.sent.append(data)
        await self.reads.wait()

    async def end(self, data: bytes = b"") -> None:
        self.sent.append(data + b"|")

    def abort(self) -> None:
        self.sent.append("abort")


async def test_what_is_queued_leaves_in_order_whoever_sends_it() -> None:
    exchange = SlowExchange()
    output = QueuedOutput(cast("Exchange", exchange))

    def heartbeat() -> float:
        output.open(200, ())
        output.put(b"heartbeat")
        return output.loop.time() + 3600.0

    output._beat(heartbeat)  # its task is made, and has not begun
    output.put(b"event")
    sending = asyncio.ensure_future(output.flush())
    await turns()
    assert (exchange.sent, output.paused) == (["head 200", b"heartbeat"], True)
    output.put(b"half")
    output.abort()
    exchange.reads.set()
    await sending
    output.stop()
    await turns()
    assert (exchange.sent, output.paused) == (["head 200", b"heartbeat", b"event", b"half", "abort"], False)


async def test_no_heartbeat_is_sent_beside_a_write_that_waits() -> None:
    exchange = SlowExchange()
    output = QueuedOutput(cast("Exchange", exchange))
    output.put(b"event")
    sending = asyncio.ensure_future(output.flush())
    await turns()
    tasks = asyncio.all_tasks()
    output._beat(lambda: output.loop.time() + 3600.0)
    assert asyncio.all_tasks() == tasks
    exchange.reads.set()
    await sending
    output.stop()
    assert exchange.sent == [b"event"]
