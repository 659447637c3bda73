"""HTTP/1.1 without a socket: requests to bytes, and bytes to responses at every cutting."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.backends.http.responses import BROKEN, CHUNKED, OK, WHOLE, Response, Seen
from xenoglot.backends.http.http1 import Origin, RequestURL, ResponseParser, locate, prepare
from xenoglot.backends.http.timeouts import TransportError, TransportLimits

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse(pieces: Iterable[bytes], *, ends: bool, method: str = "POST") -> Seen:
    """Feed a parser as a connection does: nothing after the end or an error."""
    parser = ResponseParser(TransportLimits())
    parser.begin(method)
    body = b""
    for piece in pieces:
        body += parser.feed(piece)
        if parser.error:
            break
    if ends and not parser.complete and not parser.error:
        parser.end()
    error = parser.error
    end = f"{error.kind}/{error.stage}" if error else "whole" if parser.complete else "waiting"
    status, headers = (parser.head.status, parser.head.headers) if parser.head else (0, ())
    return Seen(status, headers, body, end, "kept" if parser.reusable else "closed")


def cuttings(wire: bytes) -> Iterable[list[bytes]]:
    """Whole, in two at every place, and into single bytes; long ones into reads of some sizes."""
    yield [wire]
    if len(wire) > 1_000:
        for size in (17, 1_000, 65_536):
            yield [wire[at : at + size] for at in range(0, len(wire), size)]
        return
    for at in range(1, len(wire)):
        yield [wire[:at], wire[at:]]
    yield [wire[at : at + 1] for at in range(len(wire))]


@pytest.mark.parametrize("response", WHOLE + BROKEN)
def test_a_response_is_the_same_however_it_is_cut(response: Response) -> None:
    for pieces in cuttings(response.wire):
        assert parse(pieces, ends=response.then == "closes") == response.seen


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        pytest.param(b"", b"\r\n", id="U43-endless-blank-lines"),
        pytest.param(b"HTTP/1.1 200 ", b"reason", id="U43-endless-reason"),
        pytest.param(OK, b"name", id="U43-endless-name"),
        pytest.param(OK + b"x-a: ", b"value", id="U43-endless-value"),
        pytest.param(CHUNKED + b"2", b";a=b", id="endless-chunk-extension"),
        pytest.param(CHUNKED + b"2", b"0", id="endless-chunk-size"),
        pytest.param(CHUNKED + b"2\r\nhi\r\n0\r\n", b"x-a: b\r\n", id="U43-endless-trailers"),
        pytest.param(CHUNKED + b"2\r\nhi\r\n0\r\nx-a: ", b"value", id="U43-endless-trailer"),
    ],
)
def test_what_never_becomes_body_ends_within_a_bound(before: bytes, piece: bytes) -> None:
    parser = ResponseParser(TransportLimits())
    parser.begin("POST")
    parser.feed(before)
    fed = 0
    while parser.error is None and fed < 3 * TransportLimits().head_bytes:
        parser.feed(piece)
        fed += len(piece)
    assert parser.error is not None


@pytest.mark.parametrize("second", WHOLE)
def test_trailers_of_one_response_are_no_headers_of_the_next(second: Response) -> None:
    parser = ResponseParser(TransportLimits())
    parser.begin("POST")
    assert parser.feed(CHUNKED + b"2\r\nhi\r\n0\r\nx-evil: 1\r\n\r\n") == b"hi"
    parser.begin("POST")
    body = parser.feed(second.wire)
    assert parser.head is not None
    assert (parser.head.status, parser.head.headers, body) == second.seen[:3]


def test_a_head_request_has_no_body() -> None:
    seen = parse([OK + b"content-length: 2\r\n\r\n"], ends=False, method="HEAD")
    assert seen == Seen(200, (("content-length", "2"),), b"", "whole", "closed")


@given(
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([
        OK, CHUNKED, b"HTTP/1.1 ", b"100 \r\n\r\n", b"content-length: 3\r\n", b"transfer-encoding: chunked\r\n",
        b"\r\n", b"\r\n\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"x: y\r\n", b"connection: close\r\n", b"\n", b"\0",
    ])), max_size=12),
    st.lists(st.integers(0, 400), max_size=8),
)  # fmt: skip
@example([OK, b"content-length: 3\r\n", b"\r\n", b"abcdef"], [1, 2])
def test_garbage_gives_a_response_or_an_error_however_it_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    wire = b"".join(parts)
    places = [0, *sorted(cuts), len(wire)]
    whole = parse([wire], ends=True)
    assert whole.end == "whole" or whole.end.split("/")[0] in ("protocol", "closed", "too_large")
    assert len(whole.body) <= len(wire)
    pieces = [wire[start:stop] for start, stop in pairwise(places) if start < stop]
    assert parse(pieces, ends=True) == whole


@pytest.mark.parametrize(
    ("url", "origin", "authority", "target"),
    [
        ("http://h", Origin("http", "h", 80), "h", "/"),
        ("http://h:80/", Origin("http", "h", 80), "h", "/"),
        ("https://h:443/v1", Origin("https", "h", 443), "h", "/v1"),
        ("https://h:80/v1", Origin("https", "h", 80), "h:80", "/v1"),
        ("HTTP://Api.test./v1//chat/?a=b&c=%2F+d?", Origin("http", "api.test.", 80), "api.test.",
         "/v1//chat/?a=b&c=%2F+d?"),
        ("http://h?", Origin("http", "h", 80), "h", "/?"),
        ("http://127.0.0.1:8080/a:b@c", Origin("http", "127.0.0.1", 8080), "127.0.0.1:8080", "/a:b@c"),
        ("http://[::1]:8080/x", Origin("http", "::1", 8080), "[::1]:8080", "/x"),
        ("https://[2001:DB8::1]", Origin("https", "2001:db8::1", 443), "[2001:db8::1]", "/"),
        ("http://model_server:1", Origin("http", "model_server", 1), "model_server:1", "/"),
    ],
)  # fmt: skip
def test_a_url_is_read(url: str, origin: Origin, authority: str, target: str) -> None:
    assert locate(url) == RequestURL(origin, authority, target)


@pytest.mark.parametrize(
    "url",
    [
        "", "h", "/v1", "ftp://h/", "//h/", "http://", "http:///v1", "http://h:/v1 ", "http://h:0", "http://h:65536",
        "http://h:port", "http://user:secret@h/", "http://h/#part", "http://h/a b", "http://h/\r\nx: y", "http://h/\0",
        "http://h/\xe9", "http://\xe9.test/", "http://a..b/", "http://" + "a" * 64 + "/", "http://[::1", "http://::1/",
        "http://h\\@evil.test/", "http://h/\n", "http://h%2e/",
    ],
)  # fmt: skip
def test_a_bad_url_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(TransportError) as caught:
        locate(url)
    error = caught.value
    assert (error.kind, error.stage, error.sent) == ("protocol", "request", False)
    assert "secret" not in str(error)
    assert "evil" not in str(error)


def test_a_request_is_one_head() -> None:
    prepared = prepare("POST", "http://h:81/v1?beta=true", [("X-A", "b"), ("x-b", "\xe9\t c")])
    assert prepared.request(bytes(12)).head == (
        b"POST /v1?beta=true HTTP/1.1\r\nhost: h:81\r\nX-A: b\r\nx-b: \xe9\t c\r\n"
        b"accept-encoding: identity\r\ncontent-length: 12\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("method", "length", "ends"),
    [
        ("GET", 0, b"\r\n"), ("HEAD", 0, b"\r\n"), ("GET", 1, b"content-length: 1\r\n\r\n"),
        ("POST", 0, b"content-length: 0\r\n\r\n"), ("DELETE", 0, b"content-length: 0\r\n\r\n"),
    ],
)  # fmt: skip
def test_a_length_is_said_where_a_body_is_expected(method: str, length: int, ends: bytes) -> None:
    head = prepare(method, "http://h/", [("Accept-Encoding", "gzip")]).request(bytes(length)).head
    assert head == method.encode() + b" / HTTP/1.1\r\nhost: h\r\nAccept-Encoding: gzip\r\n" + ends


REFUSED = {
    "crlf-in-value": ("x-a", "secret\r\nx-evil: 1"),
    "lf-in-value": ("x-a", "secret\n"),
    "cr-in-value": ("x-a", "secret\r"),
    "nul-in-value": ("x-a", "secret\0"),
    "control-in-value": ("x-a", "secret\x7f"),
    "beyond-latin-1": ("x-a", "secret\u2028"),
    "surrogate": ("x-a", "secret\ud800"),
    "crlf-in-name": ("x-a: b\r\nx-evil", "secret"),
    "space-in-name": ("x a", "secret"),
    "colon-in-name": ("x:", "secret"),
    "empty-name": ("", "secret"),
    "name-not-ascii": ("x-\xe9", "secret"),
    "name-ascii-in-lower-case": ("x-\u212a", "secret"),  # the Kelvin sign, whose lower case is a plain k
    "host": ("Host", "secret"),
    "content-length": ("Content-Length", "3"),
    "transfer-encoding": ("transfer-encoding", "chunked"),
    "connection": ("connection", "close"),
    "upgrade": ("upgrade", "h2c"),
    "te": ("TE", "trailers"),
    "expect": ("expect", "100-continue"),
}


@pytest.mark.parametrize(("name", "value"), REFUSED.values(), ids=[f"R60-{name}" for name in REFUSED])
def test_a_field_that_would_break_the_message_is_refused(name: str, value: str) -> None:
    with pytest.raises(TransportError) as caught:
        prepare("POST", "http://h/", [("x-fine", "1"), (name, value)])
    error = caught.value
    assert (error.kind, error.stage, error.sent) == ("protocol", "request", False)
    assert "secret" not in str(error)
    assert str(error).isprintable()


@pytest.mark.parametrize("method", ["", "get", "GET /", "G\r\nET", "CONNECT", "G\xc9T"])
def test_a_bad_method_is_refused(method: str) -> None:
    with pytest.raises(TransportError, match="the method is none of GET, HEAD"):
        prepare(method, "http://h/", [])


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4))
def test_whatever_the_fields_the_head_is_one_head(headers: list[tuple[str, str]]) -> None:
    try:
        head = prepare("POST", "http://h/", headers).request().head
    except TransportError:
        return
    lines = head.split(b"\r\n")
    assert head.count(b"\r") == head.count(b"\n") == len(lines) - 1
    assert lines[2 : 2 + len(headers)] == [f"{name}: {value}".encode("latin-1") for name, value in headers]
