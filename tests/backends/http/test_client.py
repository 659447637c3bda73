"""The transport against a real server on the loopback interface: what it sends, and what it makes of answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.http.responses import BROKEN, CHUNKED, WHOLE, Response, Seen
from tests.backends.raw_server import Peer, becomes, leakless, on_each_loop, respond_with, response, serving, turns
from xenoglot.backends.http.client import Transport, TransportError, UpstreamResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from xenoglot.backends.http.connection import ConnectionPool, UpstreamConnection
    from xenoglot.backends.http.http1 import Origin


async def see(transport: Transport, url: str) -> Seen:
    """Ask, read to the end, and say what was seen."""
    try:
        reply = await transport.send("POST", url, [], b"{}")
    except TransportError as error:
        return Seen(0, (), b"", f"{error.kind}/{error.stage}", "closed")
    body = b""
    end = "whole"
    try:
        async for piece in reply:
            assert piece
            body += piece
    except TransportError as error:
        end = f"{error.kind}/{error.stage}"
    await reply.aclose()
    await turns()
    return Seen(reply.status, reply.headers, body, end, "kept" if connections(transport) else "closed")


def connections(transport: Transport) -> int:
    """How many are open."""
    assert transport._pool is not None
    return len(transport._pool.connections)


@on_each_loop
async def test_requests_and_answers() -> None:
    async with serving(respond_with(response(b"one", "x-a: 1"), CHUNKED + b"3\r\ntwo\r\n0\r\n\r\n")) as wire:
        async with aclosing(Transport()) as transport:
            async with await transport.send("POST", wire.url + "/v1//x?a=%2F&b", [("X-Key", "k")], b"{}") as reply:
                assert (reply.status, reply.headers) == (200, (("x-a", "1"), ("content-length", "3")))
                assert (reply.header("x-a"), reply.header("x-b")) == ("1", None)
                assert await reply.read() == b"one"
            async with await transport.send("GET", wire.url, []) as reply:
                assert [piece async for piece in reply] == [b"two"]
        host = wire.url.removeprefix("http://").encode()
        assert wire.requests == [
            [
                b"POST /v1//x?a=%2F&b HTTP/1.1\r\nhost: " + host + b"\r\nX-Key: k\r\n"
                b"accept-encoding: identity\r\ncontent-length: 2\r\n\r\n{}",
                b"GET / HTTP/1.1\r\nhost: " + host + b"\r\naccept-encoding: identity\r\n\r\n",
            ]
        ]


@pytest.mark.parametrize("answer", WHOLE + BROKEN)
@leakless
async def test_what_is_seen_of_a_response(answer: Response) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(answer.wire)
        if answer.then == "closes":
            peer.close()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        assert await see(transport, wire.url) == answer.seen
        assert wire.requested() == [1]


@on_each_loop
async def test_a_request_body_larger_than_every_buffer() -> None:
    body = bytes(range(256)) * 40_000
    async with serving(respond_with(response(b"ok"))) as wire, aclosing(Transport()) as transport:
        async with await transport.send("POST", wire.url, [], body) as reply:
            assert await reply.read() == b"ok"
        assert wire.requests[0][0].partition(b"\r\n\r\n")[2] == body


@leakless
async def test_an_answer_before_the_request_is_written_whole_ends_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.head()
        peer.send(response(b"too much"))

    async with serving(script) as wire, aclosing(Transport()) as transport:
        async with await transport.send("POST", wire.url, [], b"x" * 30_000_000) as reply:
            assert await reply.read() == b"too much"
        await becomes(0, lambda: connections(transport))


@leakless
async def test_one_piece_per_read() -> None:
    read = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(CHUNKED + b"1\r\na\r\n1\r\nb\r\n")
        await read.wait()
        peer.send(b"1\r\nc\r\n1\r\nd\r\n0\r\n\r\n")

    async with serving(script) as wire, aclosing(Transport()) as transport:
        async with await transport.send("GET", wire.url, []) as reply:
            pieces = [await anext(reply)]
            read.set()
            pieces += [piece async for piece in reply]
        assert pieces == [b"ab", b"cd"]
        assert [piece async for piece in reply] == []


@on_each_loop
async def test_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    async with serving(respond_with(response(b"one"), response(b"two")), path=path), aclosing(Transport()) as transport:
        for body in (b"one", b"two"):
            async with await transport.send("GET", "http://local/v1", [], socket_path=path) as reply:
                assert await reply.read() == body
        assert connections(transport) == 1
        with pytest.raises(TransportError, match="no connection to the upstream: No such file or directory"):
            await transport.send("GET", "http://local/v1", [], socket_path=path + "x")


@on_each_loop
async def test_an_ipv6_literal() -> None:
    async with serving(respond_with(response(b"six"))) as wire, aclosing(Transport()) as transport:
        url = wire.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")  # a machine without ::1 knows this one too
        async with await transport.send("GET", url, []) as reply:
            assert await reply.read() == b"six"
        host = url.removeprefix("http://").encode()
        assert wire.requests == [[b"GET / HTTP/1.1\r\nhost: " + host + b"\r\naccept-encoding: identity\r\n\r\n"]]


@on_each_loop
async def test_a_refused_connection_is_u01() -> None:
    async with serving(respond_with()) as wire:
        url = wire.url
    async with aclosing(Transport()) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.send("GET", url + "/secret", [("x-key", "secret")])
        error = caught.value
        assert (error.kind, error.stage, error.sent) == ("connect", "connect", False)
        assert str(error) == "no connection to the upstream: Connection refused"
        assert error.__context__ is None


@on_each_loop
async def test_an_upstream_that_hangs_up_at_once_is_u11() -> None:
    async def script(peer: Peer) -> None:
        peer.reset()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        for _ in range(10):
            with pytest.raises(TransportError) as caught:
                await transport.send("POST", wire.url, [], b"x" * 100_000)
            assert caught.value.kind == "closed"


async def resets(peer: Peer) -> None:
    peer.reset()


async def unsolicited_bytes(peer: Peer) -> None:
    peer.send(response(b"evil"))


@pytest.mark.parametrize(
    "script", [pytest.param(resets, id="U11-reset"), pytest.param(unsolicited_bytes, id="unasked")]
)
@on_each_loop
async def test_a_connection_that_is_spoilt_before_it_is_used(
    script: Callable[[Peer], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(script) as wire, aclosing(Transport()) as transport:
        dial = transport._dial

        async def dial_slowly(pool: ConnectionPool, origin: Origin, until: float) -> UpstreamConnection:
            connection = await dial(pool, origin, until)
            await becomes(wanted=False, look=lambda: connection.usable)
            return connection

        monkeypatch.setattr(transport, "_dial", dial_slowly)
        with pytest.raises(TransportError) as caught:
            await transport.send("POST", wire.url, [], b"{}")
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("closed", "connect", False)
        await becomes(0, lambda: connections(transport))
        assert wire.requested() == [0]


@leakless
async def test_a_name_that_cannot_be_resolved_is_u03() -> None:
    async with aclosing(Transport()) as transport:
        with pytest.raises(TransportError) as caught:  # too long a name for the resolver to go and ask
            await transport.send("GET", "http://" + "secret." * 50 + "invalid/", [])
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("connect", "connect", False)
        assert str(caught.value) == "the upstream's host name cannot be resolved"


@leakless
async def test_what_cannot_be_written_connects_nowhere() -> None:
    async with serving(respond_with()) as wire, aclosing(Transport()) as transport:
        for name, value in (("x-a", "b\r\nx-evil: 1"), ("host", "evil")):
            with pytest.raises(TransportError) as caught:
                await transport.send("GET", wire.url, [(name, value)])
            assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("protocol", "request", False)
        assert wire.peers == []


@leakless
async def test_a_body_has_one_reader() -> None:
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport()) as transport,
        await transport.send("GET", wire.url, []) as reply,
    ):
        first = asyncio.create_task(anext(reply))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one reader"):
            await anext(reply)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


@leakless
async def test_a_closed_transport_fails_what_is_being_read_and_sends_no_more() -> None:
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire:
        transport = Transport()
        reply = await transport.send("GET", wire.url, [])
        await transport.aclose()
        assert connections(transport) == 0
        await transport.aclose()
        with pytest.raises(TransportError, match="the transport was closed"):
            await reply.read()
        with pytest.raises(TransportError, match="the transport was closed") as caught:
            await transport.send("GET", wire.url, [])
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("closed", "request", False)
        await reply.aclose()


def test_a_transport_belongs_to_one_loop() -> None:
    transport = Transport()

    async def fails(wanted: type[Exception]) -> None:
        with pytest.raises(wanted):
            await transport.send("GET", "http://127.0.0.1:1/", [])

    asyncio.run(fails(TransportError))
    asyncio.run(fails(RuntimeError))


@leakless
async def test_a_body_larger_than_the_limit_is_not_read() -> None:
    async with (
        serving(respond_with(response(b"x" * 1_000), CHUNKED + b"3e8\r\n" + b"x" * 1_000 + b"\r\n")) as wire,
        aclosing(Transport()) as transport,
    ):
        for _ in range(2):
            reply = await transport.send("GET", wire.url, [])
            with pytest.raises(TransportError, match="the body is larger than 999 bytes") as caught:
                await reply.read(limit=999)
            assert (caught.value.kind, caught.value.stage) == ("too_large", "body")
            with pytest.raises(TransportError, match="the body is larger than 999 bytes"):
                await anext(reply)
            await reply.aclose()


@settings(max_examples=60)
@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([
    b"HTTP/1.1 200 OK\r\n", CHUNKED, b"content-length: 3\r\n", b"content-encoding: gzip\r\n", b"\r\n", b"0\r\n\r\n",
    b"3\r\nabc\r\n", b"connection: close\r\n", b"content-encoding: deflate\r\n", b"\x1f\x8b\x08\x00",
])), max_size=9))  # fmt: skip
def test_arbitrary_bytes_give_a_reply_or_an_error(parts: list[bytes]) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        for part in parts:
            peer.send(part)
            await asyncio.sleep(0)
        peer.close()

    @leakless
    async def scene() -> None:
        async with serving(script) as wire, aclosing(Transport()) as transport:
            try:
                reply = await transport.send("POST", wire.url, [])
            except TransportError as error:
                assert error.kind in ("protocol", "closed", "too_large")  # noqa: PT017 - any of these, or a reply
                return
            assert isinstance(reply, UpstreamResponse)
            try:
                body = await reply.read()
            except TransportError as error:
                assert error.kind in ("protocol", "closed", "too_large")  # noqa: PT017 - any of these, or a body
            else:
                assert len(body) <= 1_000
            await reply.aclose()

    scene()
