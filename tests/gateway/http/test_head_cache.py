"""Heads that repeat the last: read by two comparisons, they are what reading them anew gives, or are not taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.gateway.http.application import HeadState
from xenoglot.gateway.http.head_cache import LONGEST, HeadCache, is_cacheable
from xenoglot.http1.request_head import InvalidHeadError, decode_head, find_end

pytestmark = pytest.mark.usefixtures("with_shortcuts")

BLANKS = st.sampled_from([b"", b" ", b"\t", b" \t "])
NAMES = st.sampled_from([b"Content-Length", b"content-length", b"X-Content-Length", b"Host", b"X", b"Content-Length-X"])
VALUES = st.sampled_from([b"", b"1", b"12", b"a: 5", b"Content-Length: 7", b"\xe9", b"0" * 18, b"9" * 19, b"+1", b"-"])
FIELDS = st.builds(
    lambda name, before, value, after: name + b":" + before + value + after + b"\r\n", NAMES, BLANKS, VALUES, BLANKS
)
FIRSTS = st.sampled_from([b"POST /v1/messages HTTP/1.1\r\n", b"GET /a?b=1 HTTP/1.0\r\n", b"OPTIONS * HTTP/1.1\r\n"])
HEADS = st.builds(lambda first, fields: first + b"".join(fields) + b"\r\n", FIRSTS, st.lists(FIELDS, max_size=5))


def read(data: bytes) -> object:
    """Return the head in `data` and where it ends, by reading it anew; nothing where it is none."""
    try:
        end = find_end(data, 0)
        return (decode_head(data[:end]), end) if end else None
    except InvalidHeadError:
        return None


def read_again(known: HeadCache, data: bytes) -> object:
    """Return the same by what is known."""
    end = known.end_in(data)
    return (known.head, end) if end else None


@given(HEADS, st.lists(HEADS, min_size=1, max_size=4), st.sampled_from([b"", b"{}", b"\r\n\r\n", b"5"]))
def test_what_is_known_again_is_what_reading_gives(first: bytes, then: list[bytes], behind: bytes) -> None:
    came = read(first)
    if not isinstance(came, tuple):
        return
    known = HeadCache(first, came[0], HeadState())
    for data in (first, *then):
        assert read_again(known, data + behind) in (None, read(data + behind))


POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %b\r\nX: 1\r\n\r\n"


@pytest.mark.parametrize("size", [b"0", b"7", b"007", b"123456", b"9" * 18])
def test_another_length_is_another_body_of_the_same_head(size: bytes) -> None:
    data = POST % b"42"
    known = HeadCache(data, decode_head(data), HeadState())
    assert read_again(known, POST % size) == read(POST % size)
    assert read_again(known, data) == read(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(POST % b"", id="C26-no-length"),
        pytest.param(POST % b"4 2", id="C26-blank-in-the-length"),
        pytest.param(POST % b"-1", id="C26-negative"),
        pytest.param(POST % b"+1", id="C26-signed"),
        pytest.param(POST % b"\xb2", id="C26-digit-of-unicode"),
        pytest.param(POST % (b"9" * 19), id="C26-beyond-64-bits"),
        pytest.param(POST % b"1\r\nContent-Length: 1", id="C26-two-lengths"),
        pytest.param((POST % b"1").replace(b"X: 1", b"X: 2"), id="another-field"),
        pytest.param((POST % b"1")[:-1], id="not-whole"),
        pytest.param((POST % b"1").replace(b"\r\nX", b"\nX"), id="R60-bare-LF"),
        pytest.param(b"\r\n" + POST % b"1", id="behind-an-empty-line"),
    ],
)
def test_what_is_not_known_again(data: bytes) -> None:
    first = POST % b"42"
    assert read_again(HeadCache(first, decode_head(first), HeadState()), data) is None


def test_a_head_without_a_length_repeats_whole() -> None:
    data = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    known = HeadCache(data, decode_head(data), HeadState())
    assert read_again(known, data + b"GET /") == read(data)
    assert read_again(known, data.replace(b"health", b"healthy")) is None


def test_what_is_not_kept() -> None:
    waits = b"POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    large = b"GET / HTTP/1.1\r\nX: %b\r\n\r\n" % (b"a" * LONGEST)
    small = POST % b"1"
    assert [is_cacheable(data, decode_head(data)) for data in (waits, large, small)] == [False, False, True]
