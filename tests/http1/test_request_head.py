"""The head of a request: what is read of it, and what is refused. Cases are data; each is cut everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.http1.request_head import InvalidHeadError, RequestHead, decode_head, find_end
from xenoglot.http1.syntax import HEAD_BYTES, HEAD_FIELDS

HOST = b"Host: localhost\r\n"


def read(data: bytes, *cuts: int) -> RequestHead:
    """Return the head that begins `data`, read in the pieces that `cuts` make."""
    come = bytearray()
    seen = 0
    for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        come += data[begin:end]
        if size := find_end(come, seen):
            return decode_head(bytes(come[:size]))
        seen = len(come)
    raise EOFError


@pytest.mark.parametrize(
    ("data", "head"),
    [
        pytest.param(
            b"GET /health?a=b?c HTTP/1.1\r\nHost: localhost\r\n\r\n",
            RequestHead("GET", "/health", "a=b?c", [("host", "localhost")]),
            id="plain",
        ),
        pytest.param(
            b"POST /v1/a%20b HTTP/1.1\r\nX-A:\t 1 \t\r\nx-a:\r\nContent-Length: 05\r\n\r\n",
            RequestHead("POST", "/v1/a%20b", "", [("x-a", "1"), ("x-a", ""), ("content-length", "05")], length=5),
            id="blanks-repeats-and-a-length",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nConnection: x, Close\r\n\r\n",
            RequestHead(
                "POST", "/", "", [("transfer-encoding", "Chunked"), ("connection", "x, Close")], length=None, close=True
            ),
            id="chunks-and-close",
        ),
        pytest.param(
            b"POST / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
            RequestHead(
                "POST",
                "/",
                "",
                [("content-length", "3"), ("expect", "100-continue")],
                length=3,
                close=True,
                plain=True,
            ),
            id="http-1.0-waits-for-nothing",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n",
            RequestHead("POST", "/", "", [("content-length", "3"), ("expect", "100-Continue")], length=3, waits=True),
            id="C10-waits",
        ),
        pytest.param(b"OPTIONS * HTTP/1.1\r\n\r\n", RequestHead("OPTIONS", "*", "", []), id="asterisk"),
        pytest.param(b"GET / HTTP/1.1\r\nX: \xe9\r\n\r\n", RequestHead("GET", "/", "", [("x", "é")]), id="latin-1"),
        pytest.param(
            b"G!# //%2e%2e;x HTTP/1.1\r\n\r\n", RequestHead("G!#", "//%2e%2e;x", "", []), id="C23-as-it-stands"
        ),
    ],
)
def test_heads(data: bytes, head: RequestHead) -> None:
    assert [read(data, cut) for cut in range(len(data))] == [head] * len(data)


REFUSED = [
    # Two lengths, or none that is sure (RFC 9112 section 6.3).
    pytest.param(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "both", 400, id="C26-CL.TE"),
    pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", "both", 400, id="C26-TE.CL"),
    pytest.param(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "once", 400, id="C26-TE.TE"),
    pytest.param(b"Transfer-Encoding: chunked, identity\r\n", "once", 400, id="C26-TE-list"),
    pytest.param(b"Transfer-Encoding: gzip, chunked\r\n", "once", 400, id="C26-TE-gzip"),
    pytest.param(b"Transfer-Encoding: xchunked\r\n", "once", 400, id="C26-TE-unknown"),
    pytest.param(b"Transfer-Encoding: \r\n", "once", 400, id="C26-TE-empty"),
    pytest.param(b"Transfer-Encoding: \x0bchunked\r\n", "not a lawful", 400, id="C26-TE-vertical-tab"),
    pytest.param(b"Content-Length: 5\r\nContent-Length: 5\r\n", "one valid", 400, id="C26-same-length-twice"),
    pytest.param(b"Content-Length: 5\r\nContent-Length: 6\r\n", "one valid", 400, id="C26-two-lengths"),
    pytest.param(b"Content-Length: 5, 5\r\n", "one valid", 400, id="C26-list-of-lengths"),
    pytest.param(b"Content-Length: +5\r\n", "one valid", 400, id="C26-signed"),
    pytest.param(b"Content-Length: -5\r\n", "one valid", 400, id="C26-negative"),
    pytest.param(b"Content-Length: 0x5\r\n", "one valid", 400, id="C26-hexadecimal"),
    pytest.param(b"Content-Length: 5_0\r\n", "one valid", 400, id="C26-underscore"),
    pytest.param(b"Content-Length: \xb2\r\n", "one valid", 400, id="C26-digit-of-unicode"),
    pytest.param(b"Content-Length: 9999999999999999999\r\n", "one valid", 400, id="C26-beyond-64-bits"),
    pytest.param(b"Content-Length:\r\n", "one valid", 400, id="C26-no-length"),
    # Lines and fields (RFC 9112 sections 2.2 and 5).
    pytest.param(b"X: a\r\n folded\r\n", "folded", 400, id="R60-obs-fold"),
    pytest.param(b" X: a\r\n", "folded", 400, id="R60-blank-before-the-first-field"),
    pytest.param(b"X: a\0b\r\n", "NUL", 400, id="R60-NUL"),
    pytest.param(b"X: a\rb\r\n", "CR", 400, id="R60-bare-CR"),
    pytest.param(b"X: a\x01b\r\n", "not a lawful", 400, id="R60-control-character"),
    pytest.param(b"X : a\r\n", "not a lawful", 400, id="R60-blank-before-the-colon"),
    pytest.param(b"X\xe9: a\r\n", "not a lawful", 400, id="R60-name-beyond-ascii"),
    pytest.param(b": a\r\n", "not a lawful", 400, id="R60-no-name"),
    pytest.param(b"novalue\r\n", "not a lawful", 400, id="R60-no-colon"),
    pytest.param(b"X: a\nContent-Length: 5\r\n", "LF", 400, id="R60-bare-LF-within"),
    pytest.param(b"X: a\r\n" * (HEAD_FIELDS + 1), "more than", 431, id="many-fields"),
    pytest.param(b"X: " + b"a" * HEAD_BYTES + b"\r\n", "larger", 431, id="large-field"),
    pytest.param(b"Expect: 200-ok\r\n", "expect", 417, id="C10-unknown-expectation"),
]


@pytest.mark.parametrize(("fields", "problem", "status"), REFUSED)
def test_what_is_refused(fields: bytes, problem: str, status: int) -> None:
    with pytest.raises(InvalidHeadError, match=problem) as caught:
        read(b"POST /v1/messages HTTP/1.1\r\n" + HOST + fields + b"\r\n")
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param(b"GET http://localhost/health HTTP/1.1", 400, id="S02-absolute-form"),
        pytest.param(b"GET localhost/health HTTP/1.1", 400, id="S02-no-slash"),
        pytest.param(b"CONNECT localhost:80 HTTP/1.1", 400, id="S02-authority-form"),
        pytest.param(b"GET * HTTP/1.1", 400, id="S02-asterisk-of-a-get"),
        pytest.param(b"GET /a#b HTTP/1.1", 400, id="S02-fragment"),
        pytest.param(b"GET /a b HTTP/1.1", 400, id="blank-in-the-path"),
        pytest.param(b"GET  /a HTTP/1.1", 400, id="two-blanks"),
        pytest.param(b"GET /a\tHTTP/1.1", 400, id="tab"),
        pytest.param(b"GET /\xc3\xa9 HTTP/1.1", 400, id="path-beyond-ascii"),
        pytest.param(b"GET /\x7f HTTP/1.1", 400, id="control-character"),
        pytest.param(b"GET /a", 400, id="http-0.9"),
        pytest.param(b"GET /a HTTP/1.1 ", 400, id="blank-behind"),
        pytest.param(b"GET /a http/1.1", 400, id="small-letters"),
        pytest.param(b"GET /a HTTP/1.10", 400, id="two-digits"),
        pytest.param(b"G(T /a HTTP/1.1", 400, id="no-token"),
        pytest.param(b"GET /a HTTP/1.2", 505, id="http-1.2"),
        pytest.param(b"GET /a HTTP/2.0", 505, id="http-2"),
        pytest.param(b"PRI * HTTP/2.0", 505, id="http-2-preface"),
        pytest.param(b"\x05\x01\x00", 400, id="socks"),
        pytest.param(b"", 400, id="nothing"),
    ],
)
def test_first_lines_that_are_refused(line: bytes, status: int) -> None:
    with pytest.raises(InvalidHeadError) as caught:
        decode_head(line + b"\r\n" + HOST + b"\r\n")
    assert caught.value.status == status


def test_r60_a_bare_lf_is_refused_as_soon_as_it_comes() -> None:
    begun = b"GET /health HTTP/1.1\nHost: localhost\n"
    with pytest.raises(InvalidHeadError, match="CRLF"):
        find_end(bytearray(begun), 0)
    assert find_end(bytearray(b"GET / HTTP/1.1\r\nHost: x\r\n\r"), 0) == 0


def test_what_was_asked_is_known_of_a_refused_request() -> None:
    with pytest.raises(InvalidHeadError) as caught:
        decode_head(b"POST /v1/messages?beta=true HTTP/1.1\r\nX : a\r\n\r\n")
    assert (caught.value.method, caught.value.path) == ("POST", "/v1/messages")


def test_a_head_without_end_is_not_kept() -> None:
    with pytest.raises(InvalidHeadError, match="larger") as caught:
        find_end(bytearray(b"a" * (HEAD_BYTES + 1)), 0)
    assert caught.value.status == 431


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=3))
def test_garbage_is_a_head_or_refused_wherever_it_is_cut(data: bytes, cuts: list[int]) -> None:
    results: list[object] = []
    for places in ((), sorted(min(cut, len(data)) for cut in cuts)):
        try:
            results.append(read(data, *places))
        except (InvalidHeadError, EOFError) as error:
            results.append(type(error))
    assert results[0] == results[1]
