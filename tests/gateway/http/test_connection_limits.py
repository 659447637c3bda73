"""What a connection may cost: time, room and descriptors. Time passes when a test pushes it."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import socket
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.raw_server import advance, becomes, leakless, on_each_loop, turns
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import CHAT, HELLO, MESSAGES, BlockingBackend, EndlessBackend
from tests.gateway.server_on_loop import HEALTH, HEALTHY, RawConnection, ServerOnLoop, post_bytes, serve_on_loop
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.settings import ConnectionSettings
from xenoglot.gateway.http.acceptor import PAUSE_SECONDS
from xenoglot.gateway.http.connection import ClientConnection
from xenoglot.gateway.http.server import BATCH
from xenoglot.gateway.http.write_side import HIGH_WATER, OVERFLOW, SLOW_BYTES, SLOW_SECONDS
from xenoglot.model.fold import unfold

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

CHAT_PATH = "/v1/chat/completions"
READ = 256 * 1024
"""What a loop reads at once."""


def status(answer: bytes) -> int:
    """Return the status of a response."""
    return int(answer.split(b" ", 2)[1])


def body(answer: bytes) -> bytes:
    """Return what stands behind the first head."""
    return answer.partition(b"\r\n\r\n")[2]


def responses(answers: bytes) -> list[int]:
    """Return the statuses of all responses in what came."""
    return [int(number) for number in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


class Exhausted:
    """A listening socket whose process has no descriptor left, for as many times as it is asked to accept."""

    def __init__(self, listener: socket.socket, number: int, times: int) -> None:
        self.asked = 0
        self._listener = listener
        self._number = number
        self._times = times

    def accept(self) -> tuple[socket.socket, object]:
        """Fail, or accept."""
        self.asked += 1
        if self.asked <= self._times:
            raise OSError(self._number, "")
        return self._listener.accept()

    def fileno(self) -> int:
        """Give the descriptor."""
        return self._listener.fileno()

    def close(self) -> None:
        """Close."""
        self._listener.close()


@leakless
async def test_c07_a_head_has_its_time_however_it_trickles() -> None:
    async with serve_on_loop(Scripted(HELLO), head_seconds=20.0) as stage:
        slow, other = await stage.connect(), await stage.connect()
        for byte in HEALTH[:12]:
            slow.send(bytes((byte,)))
            await advance(2.0)
        assert responses(await slow.read_to_end()) == [408]
        other.send(HEALTH)
        assert HEALTHY in await other.read_until(HEALTHY)


@leakless
async def test_c07_a_body_has_to_come_at_a_rate() -> None:
    async with serve_on_loop(Scripted(HELLO), body_rate=10) as stage:
        fast, slow = await stage.connect(), await stage.connect()
        data = b'{"model": "' + b"x" * 1_000
        for client in (fast, slow):
            client.send(post_bytes(CHAT_PATH, data)[:-900])
        await turns()
        for second in range(30):
            fast.send(data[:20])
            slow.send(b"x")
            await advance(1.0)
            if second == 21:
                assert responses(await slow.read_to_end()) == [408]
        assert len(stage.server.connections) == 1


@leakless
async def test_c07_a_body_has_to_come_to_its_end() -> None:
    async with serve_on_loop(Scripted(HELLO), body_rate=1, body_seconds=60.0) as stage:
        client = await stage.connect()
        client.send(post_bytes(CHAT_PATH, b"x" * 1_000_000)[:-999_999])
        for _ in range(8):
            client.send(b"x" * 100)
            await advance(10.0)
        assert responses(await client.read_to_end()) == [408]


@leakless
async def test_a_connection_without_a_request_is_closed_in_time() -> None:
    async with serve_on_loop(Scripted(HELLO), idle_seconds=75.0) as stage:
        fresh, used = await stage.connect(), await stage.connect()
        await advance(70.0)
        used.send(HEALTH)
        await used.read_until(HEALTHY)
        await advance(10.0)
        assert await fresh.read_to_end() == b""
        assert len(stage.server.connections) == 1
        await advance(70.0)
        assert await used.read_to_end() == b""


@on_each_loop
async def test_c06_a_client_that_does_not_read_holds_its_source_back() -> None:
    backend = EndlessBackend()
    async with serve_on_loop(backend) as stage:
        client = await stage.connect()
        client.writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's have it
        client.send(post_bytes(CHAT_PATH, {**CHAT, "stream": True}))
        said = await _standing_still(backend)
        assert said > 0


async def _standing_still(backend: EndlessBackend) -> int:
    """Wait until the backend says no more."""
    said = -1
    while backend.sent != said or not said:
        said = backend.sent
        await turns(200)
    return said


@leakless
async def test_c06_a_client_that_reads_nothing_is_broken_off_with_its_source() -> None:
    backend = EndlessBackend()
    async with serve_on_loop(backend, stall_seconds=60.0) as stage:
        client = await stage.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's have it
        client.send(post_bytes(CHAT_PATH, {**CHAT, "stream": True}))
        await _standing_still(backend)
        await advance(61.0)
        await advance(61.0)
        await becomes(set(), lambda: stage.server.tasks)
        assert stage.server.connections == set()


async def _pipelining(stage: ServerOnLoop, count: int) -> RawConnection:
    """Return a client that has sent many requests, and reads none of the answers."""
    client = await stage.connect()
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's have it
    client.writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    (connection,) = stage.server.connections
    connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    client.send(HEALTH.replace(b"Host", b"X: " + b"x" * 250 + b"\r\nHost") * count)
    written = -1
    for _ in range(1_000):
        tally = connection.transport.get_write_buffer_size()
        if tally == written and connection.paused and not connection.transport.is_reading():
            break
        written = tally
        await turns(200)
    return client


@on_each_loop
async def test_c06_who_reads_no_answers_gets_no_more_of_them_and_is_not_read_from() -> None:
    count = 1_200
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await _pipelining(stage, count)
        (connection,) = stage.server.connections
        assert connection.transport.get_write_buffer_size() < HIGH_WATER + 1024
        assert not connection.transport.is_reading()
        wire = connection.transport.get_extra_info("socket")
        for end in (wire, client.writer.transport.get_extra_info("socket")):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, READ)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READ)
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]  # asyncio's have it
        for _ in range(count):
            await client.read_until(HEALTHY)


@leakless
async def test_c06_who_reads_no_answers_is_broken_off() -> None:
    async with serve_on_loop(Scripted(HELLO), stall_seconds=60.0) as stage:
        await _pipelining(stage, 1_200)
        await advance(61.0)
        await advance(61.0)
        await becomes(set(), lambda: stage.server.connections)


@on_each_loop
async def test_c27_what_is_kept_of_a_flood_is_bounded_while_it_is_answered() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        client.send(HEALTH * 60_000)
        (connection,) = stage.server.connections
        assert isinstance(connection, ClientConnection)
        kept = 0
        for _ in range(100):
            await client.read_until(HEALTHY)
            kept = max(kept, len(connection._buffer))
        assert 0 < kept <= HIGH_WATER + 2 * READ


@leakless
async def test_c07_empty_lines_gain_no_time() -> None:
    async with serve_on_loop(Scripted(HELLO), head_seconds=20.0) as stage:
        client = await stage.connect()
        client.send(b"\r")
        for _ in range(4):
            await advance(6.0)
            client.send(b"\n\r")
        assert responses(await client.read_to_end()) == [408]


@leakless
async def test_c07_a_deadline_that_cannot_be_looked_at_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(_self: ClientConnection, _now: float) -> None:
        raise RuntimeError

    async with serve_on_loop(Scripted(HELLO), idle_seconds=5.0) as stage:
        client = await stage.connect()
        (connection,) = stage.server.connections
        connection.due = 0.0
        with monkeypatch.context() as patch:
            patch.setattr(ClientConnection, "look", look)
            with pytest.raises(RuntimeError):
                stage.server._sweep()
        await advance(6.0)
        assert await client.read_to_end() == b""


# Who comes, and who goes.


@on_each_loop
async def test_c08_of_too_many_the_one_that_waits_longest_goes() -> None:
    async with serve_on_loop(Scripted(HELLO), most=3) as stage:
        first, second, third = [await stage.connect() for _ in range(3)]
        first.send(HEALTH)
        await first.read_until(HEALTHY)
        fourth = await stage.connect()
        assert await second.read_to_end() in (b"", b"<reset>")
        for client in (first, third, fourth):
            client.send(HEALTH)
            await client.read_until(HEALTHY)


@pytest.mark.parametrize(
    ("path", "request_body"),
    [
        pytest.param(CHAT_PATH, CHAT, id="chat"),
        pytest.param("/v1beta/interactions", {"model": "m", "input": "Hi", "stream": True}, id="interactions"),
    ],
)
@leakless
async def test_c08_k09_where_all_are_busy_the_next_is_told_and_health_answers(
    path: str, request_body: JSONObject
) -> None:
    async with serve_on_loop(BlockingBackend(), most=2) as stage:
        for _ in range(2):
            (await stage.connect()).send(post_bytes(path, request_body))
        await becomes(2, lambda: len(stage.server.tasks))
        await turns(100)
        assert responses(await stage.exchange(HEALTH)) == [200]
        refused = await stage.exchange(post_bytes("/v1/messages", MESSAGES))
        assert (status(refused), b"retry-after: 1\r\n" in refused) == (503, True)
        assert json.loads(body(refused))["error"]["type"] == "overloaded_error"


@leakless
async def test_c08_beyond_all_room_nobody_is_let_in_until_somebody_goes() -> None:
    async with serve_on_loop(BlockingBackend(), most=1) as stage:
        clients = [await _busy(stage) for _ in range(1 + OVERFLOW)]
        waiting = RawConnection(*await asyncio.open_connection(*stage._address))
        stage.clients.append(waiting)
        waiting.send(HEALTH)
        await turns(100)
        assert len(stage.server.connections) == 1 + OVERFLOW
        await clients[0].close()
        assert HEALTHY in await waiting.read_to_end()


@leakless
async def test_k14_c08_more_room_is_used_once_it_is_configured() -> None:
    async with serve_on_loop(BlockingBackend(), most=1) as stage:
        for _ in range(1 + OVERFLOW):
            await _busy(stage)
        waiting = RawConnection(*await asyncio.open_connection(*stage._address))
        stage.clients.append(waiting)
        await turns(100)
        assert len(stage.server.connections) == 1 + OVERFLOW
        config = config_for("scripted")
        server = replace(config.server, connections=ConnectionSettings(most=1_000))
        stage.server.exchange(Gateway(replace(config, server=server), {"scripted": BlockingBackend()}))
        assert HEALTHY in await waiting.exchange(HEALTH.replace(b"Host", b"Connection: close\r\nHost"))


async def _busy(stage: ServerOnLoop) -> RawConnection:
    """Return a connection whose request is never answered, nor has an end."""
    client = await stage.connect()
    client.send(post_bytes("/health", b"x")[:-1])
    client.writer.write(b"")
    return client


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
@leakless
async def test_k17_without_descriptors_the_line_stands_still_and_goes_on(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        idle = await stage.connect()
        (acceptor,) = stage.server._acceptors
        acceptor._listener = listener = Exhausted(acceptor._listener, number, 3)  # type: ignore[assignment]  # as one
        coming = RawConnection(*await asyncio.open_connection(*stage._address))
        stage.clients.append(coming)
        coming.send(HEALTH)
        await becomes(2, lambda: listener.asked)  # at once: the one without a request was evicted
        await turns(200)
        assert (listener.asked, len(stage.server.connections)) == (2, 0)  # and now there is none to evict
        assert await idle.read_to_end() in (b"", b"<reset>")
        await advance(PAUSE_SECONDS)
        await becomes(3, lambda: listener.asked)
        await advance(PAUSE_SECONDS)
        assert HEALTHY in await coming.read_until(HEALTHY)
    told = [line for line in caplog.messages if line.startswith("no connection can be taken for now")]
    assert len(told) == 1


@leakless
async def test_findings_2_idle_connections_are_evicted_in_batches_and_no_time_passes() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        for _ in range(BATCH + 1):
            await stage.connect()
        (acceptor,) = stage.server._acceptors
        acceptor._listener = listener = Exhausted(acceptor._listener, errno.EMFILE, 1)  # type: ignore[assignment]  # as one
        assert HEALTHY in await (await stage.connect()).exchange(HEALTH.replace(b"Host", b"Connection: close\r\nHost"))
        assert (listener.asked, len(stage.server.connections)) == (3, 1)  # one batch; then one, and the end of the line


@leakless
async def test_k17_nobody_makes_room_where_room_is_not_what_is_wanting() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        idle = await stage.connect()
        (acceptor,) = stage.server._acceptors
        acceptor._listener = Exhausted(acceptor._listener, errno.ENETDOWN, 1)  # type: ignore[assignment]  # as one
        coming = RawConnection(*await asyncio.open_connection(*stage._address))
        stage.clients.append(coming)
        await turns(200)
        await advance(PAUSE_SECONDS)
        for client in (coming, idle):
            client.send(HEALTH)
            assert HEALTHY in await client.read_until(HEALTHY)


@leakless
async def test_findings_2_a_connection_that_becomes_idle_makes_room() -> None:
    events = tuple(unfold(HELLO))
    backend = BlockingBackend(events[:1], events[1:])
    async with serve_on_loop(backend, most=1) as stage:
        first = await stage.connect()
        first.send(post_bytes(CHAT_PATH, CHAT))
        await becomes([True], lambda: [backend.called.is_set()])
        for _ in range(OVERFLOW):
            await _busy(stage)
        waiting = RawConnection(*await asyncio.open_connection(*stage._address))
        stage.clients.append(waiting)
        waiting.send(HEALTH)
        await becomes(1, lambda: int(stage.server.crowded))
        backend.resume()
        assert responses(await first.read_until(b"\r\n\r\n")) == [200]
        assert HEALTHY in await waiting.read_to_end()


# Half requests where places run out, or the gateway stops.

HALF_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: "


@leakless
async def test_findings_11_half_a_head_delays_no_drain() -> None:
    async with serve_on_loop(Scripted(HELLO), head_seconds=20.0) as stage:
        half = await stage.connect()
        half.send(HALF_HEAD)
        await turns(100)
        stage.server.stop_accepting()
        await turns(100)
        assert len(stage.server.connections) == 1  # the rest may be on its way
        await advance(SLOW_SECONDS)
        assert await half.read_to_end() == b""
        await becomes(set(), lambda: stage.server.connections)


@leakless
async def test_findings_11_a_head_that_is_on_its_way_is_answered_while_it_drains() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        client.send(HEALTH[:-2])
        await turns(100)
        stage.server.stop_accepting()
        client.send(HEALTH[-2:])
        answer = await client.read_to_end()
        assert (responses(answer), b"connection: close\r\n" in answer) == ([200], True)


@leakless
async def test_findings_11_half_a_body_delays_no_drain_and_one_that_comes_is_waited_for() -> None:
    backend = Scripted(HELLO)
    data = json.dumps({**CHAT, "messages": [{"role": "user", "content": "x" * 8 * SLOW_BYTES}]}).encode()
    async with serve_on_loop(backend) as stage:
        half, fast = await stage.connect(), await stage.connect()
        half.send(post_bytes(CHAT_PATH, data)[:300])
        request = post_bytes(CHAT_PATH, data)
        fast.send(request[: -6 * SLOW_BYTES])
        await turns(200)
        stage.server.stop_accepting()
        for number in (5, 4, 3):
            fast.send(request[-(number + 1) * SLOW_BYTES : -number * SLOW_BYTES])
            await turns(200)
            await advance(SLOW_SECONDS - 0.25)
        refused = await half.read_to_end()
        assert (responses(refused), b"the gateway is being stopped" in refused) == ([503], True)
        fast.send(request[-3 * SLOW_BYTES :])
        assert responses(await fast.read_to_end()) == [200]


@leakless
async def test_findings_11_slow_bodies_make_room() -> None:
    async with serve_on_loop(Scripted(HELLO), most=2) as stage:
        slow, fast = await stage.connect(), await stage.connect()
        for client in (slow, fast):
            client.send(post_bytes(CHAT_PATH, b"x" * 4 * SLOW_BYTES)[: -3 * SLOW_BYTES])
            await turns(200)
        assert responses(await stage.exchange(post_bytes(CHAT_PATH, CHAT))) == [503]  # both may yet come
        await stage.clients[-1].close()
        await becomes(2, lambda: len(stage.server.connections))
        await advance(SLOW_SECONDS)
        fast.send(b"x" * SLOW_BYTES)
        await turns(200)
        assert responses(await stage.exchange(post_bytes(CHAT_PATH, CHAT, "Connection: close"))) == [200]
        assert await slow.read_to_end() in (b"", b"<reset>")
        assert len(stage.server.connections) == 1
