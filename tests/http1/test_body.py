"""The body of a request: the same whatever the cuts, and refused where it is malformed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.http1.body import ChunkedBody, FixedLengthBody, body_of
from xenoglot.http1.syntax import CHUNK_EXCESS, CHUNK_LINE, TRAILER_BYTES, FramingError

BEHIND = b"GET /health HTTP/1.1\r\n"


def read(body: ChunkedBody | FixedLengthBody, pieces: list[bytes]) -> tuple[bytes, bool, bytes]:
    """Return what is read from `pieces`: the body, whether it is whole, and what came behind it."""
    came, behind = b"", b""
    for piece in pieces:
        if body.done:
            behind += piece
        else:
            came += body.feed(piece)
            behind += body.rest
    return came, body.done, behind


CHUNKED = [
    pytest.param(b"5\r\nHello\r\n0\r\n\r\n", b"Hello", id="one"),
    pytest.param(b"0005\r\nHello\r\n1A\r\n" + b"x" * 26 + b"\r\n000\r\n\r\n", b"Hello" + b"x" * 26, id="hexadecimal"),
    pytest.param(b'5;a=b ; c="d;e"\r\nHello\r\n0;last\r\n\r\n', b"Hello", id="C26-extensions"),
    pytest.param(b"5\r\nHello\r\n0\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n", b"Hello", id="trailer"),
    pytest.param(b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", id="a-line-that-is-data"),
    pytest.param(b"0\r\n\r\n", b"", id="empty"),
]


@pytest.mark.parametrize(("data", "body"), CHUNKED)
def test_chunks_cut_anywhere(data: bytes, body: bytes) -> None:
    whole = data + BEHIND
    cuts = [[whole[:at], whole[at:]] for at in range(len(whole))]
    apart = [whole[at : at + 1] for at in range(len(whole))]
    for pieces in (*cuts, apart):
        assert read(ChunkedBody(), pieces) == (body, True, BEHIND)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"5\nHello\r\n0\r\n\r\n", id="bare-LF-behind-the-size"),
        pytest.param(b"5\r\nHello\n0\r\n\r\n", id="bare-LF-behind-the-chunk"),
        pytest.param(b"5\r\nHello!\r\n0\r\n\r\n", id="longer-than-its-size"),
        pytest.param(b"5\r\nHel\r\n0\r\n\r\n", id="shorter-than-its-size"),
        pytest.param(b"\r\nHello", id="no-size"),
        pytest.param(b"0x5\r\nHello", id="prefix"),
        pytest.param(b"-5\r\nHello", id="negative"),
        pytest.param(b"+5\r\nHello", id="signed"),
        pytest.param(b" 5\r\nHello", id="blank-before"),
        pytest.param(b"5 \r\nHello", id="blank-behind"),
        pytest.param(b"5;a\0\r\nHello", id="NUL"),
        pytest.param(b"5;a\rb\r\nHello", id="bare-CR"),
        pytest.param(b"1" * 16 + b"\r\n", id="beyond-64-bits"),
        pytest.param(b"5;" + b"a" * CHUNK_LINE + b"\r\nHello", id="long-extension"),
        pytest.param(b"5;" + b"a" * CHUNK_LINE, id="long-extension-without-end"),
        pytest.param(b"5\r\nHello\r\n0\r\nX : 1\r\n\r\n", id="malformed-trailer"),
        pytest.param(b"5\r\nHello\r\n0\r\nX: 1\n\n", id="bare-LF-in-the-trailer"),
        pytest.param(b"0\r\n" + b"X: aaaaaaaa\r\n" * (TRAILER_BYTES // 13 + 1), id="long-trailer"),
        pytest.param(b"0\r\nX: " + b"a" * (TRAILER_BYTES + 1), id="trailer-without-end"),
        pytest.param((b"1;" + b"a" * 200 + b"\r\nx\r\n") * (CHUNK_EXCESS // 180), id="more-framing-than-body"),
    ],
)
def test_c26_malformed_chunks_are_refused_wherever_they_are_cut(data: bytes) -> None:
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        with pytest.raises(FramingError):
            read(ChunkedBody(), pieces)


def test_small_chunks_are_no_attack() -> None:
    data = b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"
    assert read(ChunkedBody(), [data]) == (b"x" * 100_000, True, b"")


@pytest.mark.parametrize("cut", range(len(b"Hello" + BEHIND)))
def test_a_body_by_its_length(cut: int) -> None:
    data = b"Hello" + BEHIND
    body = body_of(5)
    assert isinstance(body, FixedLengthBody)
    assert read(body, [data[:cut], data[cut:]]) == (b"Hello", True, BEHIND)


def test_no_body() -> None:
    assert body_of(0).done


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=6))
def test_chunks_are_joined(chunks: list[bytes], cuts: list[int]) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[begin:end] for begin, end in pairwise(places)]
    assert read(ChunkedBody(), pieces) == (b"".join(chunks), True, b"")


@given(st.binary(max_size=200), st.integers(0, 200))
def test_garbage_is_a_body_or_refused_wherever_it_is_cut(data: bytes, cut: int) -> None:
    results: list[object] = []
    for pieces in ([data], [data[:cut], data[cut:]]):
        try:
            results.append(read(ChunkedBody(), pieces))
        except FramingError:
            results.append(FramingError)
    assert results[0] == results[1]
