"""An exchange without a task: started at once, told of, looked at and then read, pulled or pushed."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from tests.backends.http.responses import CHUNKED, OK
from tests.backends.raw_server import (
    Peer,
    advance,
    becomes,
    leakless,
    on_each_loop,
    respond_with,
    response,
    serving,
    turns,
)
from xenoglot.backends.http.client import Deadlines, Transport, TransportError, TransportLimits
from xenoglot.backends.http.exchange import HIGH_WATER, UpstreamExchange
from xenoglot.backends.http.http1 import HTTPRequest, prepare


class Ear:
    """Writes down what there is each time it is told: the status, the bytes unread, and whether more will come."""

    def __init__(self, exchange: UpstreamExchange) -> None:
        self.heard: list[tuple[int | None, int, str]] = []
        self._exchange = exchange
        exchange.set_listener(self)

    def data_available(self) -> None:
        exchange = self._exchange
        end = "whole" if exchange.complete else "open" if exchange.error is None else exchange.error.kind
        self.heard.append((exchange.head.status if exchange.head else None, exchange.unread, end))


def request_to(url: str) -> HTTPRequest:
    return prepare("POST", url, [("x-a", "b")]).request(b"{}")


async def warmed(transport: Transport, request: HTTPRequest) -> None:
    """Leave a connection to be kept."""
    async with await transport.send_prepared(request) as reply:
        assert await reply.read() == b"warm"


def idle_exchange(transport: Transport, request: HTTPRequest) -> UpstreamExchange:
    exchange = transport.start(request)
    assert exchange is not None
    return exchange


WARM = response(b"warm")


@on_each_loop
async def test_without_a_kept_connection_nothing_is_started() -> None:
    async with serving(respond_with(WARM)) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        assert transport.start(request) is None
        exchange = await transport.begin(request)
        ear = Ear(exchange)
        await becomes([(200, 4, "whole")], lambda: ear.heard)
        assert wire.requests == [[request.head + request.body]]
        assert transport.reply(exchange).complete_body == b"warm"


@on_each_loop
async def test_it_is_told_once_of_each_read() -> None:
    async with serving(respond_with(WARM, CHUNKED)) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        await warmed(transport, request)
        ear = Ear(exchange := idle_exchange(transport, request))
        assert ear.heard == []
        await becomes([(200, 0, "open")], lambda: ear.heard)
        wire.peers[0].send(b"1\r\na\r\n1\r\nb\r\n")
        await becomes([(200, 0, "open"), (200, 2, "open")], lambda: ear.heard)
        reply = transport.reply(exchange)
        assert (list(reply.unread), reply.is_idle, reply.complete_body) == ([b"ab"], False, None)
        wire.peers[0].send(b"1\r\nc\r\n0\r\n\r\n")
        await becomes([(200, 0, "open"), (200, 2, "open"), (200, 3, "whole")], lambda: ear.heard)
        assert (list(reply.unread), reply.is_idle, reply.complete_body) == ([b"ab", b"c"], True, b"abc")
        exchange.set_listener(None)
        assert await reply.read() == b"abc"
        assert wire.requested() == [2]


@on_each_loop
async def test_an_interim_response_is_no_news_u44() -> None:
    interim = b"HTTP/1.1 103 Hints\r\nlink: a\r\n\r\n"
    async with serving(respond_with(WARM, interim)) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        await warmed(transport, request)
        ear = Ear(idle_exchange(transport, request))
        await becomes([2], wire.requested)
        await turns()
        wire.peers[0].send(WARM)
        await becomes([(200, 4, "whole")], lambda: ear.heard)


@on_each_loop
async def test_what_was_told_can_be_pushed() -> None:
    async with serving(respond_with(WARM, CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        await warmed(transport, request)
        ear = Ear(exchange := idle_exchange(transport, request))
        await becomes(wanted=True, look=lambda: bool(exchange.unread))
        before = list(ear.heard)
        told: list[bytes | None] = []

        class Sink:
            def data_received(self, data: bytes) -> None:
                told.append(data)

            def closed(self, error: TransportError | None) -> None:
                assert error is None
                told.append(None)

        transport.reply(exchange).push(Sink())
        assert told == [b"a"]
        wire.peers[0].send(b"1\r\nb\r\n0\r\n\r\n")
        await becomes([b"a", b"b", None], lambda: told)
        assert ear.heard == before


@on_each_loop
async def test_a_body_that_nobody_reads_stands_still_c06() -> None:
    size = 4 * HIGH_WATER
    large = OK + b"content-length: %d\r\n\r\n" % size + bytes(size)
    async with serving(respond_with(WARM, large)) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        await warmed(transport, request)
        exchange = idle_exchange(transport, request)
        Ear(exchange)
        await becomes(wanted=True, look=lambda: exchange.head is not None)
        reply = transport.reply(exchange)
        await becomes(wanted=True, look=lambda: reply.is_idle)
        assert (exchange.complete, reply.complete_body) == (False, None)
        exchange.set_listener(None)
        assert await reply.read() == bytes(size)


@pytest.mark.parametrize(("limit", "whole"), [(4, b"warm"), (3, None)])
@on_each_loop
async def test_a_whole_body_is_within_its_limit(limit: int, whole: bytes | None) -> None:
    async with (
        serving(respond_with(WARM)) as wire,
        aclosing(Transport(limits=TransportLimits(body_bytes=limit))) as transport,
    ):
        exchange = await transport.begin(request_to(wire.url))
        await exchange.wait()
        async with transport.reply(exchange) as reply:
            await becomes(wanted=True, look=lambda: exchange.complete)
            assert reply.complete_body == whole


async def closed_exchange(transport: Transport, request: HTTPRequest) -> UpstreamExchange:
    """An exchange that found its connection closing."""
    exchange = idle_exchange(transport, request)
    ear = Ear(exchange)
    await becomes([(None, 0, "closed")], lambda: ear.heard)
    return exchange


async def close_on_second_request(peer: Peer) -> None:
    """Answer once; then close as the next request comes."""
    await peer.request()
    peer.send(WARM)
    await peer.request()
    peer.close()


@on_each_loop
async def test_a_kept_connection_that_was_closing_is_stale_u15() -> None:
    async with serving(close_on_second_request) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        await warmed(transport, request)
        exchange = await closed_exchange(transport, request)
        assert exchange.stale
        fresh = await transport.begin(request, exchange)
        assert fresh.total_at == exchange.total_at
        await fresh.wait()
        async with transport.reply(fresh) as reply:
            assert await reply.read() == b"warm"
        assert wire.requested() == [2, 1]


@on_each_loop
async def test_what_was_sent_once_is_said_to_be_sent() -> None:
    async with serving(close_on_second_request) as wire, aclosing(Transport()) as transport:
        request = request_to(wire.url)
        await warmed(transport, request)
        exchange = await closed_exchange(transport, request)
        wire.stop_listening()
        with pytest.raises(TransportError) as caught:
            await transport.begin(request, exchange)
        assert (caught.value.stage, caught.value.sent) == ("connect", True)


@on_each_loop
async def test_closed_meanwhile_it_says_what_had_happened() -> None:
    async with serving(close_on_second_request) as wire:
        transport = Transport()
        request = request_to(wire.url)
        await warmed(transport, request)
        exchange = await closed_exchange(transport, request)
        await transport.aclose()
        with pytest.raises(TransportError, match="before the end of its response"):
            await transport.begin(request, exchange)


@on_each_loop
async def test_a_new_connection_is_never_stale() -> None:
    async def resets(peer: Peer) -> None:
        await peer.request()
        peer.close()

    async with serving(resets) as wire, aclosing(Transport()) as transport:
        exchange = await transport.begin(request_to(wire.url))
        await exchange.wait()
        assert (exchange.stale, exchange.error and exchange.error.kind) == (False, "closed")
        with pytest.raises(TransportError, match="before the end of its response"):
            transport.reply(exchange)


@leakless
async def test_deadlines_are_kept_while_told_u07() -> None:
    async with (
        serving(respond_with(WARM)) as wire,
        aclosing(Transport(deadlines=Deadlines(first_byte=20, idle=30))) as transport,
    ):
        request = request_to(wire.url)
        await warmed(transport, request)
        ear = Ear(idle_exchange(transport, request))
        for _ in range(19):
            await advance(1)
        assert ear.heard == []
        await advance(1.5)
        assert ear.heard == [(None, 0, "timeout")]
