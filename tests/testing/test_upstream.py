"""The scripted server sends what it is told, to the byte and to the segment, and sees what is done to it."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import ManualClockLoop, advance, leakless
from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.testing import (
    Body,
    Close,
    Drip,
    End,
    Hang,
    Pause,
    RawClient,
    Receive,
    Repeat,
    RequestMatcher,
    Reset,
    Respond,
    ResponseHead,
    ScriptRule,
    Send,
    StopRead,
    Upstream,
    WaitEvent,
)
from xenoglot.testing.client import AsyncRawClient, request
from xenoglot.testing.script import pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.testing.client import RawReply
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Split, Step

ASKED = request("POST", "/v1/x?key=1", {"a": 1}, {"x-twice": "one"})
OK = Respond(body=b"ok")


async def exchange(*steps: Step, data: bytes = ASKED) -> RawReply:
    """Return what a server that plays `steps` answers."""
    async with Upstream(steps) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(data)
        return await client.reply()


@pytest.mark.parametrize(
    ("steps", "raw"),
    [
        pytest.param((OK,), b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", id="whole"),
        pytest.param(
            (Respond(status=299, headers=(("x", "y"), ("x", "z")), body=b"", length=5), Close()),
            b"HTTP/1.1 299 \r\nx: y\r\nx: z\r\ncontent-length: 5\r\n\r\n",
            id="a-length-that-is-a-lie",
        ),
        pytest.param(
            (ResponseHead(reason="Fine"), Body(b"abc", split=2), Body(b""), End()),
            b"HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            id="chunked",
        ),
        pytest.param(
            (ResponseHead(length=3), Body(b"abc"), End()),
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
            id="length",
        ),
        pytest.param(
            (ResponseHead(chunked=False), Body(b"abc"), End()), b"HTTP/1.1 200 OK\r\n\r\nabc", id="until-the-end"
        ),
        pytest.param(
            (Repeat((Send(b"HTTP/1.1 103 Early Hints\r\n\r\n"),), times=2), OK),
            b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2 + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            id="interim",
        ),
        pytest.param((Send(b"\0garbage"), Close()), b"\0garbage", id="no-HTTP"),
    ],
)
@leakless
async def test_what_is_sent(steps: Sequence[Step], raw: bytes) -> None:
    assert (await exchange(*steps)).raw == raw


@pytest.mark.parametrize(
    ("then", "ending"),
    [
        pytest.param((End(),), "whole", id="end"),
        pytest.param((Close(),), "fin", id="FIN"),
        pytest.param((Reset(),), "reset", id="RST"),
    ],
)
@leakless
async def test_how_it_ends(then: Sequence[Step], ending: str) -> None:
    reply = await exchange(ResponseHead(), Body(b"abc"), *then)
    assert (reply.status, reply.body, reply.ending) == (200, b"abc", ending)


@pytest.mark.parametrize(
    ("split", "cut"),
    [
        pytest.param(0, [b"abcdef"], id="whole"),
        pytest.param(4, [b"abcd", b"ef"], id="every-four"),
        pytest.param((5, 1, 1, 9), [b"a", b"bcde", b"f"], id="offsets"),
    ],
)
@leakless
async def test_each_piece_is_a_read_of_its_own(split: Split, cut: list[bytes]) -> None:
    assert pieces(b"abcdef", split) == cut
    reply = await exchange(Send(b"abcdef", split), Close())
    assert list(reply.pieces) == cut


@leakless
async def test_time_passes_on_the_clock_of_the_loop() -> None:
    steps = (ResponseHead(), Drip(b"abc", interval=60.0, framed=True), Pause(3600.0), End())
    async with Upstream(steps) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(ASKED)
        assert (await client.read_until(b"a\r\n")).endswith(b"1\r\na\r\n")
        await advance(60.0)
        assert await client.read() == b"1\r\nb\r\n"
        await advance(60.0)
        assert await client.read() == b"1\r\nc\r\n"
        await advance(60.0)
        await advance(3600.0)
        assert await client.read() == b"0\r\n\r\n"


@leakless
async def test_a_script_waits_for_a_word() -> None:
    async with Upstream((WaitEvent("go"), OK)) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(ASKED)
        await upstream.until(lambda: len(upstream.requests) == 1)
        assert upstream.connections[0].sent == b""
        upstream.release("go")
        assert (await client.reply()).body == b"ok"


@leakless
async def test_compressed_bodies() -> None:
    whole = await exchange(Respond(body=b"a" * 99, coding="gzip"))
    assert (whole.header("content-encoding"), gzip.decompress(whole.body)) == ("gzip", b"a" * 99)
    streamed = await exchange(ResponseHead(coding="deflate"), Body(b"ab"), Body(b"cd"), End())
    assert zlib.decompress(streamed.body) == b"abcd"


@leakless
async def test_what_is_received() -> None:
    async with Upstream((OK,)) as upstream, AsyncRawClient(upstream.url) as client:
        before = time.monotonic()
        await client.send(ASKED + request("GET", "/y"), split=7)
        assert [(await client.reply()).body, (await client.reply()).body] == [b"ok", b"ok"]
        first, second = upstream.requests
        assert upstream.connections[0].requests == [first, second]
    assert (first.raw, first.method, first.target, first.path, first.query) == (
        ASKED,
        "POST",
        "/v1/x?key=1",
        "/v1/x",
        "key=1",
    )
    assert (first.header("x-twice"), first.header("no"), first.body, first.json) == ("one", None, b'{"a":1}', {"a": 1})
    assert (second.method, second.path, second.body, second.json) == ("GET", "/y", b"", None)
    assert before <= first.at <= second.at


@leakless
async def test_a_chunked_request() -> None:
    chunked = (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nx-trailer: 1\r\n\r\n"
    )
    async with Upstream((OK,)) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(chunked * 2, split=1)
        await client.reply()
        await client.reply()
        assert [(each.raw, each.body) for each in upstream.requests] == [(chunked, b"abcde")] * 2


@leakless
async def test_when_a_close_is_seen() -> None:
    async with Upstream((ResponseHead(), Body(b"abc"), Hang())) as upstream:
        endings = []
        for leave in (AsyncRawClient.close, AsyncRawClient.reset):
            async with AsyncRawClient(upstream.url) as client:
                await client.send(ASKED)
                await client.read_until(b"abc")
                connection = upstream.connections[-1]
                assert (connection.closed, connection.ending) == (None, None)
                leave(client)
                await connection.lost.wait()
                assert connection.closed is not None
                assert connection.opened <= connection.closed <= time.monotonic()
                endings.append(connection.ending)
    assert endings == ["fin", "reset"]


@leakless
async def test_a_close_is_seen_while_it_sends_without_end() -> None:
    async with Upstream((ResponseHead(), Repeat((Body(b"x" * 10_000),)))) as upstream:
        async with AsyncRawClient(upstream.url, window=4096) as client:
            await client.send(ASKED)
            await client.read_until(b"xxx")
        await upstream.connections[0].lost.wait()
        assert upstream.connections[0].ending in {"fin", "reset"}
        assert len(upstream.connections[0].sent) == min(upstream.connections[0].sent_bytes, 1 << 20)


@leakless
async def test_half_closed_clients_are_served_where_the_script_says_so() -> None:
    for half_close, raw in ((True, b"ok"), (False, b"")):
        server = Upstream((WaitEvent("go"), OK), half_close=half_close)
        async with server as upstream, AsyncRawClient(upstream.url) as client:
            await client.send(ASKED)
            client.half_close()
            await upstream.until(lambda up=upstream: bool(up.connections) and up.connections[0].ending == "fin")  # type: ignore[misc]
            upstream.release("go")
            assert (await client.reply()).body == raw


RULES = (
    ScriptRule(steps=(Respond(status=503),), when=RequestMatcher(path="/v1/*"), times=2),
    ScriptRule(steps=(Respond(status=201),), when=RequestMatcher(method="GET")),
    ScriptRule(steps=(Respond(status=202),), when=RequestMatcher(contains=b"needle")),
    ScriptRule(steps=(Respond(status=203),), when=RequestMatcher(dialect="messages", stream=True, path="/v1/messages")),
    ScriptRule(steps=lambda received: (Respond(body=received.body),), when=RequestMatcher(path="/echo")),
)


@leakless
async def test_the_first_rule_that_means_a_request_counts() -> None:
    ask = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    async with Upstream(*RULES) as upstream, AsyncRawClient(upstream.url) as client:
        statuses = [
            (await client.request("POST", "/v1/messages", ask | {"stream": True})).status,
            (await client.request("GET", "/v1/models")).status,
            (await client.request("GET", "/v1/models")).status,
            (await client.request("POST", "/v1/messages", ask | {"stream": True})).status,
            (await client.request("POST", "/v1/messages", ask)).status,
            (await client.request("POST", "/v1/messages", {"needle": 1, "stream": True})).status,
        ]
        assert statuses == [503, 503, 201, 203, 501, 202]
        assert [each.rule for each in upstream.requests] == [0, 0, 1, 3, None, 2]
        assert (await client.request("POST", "/echo", b"hello")).body == b"hello"


@leakless
async def test_a_script_can_be_changed_between_two_requests() -> None:
    async with Upstream((OK,)) as upstream, AsyncRawClient(upstream.url) as client:
        assert (await client.request("GET", "/")).status == 200
        upstream.script((Respond(status=404),))
        assert (await client.request("GET", "/")).status == 404
        upstream.forget()
        assert (upstream.requests, len(upstream.connections)) == ([], 1)


@leakless
async def test_a_request_can_be_answered_before_its_body_is_there() -> None:
    rule = ScriptRule(steps=(Respond(status=413), Hang()), reads="head")
    async with Upstream(rule) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(ASKED[:-3])
        assert (await client.reply()).status == 413
        assert upstream.requests[0].body == ASKED[-7:-3]


@leakless
async def test_a_deaf_server_lets_writes_pile_up() -> None:
    async with Upstream(greeting=(StopRead(), WaitEvent("never"))) as upstream, AsyncRawClient(upstream.url) as client:
        sending = asyncio.create_task(client.send(b"x" * 100_000_000))
        await upstream.until(lambda: bool(upstream.connections))
        await advance(1.0)
        assert not sending.done()
        sending.cancel()
        await asyncio.wait([sending])


@pytest.mark.parametrize(
    ("door", "kind"), [pytest.param("refuse", "connect", id="refuse"), pytest.param("stall", "timeout", id="stall")]
)
@leakless
async def test_doors_that_stay_shut(door: str, kind: str) -> None:
    transport = Transport()
    async with Upstream((OK,), door=door) as upstream:  # type: ignore[arg-type]  # one of the words
        sending = asyncio.create_task(transport.send("GET", upstream.url, []))
        if kind == "timeout":
            await advance(transport.deadlines.connect or 0.0)
        with pytest.raises(TransportError) as error:
            await sending
    await transport.aclose()
    assert (error.value.kind, upstream.connections) == (kind, [])


@pytest.mark.parametrize("ending", [pytest.param(Reset(), id="RST"), pytest.param(Close(), id="FIN")])
@leakless
async def test_a_handshake_that_is_broken_off(ending: Step) -> None:
    transport = Transport()
    async with Upstream(greeting=(Receive(), ending), scheme="https") as upstream:
        with pytest.raises(TransportError) as error:
            await transport.send("GET", upstream.url, [])
    await transport.aclose()
    assert error.value.kind == "tls"


@leakless
async def test_a_script_that_fails_fails_the_test() -> None:
    def fail(_: Received) -> Sequence[Step]:
        raise ZeroDivisionError

    async def play() -> None:
        async with Upstream(ScriptRule(steps=fail)) as upstream, AsyncRawClient(upstream.url) as client:
            await client.request("GET", "/")

    with pytest.raises(ZeroDivisionError):
        await play()


def test_a_server_in_a_thread() -> None:
    said: list[str] = []
    with Upstream((WaitEvent("go"), OK), say=said.append) as upstream, RawClient(upstream.url) as client:
        client.send(ASKED)
        upstream.wait(lambda: len(upstream.requests) == 1)
        upstream.release("go")
        assert client.reply().body == b"ok"
        client.close()
        upstream.wait(upstream.connections[0].lost.is_set)
    assert said == [
        "connection 1: opened",
        "connection 1: POST /v1/x?key=1 (7 bytes)",
        "connection 1: answered by rule 0",
        "connection 1: the client closed",
        "connection 1: socket closed",
    ]


def test_a_port_that_is_taken_is_told_at_once() -> None:
    with Upstream((OK,)) as upstream, pytest.raises(OSError, match="in use"), Upstream((OK,), port=upstream.port):
        pass


def test_the_loops_of_tests_and_product_fit() -> None:
    with asyncio.Runner(loop_factory=ManualClockLoop) as runner:
        assert runner.run(exchange(OK)).body == b"ok"
