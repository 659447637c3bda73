"""The raw client sends exact bytes, reads as slowly as it is told, and sees how a response ends."""

from __future__ import annotations

import pytest

from tests.backends.raw_server import leakless
from xenoglot.testing import Close, Respond, Send, Upstream
from xenoglot.testing.client import AsyncRawClient, RawClient, ResponseReader, request
from xenoglot.testing.raw_http import MessageReader

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: b\r\n\r\nabc"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
ENDLESS = b"HTTP/1.0 200 OK\r\n\r\nabc"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n"


@pytest.mark.parametrize("raw", [WHOLE, CHUNKED, INTERIM + WHOLE], ids=["length", "chunked", "interim"])
@pytest.mark.parametrize("every", [1, 2, 1000])
def test_a_response_is_whole_at_its_last_byte_however_it_is_cut(raw: bytes, every: int) -> None:
    reading = ResponseReader()
    for at in range(0, len(raw), every):
        assert not reading.complete
        reading.feed(raw[at : at + every])
    assert reading.complete
    reply = reading.reply()
    assert (reply.status, reply.body, reply.ending, reply.raw, reading.surplus) == (200, b"abc", "whole", raw, b"")


@pytest.mark.parametrize(
    ("raw", "body", "ending"),
    [
        pytest.param(WHOLE[:-1], b"ab", "fin", id="length"),
        pytest.param(CHUNKED[:-1], b"abc", "fin", id="chunked"),
        pytest.param(CHUNKED[:-13], b"ab", "fin", id="half-a-chunk"),
        pytest.param(ENDLESS, b"abc", "whole", id="until-the-end"),
        pytest.param(WHOLE[:20], b"", "fin", id="half-a-head"),
        pytest.param(b"", b"", "fin", id="nothing"),
        pytest.param(b"no HTTP\r\n\r\nabc", b"abc", "fin", id="no-status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"", "fin", id="no-chunk"),
    ],
)
def test_the_end_of_the_connection(raw: bytes, body: bytes, ending: str) -> None:
    reading = ResponseReader(raw)
    reading.feed(b"")
    assert (reading.reply().body, reading.reply().ending) == (body, ending)


def test_a_reset() -> None:
    reading = ResponseReader(CHUNKED[:-1])
    reading.fail()
    assert reading.reply().ending == "reset"


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body(status: int) -> None:
    reading = ResponseReader(b"HTTP/1.1 %d X\r\ncontent-length: 3\r\n\r\nHTTP" % status)
    assert (reading.complete, reading.surplus) == (True, b"HTTP")


def test_the_first_of_two_fields_counts() -> None:
    reader = MessageReader("response")
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc")
    assert (reader.body, reader.surplus) == (b"a", b"bc")


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        pytest.param(("GET", "/x"), b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n", id="no-body"),
        pytest.param(
            ("POST", "/x", {"a": [1]}, {"content-type": "text/plain"}),
            b'POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n{"a":[1]}',
            id="json",
        ),
        pytest.param(
            ("POST", "/x", b"\xff"), b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n\xff", id="bytes"
        ),
    ],
)
def test_a_plain_request(arguments: tuple[str, str], raw: bytes) -> None:
    assert request(*arguments) == raw


@leakless
async def test_a_slow_reader_leaves_the_rest_where_it_is() -> None:
    async with Upstream((Respond(body=b"x" * 50),)) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(request("GET", "/"))
        reply = await client.reply(count=16)
        assert ({len(piece) for piece in reply.pieces[:-1]}, reply.body) == ({16}, b"x" * 50)


@leakless
async def test_two_responses_in_one_read() -> None:
    async with Upstream((Send(WHOLE + CHUNKED), Close())) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(request("GET", "/"))
        begun = await client.read_until(b"abc")
        first = await client.reply(begun=begun)
        second = await client.reply()
        assert (first.raw, second.body, first.header("x-a"), first.header("x-b")) == (
            WHOLE,
            b"abc",
            "b",
            None,
        )


def test_the_same_where_it_blocks() -> None:
    with Upstream((Send(WHOLE + CHUNKED, split=9), Close())) as upstream, RawClient(upstream.url) as client:
        client.send(request("GET", "/"), split=3)
        first = client.reply(begun=client.read_until(b"X-A"))
        assert (first.body, client.reply().body, client.reply().ending) == (b"abc", b"abc", "fin")
        assert upstream.requests[0].method == "GET"


def test_json() -> None:
    reading = ResponseReader(b'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{"a":1}')
    assert reading.reply().json == {"a": 1}


@leakless
async def test_nobody_there() -> None:
    async with Upstream((Close(),), door="refuse") as upstream:
        with pytest.raises(ConnectionRefusedError):
            async with AsyncRawClient(upstream.url):
                pass


async def test_ask_is_request_and_warns() -> None:
    async with Upstream((Respond(body=b"x"),)) as upstream, AsyncRawClient(upstream.url) as client:
        with pytest.warns(DeprecationWarning, match=r"AsyncRawClient\.request"):
            assert (await client.ask("GET", "/")).body == b"x"
    with (
        Upstream((Respond(body=b"x"),)) as upstream,
        RawClient(upstream.url) as blocking,
        pytest.warns(DeprecationWarning, match=r"RawClient\.request"),
    ):
        assert blocking.ask("GET", "/").body == b"x"
