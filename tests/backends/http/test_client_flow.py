"""Who goes away, and who is too slow: the upstream sees its connection close at once, and has to wait."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.backends.http.responses import CHUNKED
from tests.backends.raw_server import (
    Peer,
    becomes,
    leakless,
    on_each_loop,
    open_sockets,
    read,
    respond_with,
    response,
    serving,
    turns,
)
from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.backends.http.connection import READ_BYTES
from xenoglot.backends.http.exchange import HIGH_WATER, LOW_WATER

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeLoop = Callable[[], asyncio.AbstractEventLoop]


async def ends(task: asyncio.Task[object]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task


@on_each_loop
async def test_cancelled_before_the_head_c01() -> None:
    async with serving(respond_with(b"HTTP/1.1 200 OK\r\n")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        asking = asyncio.create_task(transport.send("POST", wire.url, [], b"{}"))
        await becomes([1], wire.requested)
        asking.cancel()
        await ends(asking)
        await becomes(before, open_sockets)


@pytest.mark.parametrize("read", [0, 1, 2], ids=["C02-first", "C02-middle", "C02-last"])
@on_each_loop
async def test_cancelled_within_the_body(read: int) -> None:
    async with serving(respond_with(CHUNKED)) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        reply = await transport.send("POST", wire.url, [], b"{}")
        for _ in range(read):
            wire.peers[0].send(b"1\r\na\r\n")
            assert await anext(reply) == b"a"
        reading = asyncio.create_task(anext(reply))
        await turns()
        reading.cancel()
        await ends(reading)
        await becomes(before, open_sockets)
        with pytest.raises(TransportError, match="given up by its reader"):
            await anext(reply)
        await reply.aclose()


@on_each_loop
async def test_cancelled_while_reading_whole_c03() -> None:
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()

        async def ask() -> bytes:
            async with await transport.send("POST", wire.url, [], b"{}") as reply:
                return await reply.read()

        asking = asyncio.create_task(ask())
        await becomes([1], wire.requested)
        await turns()
        asking.cancel()
        await ends(asking)
        await becomes(before, open_sockets)


@leakless
async def test_cancelled_as_the_head_arrives_c01() -> None:
    """The head has woken the task, and before it runs it is cancelled: nobody gets the reply to close it."""
    async with serving(respond_with(b"")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        asking = asyncio.create_task(transport.send("POST", wire.url, [], b"{}"))
        await becomes([1], wire.requested)
        (connection,) = transport._pool.connections  # type: ignore[union-attr]
        read(connection, CHUNKED)
        asking.cancel()
        await ends(asking)
        await becomes(before, open_sockets)


@on_each_loop
async def test_closed_by_hand_while_another_task_reads() -> None:
    async with serving(respond_with(CHUNKED)) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        reply = await transport.send("POST", wire.url, [], b"{}")
        reading = asyncio.create_task(reply.read())
        await turns()
        await reply.aclose()
        await reply.aclose()
        with pytest.raises(TransportError, match="closed by its reader"):
            await reading
        await becomes(before, open_sockets)


@leakless
async def test_left_by_an_error_of_the_reader() -> None:
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()

        async def stumble() -> None:
            async with await transport.send("POST", wire.url, [], b"{}") as reply:
                async for _ in reply:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await stumble()
        await becomes(before, open_sockets)


@leakless
async def test_what_came_before_a_break_is_read_before_its_error_u13() -> None:
    read = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(CHUNKED + b"1\r\na\r\n")
        await read.wait()
        peer.send(b"1\r\nb\r\n")
        await turns()
        peer.reset()

    async with (
        serving(script) as wire,
        aclosing(Transport()) as transport,
        await transport.send("POST", wire.url, [], b"{}") as reply,
    ):
        assert await anext(reply) == b"a"
        read.set()
        await turns(50)
        assert await anext(reply) == b"b"
        for _ in range(2):
            with pytest.raises(TransportError) as caught:
                await anext(reply)
            assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("closed", "body", True)


@on_each_loop
async def test_an_upstream_that_is_faster_than_the_reader_has_to_wait_c06() -> None:
    size = 40_000_000

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 1_000_000):
            peer.send(b"x" * 1_000_000)
            await peer.drain()
            written.append(1_000_000)

    written: list[int] = []
    async with (
        serving(script) as wire,
        aclosing(Transport()) as transport,
        await transport.send("POST", wire.url, [], b"{}") as reply,
    ):
        exchange = reply._exchange
        await becomes(wanted=True, look=lambda: exchange.paused)
        await turns(500)
        assert sum(written) < size // 2  # the rest waits for the reader, past what the kernel buffers
        held = sum(map(len, exchange.pieces))
        assert HIGH_WATER < held <= HIGH_WATER + READ_BYTES  # one read may go beyond the mark
        while exchange.paused:
            await anext(reply)
        assert sum(map(len, exchange.pieces)) <= LOW_WATER
        rest = await reply.read()
        assert len(rest) < size
        assert sum(written) == size


@on_each_loop
async def test_the_upstream_goes_on_before_the_reader_has_nothing_left_c06() -> None:
    piece = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport()) as transport,
        await transport.send("POST", wire.url, [], b"{}") as reply,
    ):
        exchange = reply._exchange

        def held() -> int:
            return sum(map(len, exchange.pieces))

        while not exchange.paused:
            wire.peers[0].send(piece)
            await becomes(held() + 10_000, held)
        assert held() == (HIGH_WATER // 10_000 + 1) * 10_000
        while exchange.paused:
            await anext(reply)
        assert held() == LOW_WATER // 10_000 * 10_000


@on_each_loop
async def test_a_reader_that_stopped_leaves_a_connection_that_reads_again() -> None:
    """The whole body is there, more than the mark, and is thrown away unread: the next answer must not be stuck."""
    big = response(b"x" * (HIGH_WATER + 1))
    async with serving(respond_with(*[big] * 4)) as wire, aclosing(Transport()) as transport:
        for _ in range(3):
            async with await transport.send("POST", wire.url, [], b"{}") as reply:
                await becomes(wanted=True, look=lambda: reply._exchange.complete)
        async with await transport.send("POST", wire.url, [], b"{}") as reply:
            assert len(await reply.read()) == HIGH_WATER + 1
        assert wire.requested() == [4]
