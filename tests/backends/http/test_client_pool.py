"""The connections that the transport keeps: reused, aged, found stale, and never lost, whatever is cancelled."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.backends.http.responses import CHUNKED
from tests.backends.raw_server import (
    Peer,
    advance,
    becomes,
    leakless,
    on_each_loop,
    open_sockets,
    respond_with,
    response,
    serving,
    turns,
)
from xenoglot.backends.http.client import Deadlines, Transport, TransportError, TransportLimits

if TYPE_CHECKING:
    from collections.abc import Callable


async def endless(peer: Peer) -> None:
    """Answer every request."""
    while True:
        await peer.request()
        peer.send(response(b"ok"))


async def fetch(transport: Transport, url: str) -> bytes:
    async with await transport.send("POST", url, [], b"{}") as reply:
        return await reply.read()


@leakless
async def test_a_whole_answer_gives_its_connection_back() -> None:
    async with serving(endless) as wire, aclosing(Transport()) as transport:
        for _ in range(3):
            assert await fetch(transport, wire.url) == b"ok"
        assert wire.requested() == [3]


@leakless
async def test_an_answer_that_came_whole_gives_its_connection_back_unread() -> None:
    async with serving(endless) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [])
        await reply.aclose()
        await reply.aclose()
        with pytest.raises(TransportError, match="closed by its reader"):
            await anext(reply)
        assert await fetch(transport, wire.url) == b"ok"
        assert wire.requested() == [2]


@leakless
async def test_answers_at_once_have_connections_of_their_own_and_the_newest_is_taken_first() -> None:
    async with serving(endless) as wire, aclosing(Transport()) as transport:
        await asyncio.gather(*(fetch(transport, wire.url) for _ in range(3)))
        assert wire.requested() == [1, 1, 1]
        for _ in range(3):
            await fetch(transport, wire.url)
        assert sorted(wire.requested()) == [1, 1, 4]


@leakless
async def test_origins_do_not_share() -> None:
    async with serving(endless) as one, serving(endless) as other, aclosing(Transport()) as transport:
        for url in (one.url, other.url, one.url):
            await fetch(transport, url)
        assert (one.requested(), other.requested()) == ([2], [1])


@leakless
async def test_no_more_than_so_many_are_kept_and_the_oldest_goes() -> None:
    async with serving(endless) as wire, aclosing(Transport(limits=TransportLimits(idle_connections=2))) as transport:
        before = open_sockets()
        await asyncio.gather(*(fetch(transport, wire.url) for _ in range(5)))
        await becomes(before + 4, open_sockets)  # two connections, two ends each


@leakless
async def test_of_too_many_the_newest_is_kept() -> None:
    script = respond_with(CHUNKED, response(b"again"))
    async with serving(script) as wire, aclosing(Transport(limits=TransportLimits(idle_connections=1))) as transport:
        replies = [await transport.send("POST", wire.url, []) for _ in range(2)]
        for peer, reply in zip(wire.peers, replies, strict=True):
            peer.send(b"0\r\n\r\n")
            assert await reply.read() == b""
        assert await fetch(transport, wire.url) == b"again"
        assert wire.requested() == [1, 2]


@on_each_loop
async def test_an_idle_connection_that_the_loop_has_given_up_is_not_taken() -> None:
    """The loop met an error on it, and `connection_lost` is still to be called."""
    async with serving(endless) as wire, aclosing(Transport()) as transport:
        await fetch(transport, wire.url)
        (connection,) = transport._pool.connections  # type: ignore[union-attr]
        connection.transport.abort()
        assert await fetch(transport, wire.url) == b"ok"
        assert wire.requested() == [1, 1]


@leakless
async def test_an_idle_connection_ages_out() -> None:
    async with serving(endless) as wire, aclosing(Transport(limits=TransportLimits(idle_seconds=30))) as transport:
        before = open_sockets()
        await fetch(transport, wire.url)
        await advance(20)
        await fetch(transport, wire.url)
        assert wire.requested() == [2]
        await advance(20)
        assert open_sockets() == before + 2
        await advance(11)
        await becomes(before, open_sockets)
        await fetch(transport, wire.url)
        assert wire.requested() == [2, 1]
        await advance(31)
        await becomes(before, open_sockets)


@leakless
async def test_an_idle_connection_that_the_upstream_closes_is_gone() -> None:
    async with serving(respond_with(response(b"ok"))) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        await fetch(transport, wire.url)
        wire.peers[0].close()
        await becomes(before, open_sockets)
        await fetch(transport, wire.url)
        assert wire.requested() == [1, 1]


@leakless
async def test_an_idle_connection_on_which_something_arrives_is_dropped() -> None:
    async with serving(respond_with(response(b"ok"))) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        await fetch(transport, wire.url)
        wire.peers[0].send(response(b"evil"))
        await becomes(before, open_sockets)
        assert await fetch(transport, wire.url) == b"ok"
        assert wire.requested() == [1, 1]


async def gives_up_second(peer: Peer) -> None:
    """Answer once, and close as the second request comes."""
    await peer.request()
    peer.send(response(b"ok"))
    await peer.request()
    peer.close()


async def resets_second(peer: Peer) -> None:
    await peer.request()
    peer.send(response(b"ok"))
    await peer.request()
    peer.reset()


@pytest.mark.parametrize(
    "script", [gives_up_second, resets_second], ids=["pitfall-126-U46-closed", "pitfall-126-U46-reset"]
)
@on_each_loop
async def test_a_kept_connection_that_closes_as_we_write_is_replaced(
    script: Callable[[Peer], asyncio.Future[None]],
) -> None:
    async with serving(script) as wire, aclosing(Transport()) as transport:
        assert [await fetch(transport, wire.url) for _ in range(3)] == [b"ok"] * 3
        assert wire.requested() == [2, 2, 1]


@leakless
async def test_the_replacement_is_fresh_and_the_only_one_u46() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if len(wire.peers) <= 2:
            peer.send(response(b"ok"))
            await peer.request()
        peer.close()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        await asyncio.gather(fetch(transport, wire.url), fetch(transport, wire.url))
        with pytest.raises(TransportError) as caught:
            await fetch(transport, wire.url)
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("closed", "head", True)
        assert sorted(wire.requested()) == [1, 1, 2]


@leakless
async def test_what_fails_after_a_stale_connection_may_have_been_sent_u46() -> None:
    async with serving(gives_up_second) as wire, aclosing(Transport()) as transport:
        await fetch(transport, wire.url)
        wire.stop_listening()
        with pytest.raises(TransportError) as caught:
            await fetch(transport, wire.url)
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("connect", "connect", True)


@leakless
async def test_a_transport_that_closes_does_not_ask_again() -> None:
    async with serving(respond_with(response(b"ok"), b"")) as wire:
        transport = Transport()
        await fetch(transport, wire.url)
        asking = asyncio.create_task(fetch(transport, wire.url))
        await becomes([2], wire.requested)
        await transport.aclose()
        with pytest.raises(TransportError, match="the transport was closed") as caught:
            await asking
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("closed", "head", True)
        assert wire.requested() == [2]


@leakless
async def test_a_fresh_connection_that_closes_is_not_retried_u11() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.reset()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        with pytest.raises(TransportError) as caught:
            await fetch(transport, wire.url)
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("closed", "head", True)
        assert wire.requested() == [1]


@leakless
async def test_a_request_that_broke_its_upstream_is_not_sent_again() -> None:
    go = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(response(b"ok"))
        await peer.request()
        await go.wait()
        peer.close()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        await fetch(transport, wire.url)
        asking = asyncio.create_task(fetch(transport, wire.url))
        await advance(10)
        go.set()
        with pytest.raises(TransportError, match="closed the connection"):
            await asking
        assert wire.requested() == [2]


@leakless
async def test_a_kept_connection_that_is_slow_is_not_stale_u07() -> None:
    deadlines = Deadlines(first_byte=1)
    async with (
        serving(respond_with(response(b"ok"), b"")) as wire,
        aclosing(Transport(deadlines=deadlines)) as transport,
    ):
        await fetch(transport, wire.url)
        asking = asyncio.create_task(fetch(transport, wire.url))
        await becomes([2], wire.requested)
        await advance(1.1)
        with pytest.raises(TransportError) as caught:
            await asking
        assert (caught.value.kind, caught.value.stage) == ("timeout", "head")
        assert wire.requested() == [2]


@leakless
async def test_an_answer_begun_is_not_asked_again() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(response(b"ok"))
        await peer.request()
        peer.send(b"HTTP/1.1 100 Go\r\n\r\n")
        peer.close()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        await fetch(transport, wire.url)
        with pytest.raises(TransportError) as caught:
            await fetch(transport, wire.url)
        assert (caught.value.kind, caught.value.stage) == ("closed", "head")
        assert wire.requested() == [2]


@on_each_loop
async def test_r61_a_thousand_cancels_lose_no_connection() -> None:
    """Cancelled before the connection, on the way to it, in the head, in the body, after it; once or twice."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            for piece in (b"HTTP/1.1 200 OK\r\n", CHUNKED.partition(b"\r\n")[2], b"1\r\na\r\n", b"0\r\n", b"\r\n"):
                peer.send(piece)
                await asyncio.sleep(0)

    chance = random.Random(61)  # noqa: S311 - no secret
    async with serving(script) as wire, aclosing(Transport(limits=TransportLimits(idle_connections=8))) as transport:
        before = open_sockets()
        outcomes: dict[str, int] = {}
        for _ in range(100):
            asking = [asyncio.create_task(fetch(transport, wire.url)) for _ in range(10)]
            for task in asking:
                await turns(chance.randrange(3))
                for _ in range(chance.randrange(3)):
                    task.cancel()
                    await turns(chance.randrange(2))
            for outcome in await asyncio.gather(*asking, return_exceptions=True):
                name = type(outcome).__name__
                outcomes[name] = outcomes.get(name, 0) + 1
        assert set(outcomes) == {"CancelledError", "bytes"}
        assert min(outcomes.values()) > 100
        assert transport._pool is not None
        idle = sum(map(len, transport._pool._idle.values()))
        await becomes(before + 2 * idle, open_sockets)
        assert len(transport._pool.connections) == idle
        assert await fetch(transport, wire.url) == b"a"
