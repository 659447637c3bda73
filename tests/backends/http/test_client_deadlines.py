"""Deadlines: connect, first byte, idle and total, each told from the others, without a moment of waiting."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.backends.http.responses import CHUNKED
from tests.backends.raw_server import (
    advance,
    becomes,
    collect,
    leakless,
    on_each_loop,
    open_sockets,
    respond_with,
    response,
    serving,
    turns,
)
from xenoglot.backends.http.client import Deadlines, Transport, TransportError, UpstreamResponse
from xenoglot.backends.http.exchange import HIGH_WATER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def start_request(transport: Transport, url: str) -> asyncio.Task[UpstreamResponse]:
    return asyncio.create_task(transport.send("POST", url, [], b"{}"))


async def times_out(
    task: asyncio.Task[UpstreamResponse] | asyncio.Task[bytes] | asyncio.Task[None],
    stage: str,
    problem: str,
    *,
    sent: bool,
) -> None:
    """Assert that the task has ended, and how."""
    await becomes(wanted=True, look=task.done)
    error = task.exception()
    assert isinstance(error, TransportError)
    assert (error.kind, error.stage, str(error), error.sent) == ("timeout", stage, problem, sent)


FIRST_BYTE = "the upstream did not answer within the deadline of the first byte"
IDLE = "the upstream went silent within the body"
TOTAL = "the exchange took longer than its total deadline"


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port whose queue of connections is full: Linux drops every further SYN."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        for client in waiting:
            client.settimeout(0)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]
        for client in waiting:
            client.close()


@pytest.mark.parametrize(
    "deadlines", [Deadlines(connect=5), Deadlines(connect=None, total=5)], ids=["U02", "U02-total"]
)
@leakless
async def test_a_connection_that_hangs(deaf_port: int, deadlines: Deadlines) -> None:
    async with aclosing(Transport(deadlines=deadlines)) as transport:
        task = start_request(transport, f"http://127.0.0.1:{deaf_port}/")
        await advance(4.5)
        assert not task.done()
        await advance(1)
        await times_out(task, "connect", "no connection within the deadline", sent=False)


@on_each_loop
async def test_a_connection_that_hangs_and_is_cancelled_c01(deaf_port: int) -> None:
    async with aclosing(Transport()) as transport:
        before = open_sockets()
        task = start_request(transport, f"http://127.0.0.1:{deaf_port}/")
        await becomes(before + 1, open_sockets)
        task.cancel()
        await becomes(before, open_sockets)
        assert task.cancelled()


@leakless
async def test_a_transport_closed_on_the_way_to_its_upstream_sends_nothing() -> None:
    async with serving(respond_with(response(b"late"))) as wire:
        before = open_sockets()
        transport = Transport()
        task = start_request(transport, wire.url)
        await turns(1)
        await transport.aclose()
        await becomes(wanted=True, look=task.done)
        error = task.exception()
        assert isinstance(error, TransportError)
        assert (error.kind, error.stage, error.sent) == ("closed", "connect", False)
        await becomes(before, open_sockets)
        assert sum(wire.requested()) == 0


@leakless
async def test_a_name_lookup_that_hangs_is_u03() -> None:
    async def hang(_host: str) -> Sequence[str]:
        await asyncio.get_running_loop().create_future()
        return ()

    async with aclosing(Transport(resolve=hang)) as transport:
        task = start_request(transport, "http://slow.test/")
        await advance(6)
        await times_out(task, "connect", "no connection within the deadline", sent=False)


@leakless
async def test_a_tls_handshake_that_hangs_is_u02() -> None:
    async with serving(respond_with()) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        task = start_request(transport, wire.url.replace("http:", "https:"))
        await becomes([0], wire.requested)
        await advance(6)
        await times_out(task, "connect", "no connection within the deadline", sent=False)
        await becomes(before, open_sockets)


@leakless
async def test_a_head_that_never_comes_is_u07() -> None:
    async with serving(respond_with(b"")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        task = start_request(transport, wire.url)
        await becomes([1], wire.requested)
        await advance(599)
        assert not task.done()
        await advance(2)
        await times_out(task, "head", FIRST_BYTE, sent=True)
        await becomes(before, open_sockets)


@leakless
async def test_a_head_that_trickles_is_u08() -> None:
    async with serving(respond_with(b"HTTP/1.1 200 OK\r\n")) as wire, aclosing(Transport()) as transport:
        task = start_request(transport, wire.url)
        await becomes([1], wire.requested)
        for _ in range(599):
            wire.peers[0].send(b"x")
            await advance(1)
        assert not task.done()
        await advance(2)
        await times_out(task, "head", FIRST_BYTE, sent=True)


@leakless
async def test_a_long_think_is_no_timeout_u09_and_a_long_pause_is_u10() -> None:
    async with serving(respond_with(b"HTTP/1.1 100 Go\r\n\r\n")) as wire, aclosing(Transport()) as transport:
        task = start_request(transport, wire.url)
        await becomes([1], wire.requested)
        await advance(590)
        wire.peers[0].send(CHUNKED)
        async with await task as reply:
            for piece in (b"a", b"b"):
                await advance(290)
                wire.peers[0].send(b"1\r\n" + piece + b"\r\n")
                assert await anext(reply) == piece
            reading = asyncio.create_task(reply.read())
            await advance(299)
            assert not reading.done()
            await advance(2)
            await times_out(reading, "body", IDLE, sent=True)


@leakless
async def test_silence_that_begins_in_the_head_counts_from_the_head() -> None:
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport()) as transport,
        await start_request(transport, wire.url) as reply,
    ):
        reading = asyncio.create_task(reply.read())
        await advance(301)
        await times_out(reading, "body", IDLE, sent=True)


@leakless
async def test_a_stream_without_end_is_u35() -> None:
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport()) as transport,
        await start_request(transport, wire.url) as reply,
    ):
        pieces: list[bytes] = []
        reading = asyncio.create_task(collect(reply, pieces))
        for count in range(1, 18):
            await advance(200)
            wire.peers[0].send(b"1\r\na\r\n")
            await becomes([b"a"] * count, lambda: pieces)
        await advance(199)
        assert not reading.done()
        await advance(2)
        await times_out(reading, "body", TOTAL, sent=True)


@leakless
async def test_the_total_covers_the_head_too() -> None:
    async with serving(respond_with(b"")) as wire, aclosing(Transport(deadlines=Deadlines(total=60))) as transport:
        task = start_request(transport, wire.url)
        await becomes([1], wire.requested)
        await advance(61)
        await times_out(task, "head", TOTAL, sent=True)


@leakless
async def test_a_slow_reader_is_not_a_silent_upstream_c06() -> None:
    big = b"x" * 3_000_000
    async with (
        serving(respond_with(response(big))) as wire,
        aclosing(Transport()) as transport,
        await start_request(transport, wire.url) as reply,
    ):
        await becomes(wanted=True, look=lambda: reply._exchange.paused)
        await advance(900)
        assert await reply.read() == big


@leakless
async def test_silence_counts_from_when_the_reader_is_back_c06() -> None:
    async with (
        serving(respond_with(CHUNKED + b"%x\r\n" % HIGH_WATER + b"x" * HIGH_WATER + b"\r\n1\r\n")) as wire,
        aclosing(Transport()) as transport,
        await start_request(transport, wire.url) as reply,
    ):
        wire.peers[0].send(b"a\r\n")
        await becomes(wanted=True, look=lambda: reply._exchange.paused)
        await advance(950)
        reading = asyncio.create_task(reply.read())
        await turns()
        await advance(299)
        assert not reading.done()
        await advance(2)
        await times_out(reading, "body", IDLE, sent=True)


@leakless
async def test_a_reader_that_never_comes_meets_the_total() -> None:
    async with serving(respond_with(response(b"x" * 3_000_000))) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        async with await start_request(transport, wire.url) as reply:
            await becomes(wanted=True, look=lambda: reply._exchange.paused)
            await advance(3_601)
            await becomes(before, open_sockets)
            pieces: list[bytes] = []
            with pytest.raises(TransportError, match=TOTAL):
                await collect(reply, pieces)
            assert 0 < sum(map(len, pieces)) < 1_000_000


@leakless
async def test_no_deadline_is_none() -> None:
    never = Deadlines(connect=None, first_byte=None, idle=None, total=None)
    async with serving(respond_with(b"")) as wire, aclosing(Transport(deadlines=never)) as transport:
        task = start_request(transport, wire.url)
        await becomes([1], wire.requested)
        await advance(1e6)
        wire.peers[0].send(CHUNKED)
        async with await task as reply:
            await advance(1e6)
            wire.peers[0].send(b"1\r\na\r\n0\r\n\r\n")
            assert await reply.read() == b"a"


def timers() -> int:
    """How many are set."""
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return sum(not timer.cancelled() for timer in scheduled)


@leakless
async def test_an_answer_in_time_leaves_no_timer_of_its_own() -> None:
    async with serving(respond_with(response(b"a"), response(b"b"))) as wire:
        async with aclosing(Transport()) as transport:
            for body in (b"a", b"b"):
                async with await start_request(transport, wire.url) as reply:
                    assert await reply.read() == body
            assert timers() == 2  # of the pool: the one that ages idle connections, the one that looks for the late
        assert timers() == 0


@pytest.mark.parametrize("total", [0, 0.0005, 0.001, 0.002], ids=str)
@on_each_loop
async def test_a_connection_given_up_on_the_way_is_closed(total: float) -> None:
    """Uvloop tells a connection that it is made even after it was given up, and then never that it is lost."""
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport(deadlines=Deadlines(total=total))) as transport,
    ):
        before = open_sockets()
        for _ in range(5):
            with pytest.raises(TransportError) as caught:
                async with await start_request(transport, wire.url) as reply:
                    await reply.read()
            assert caught.value.kind == "timeout"
        await becomes(before, open_sockets)


@on_each_loop
async def test_deadlines_ring_on_either_loop() -> None:
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport(deadlines=Deadlines(idle=0.003))) as transport,
    ):
        with pytest.raises(TransportError, match=IDLE):
            async with await start_request(transport, wire.url) as reply:
                await reply.read()
    async with (
        serving(respond_with(b"")) as wire,
        aclosing(Transport(deadlines=Deadlines(first_byte=0.003))) as transport,
    ):
        with pytest.raises(TransportError, match=FIRST_BYTE):
            await start_request(transport, wire.url)
