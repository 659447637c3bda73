"""Content codings: decoded as they stream, cut ones found, bombs stopped."""

from __future__ import annotations

import gzip
import zlib
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.http.responses import CHUNKED
from tests.backends.raw_server import becomes, collect, leakless, open_sockets, respond_with, response, serving
from xenoglot.backends.http.client import Transport, TransportError, TransportLimits
from xenoglot.backends.http.content_encoding import PIECE, Inflater, inflater

TEXT = b'data: {"choices": [{"delta": {"content": "caf\xc3\xa9"}}]}\n\n' * 40


LARGE = b"".join(b"%d" % number for number in range(600_000))


def bare(data: bytes) -> bytes:
    compress = zlib.compressobj(wbits=-15)
    return compress.compress(data) + compress.flush()


CODED = {
    "gzip": ("gzip", gzip.compress(TEXT)),
    "x-gzip": ("X-GZip", gzip.compress(TEXT)),
    "deflate": ("deflate", zlib.compress(TEXT)),
    "deflate-bare": ("deflate", bare(TEXT)),
    "deflate-bare-empty": ("deflate", bare(b"")),
    "deflate-bare-stored": ("deflate", b"\x08\x02\x00\xfd\xffhi\x01\x00\x00\xff\xff"),  # looks like half a zlib header
    "gzip-empty": ("gzip", gzip.compress(b"")),
    "identity": ("identity", TEXT),
    "listed-identity": ("identity, gzip", gzip.compress(TEXT)),
    "none": ("", TEXT),
    "no-body": ("gzip", b""),
}
PLAIN = {"deflate-bare-empty": b"", "deflate-bare-stored": b"hi", "gzip-empty": b"", "no-body": b""}


@pytest.mark.parametrize("name", [pytest.param(name, id=f"U27-{name}") for name in CODED])
@leakless
async def test_a_coded_body_is_decoded(name: str) -> None:
    coding, body = CODED[name]
    async with serving(respond_with(response(body, f"content-encoding: {coding}"))) as wire:
        async with aclosing(Transport()) as transport:
            asked = [("accept-encoding", "gzip, deflate")]
            async with await transport.send("POST", wire.url, asked, b"{}") as reply:
                assert await reply.read() == PLAIN.get(name, TEXT)
        assert wire.requests[0][0].count(b"accept-encoding: gzip, deflate\r\n") == 1


@leakless
async def test_a_coded_stream_is_not_held_back_u27() -> None:
    compress = zlib.compressobj(wbits=31)
    async with (
        serving(respond_with(CHUNKED[:-2] + b"content-encoding: gzip\r\n\r\n")) as wire,
        aclosing(Transport()) as transport,
        await transport.send("POST", wire.url, []) as reply,
    ):
        for event in (b"data: one\n\n", b"data: two\n\n"):
            sent = compress.compress(event) + compress.flush(zlib.Z_SYNC_FLUSH)
            wire.peers[0].send(b"%x\r\n%b\r\n" % (len(sent), sent))
            assert await anext(reply) == event
        last = compress.flush()
        wire.peers[0].send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last))
        assert [piece async for piece in reply] == []


BROKEN = {
    "U27-truncated-gzip": ("gzip", gzip.compress(TEXT)[:-1], "protocol/body: the compressed body ends early"),
    "U27-truncated-deflate": ("deflate", zlib.compress(TEXT)[:-1], "protocol/body: the compressed body ends early"),
    "U27-one-byte": ("deflate", b"\x78", "protocol/body: the compressed body ends early"),
    "U27-not-gzip": ("gzip", TEXT, "protocol/body: the compressed body is malformed"),
    "U27-wrong-header": ("gzip", zlib.compress(TEXT), "protocol/body: the compressed body is malformed"),
    "U27-wrong-sum": ("gzip", gzip.compress(TEXT)[:-8] + bytes(8), "protocol/body: the compressed body is malformed"),
    "U27-more-after-the-end": (
        "gzip", gzip.compress(TEXT) + b"x", "protocol/body: the compressed body is followed by other data",
    ),
    "U27-brotli": ("br", b"x", "protocol/head: the body has a content coding other than gzip or deflate"),
    "U27-zstd": ("zstd", b"x", "protocol/head: the body has a content coding other than gzip or deflate"),
    "U27-twice": ("gzip, gzip", b"x", "protocol/head: the body has a content coding other than gzip or deflate"),
    "U27-bomb": (
        "gzip", gzip.compress(bytes(10_000_000)), "too_large/body: the compressed body grows beyond its limit",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("coding", "body", "problem"), BROKEN.values(), ids=BROKEN)
@leakless
async def test_a_coded_body_that_is_not_right_is_an_error(coding: str, body: bytes, problem: str) -> None:
    coded = response(body, f"content-encoding: {coding}")
    async with serving(respond_with(coded)) as wire, aclosing(Transport()) as transport:
        with pytest.raises(TransportError) as caught:
            async with await transport.send("POST", wire.url, []) as reply:
                await reply.read()
        assert f"{caught.value.kind}/{caught.value.stage}: {caught.value}" == problem


@leakless
async def test_a_bomb_closes_the_connection_u27() -> None:
    bomb = gzip.compress(bytes(10_000_000))
    endless = CHUNKED[:-2] + b"content-encoding: gzip\r\n\r\n%x\r\n%b\r\n" % (len(bomb), bomb)
    async with serving(respond_with(endless)) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        async with await transport.send("POST", wire.url, []) as reply:
            pieces: list[bytes] = []
            with pytest.raises(TransportError, match="grows beyond its limit"):
                await collect(reply, pieces)
            assert sum(map(len, pieces)) <= PIECE
            await becomes(before, open_sockets)
            with pytest.raises(TransportError, match="grows beyond its limit"):
                await anext(reply)


@leakless
async def test_an_unknown_coding_closes_the_connection_u27() -> None:
    endless = CHUNKED[:-2] + b"content-encoding: br\r\n\r\n"
    async with serving(respond_with(endless)) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        with pytest.raises(TransportError, match="a content coding other than"):
            await transport.send("POST", wire.url, [])
        await becomes(before, open_sockets)


@leakless
async def test_a_body_that_is_closed_gives_nothing_more() -> None:
    """All of it has arrived, and some of it is decoded."""
    coded = response(gzip.compress(bytes(3 * PIECE)), "content-encoding: gzip")
    transport = Transport(limits=TransportLimits(decoded_ratio=10_000))
    async with serving(respond_with(coded)) as wire, aclosing(transport):
        reply = await transport.send("POST", wire.url, [])
        await becomes(wanted=True, look=lambda: reply._exchange.complete)
        assert await anext(reply) == bytes(PIECE)
        await reply.aclose()
        with pytest.raises(TransportError, match="closed by its reader"):
            await anext(reply)


def unpack(decoder: Inflater, pieces: list[bytes]) -> bytes:
    """Feed as a reader does."""
    plain = b""
    for piece in pieces:
        plain += decoder.feed(piece)
        while decoder.pending:
            plain += decoder.feed(b"")
    decoder.close()
    return plain


@pytest.mark.parametrize(("coding", "body"), CODED.values(), ids=CODED)
def test_every_cutting_gives_the_same(coding: str, body: bytes) -> None:
    plain = None
    for pieces in [[body], *([body[:at], body[at:]] for at in range(len(body))), [bytes([byte]) for byte in body]]:
        decoder = inflater([coding], TransportLimits())
        unpacked = b"".join(pieces) if decoder is None else unpack(decoder, pieces)
        plain = unpacked if plain is None else plain
        assert unpacked == plain


def test_a_large_body_comes_in_pieces_within_the_bound() -> None:
    decoder = Inflater(TransportLimits(), gzip=True)
    first = decoder.feed(gzip.compress(LARGE))
    assert (len(first), decoder.pending) == (PIECE, True)
    rest = []
    while decoder.pending:
        rest.append(decoder.feed(b""))
        assert len(rest[-1]) <= PIECE
    decoder.close()
    assert first + b"".join(rest) == LARGE


def test_what_zlib_holds_after_the_last_byte_comes_out() -> None:
    """A match that crosses the piece's end: all input is consumed, and output is still to come."""
    plain = bytes(PIECE + 195)
    assert unpack(Inflater(TransportLimits(decoded_ratio=10_000), gzip=False), [bare(plain)]) == plain


def test_the_absolute_bound_holds_whatever_the_ratio() -> None:
    decoder = Inflater(TransportLimits(decoded_bytes=1_000, decoded_ratio=1_000_000), gzip=False)
    assert decoder.feed(zlib.compress(bytes(1_000))) == bytes(1_000)
    decoder = Inflater(TransportLimits(decoded_bytes=1_000, decoded_ratio=1_000_000), gzip=False)
    with pytest.raises(TransportError, match="grows beyond its limit"):
        decoder.feed(zlib.compress(bytes(1_001)))


@given(st.sampled_from(["gzip", "deflate"]), st.lists(st.binary(max_size=60), max_size=8))
def test_garbage_is_an_error_or_a_bounded_body(coding: str, pieces: list[bytes]) -> None:
    decoder = inflater([coding], TransportLimits())
    assert decoder is not None
    try:
        plain = unpack(decoder, pieces)
    except TransportError as error:
        assert error.kind in ("protocol", "too_large")  # noqa: PT017 - either, or a body
    else:
        assert len(plain) <= PIECE
