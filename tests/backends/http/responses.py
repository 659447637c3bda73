"""Responses as bytes, and what a client has to make of them: the vectors of the HTTP/1.1 parser and the transport."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pytest

Headers = tuple[tuple[str, str], ...]


class Seen(NamedTuple):
    """What a client saw of a response. `end` is "whole", or the kind and stage of the error."""

    status: int
    headers: Headers
    body: bytes
    end: str
    connection: Literal["kept", "closed"]


class Response(NamedTuple):
    """What the upstream writes, and whether it then closes the connection."""

    wire: bytes
    then: Literal["stays", "closes"]
    seen: Seen


def case(name: str, wire: bytes, *seen: object, then: Literal["stays", "closes"] = "stays") -> object:
    return pytest.param(Response(wire, then, Seen(*seen)), id=name)  # type: ignore[arg-type]


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
CODED: Headers = (("transfer-encoding", "chunked"),)
SIZED: Headers = (("content-length", "2"),)
NOTHING = (0, (), b"", "protocol/head", "closed")
"""Refused before the head was taken."""


def malformed(name: str, wire: bytes) -> object:
    return case(name, wire, *NOTHING)


WHOLE = [
    case("length", OK + b"Content-Length: 2\r\n\r\nhi", 200, SIZED, b"hi", "whole", "kept"),
    case("length-0", OK + b"content-length: 0\r\n\r\n", 200, (("content-length", "0"),), b"", "whole", "kept"),
    case("chunked", CHUNKED + b"2\r\nhi\r\n3\r\n yo\r\n0\r\n\r\n", 200, CODED, b"hi yo", "whole", "kept"),
    case("chunk-extensions", CHUNKED + b'2;a=b;c="d"\r\nhi\r\n0;z\r\n\r\n', 200, CODED, b"hi", "whole", "kept"),
    case(
        "trailers",
        CHUNKED + b"2\r\nhi\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n",
        200,
        CODED,
        b"hi",
        "whole",
        "kept",
    ),
    case(
        "connection-close",
        OK + b"connection: close\r\ncontent-length: 2\r\n\r\nhi",
        200,
        (("connection", "close"), *SIZED),
        b"hi",
        "whole",
        "closed",
    ),
    case(
        "connection-close-in-list",
        OK + b"connection: keep-alive, Close\r\ncontent-length: 2\r\n\r\nhi",
        200,
        (("connection", "keep-alive, Close"), *SIZED),
        b"hi",
        "whole",
        "closed",
    ),
    case("until-close", OK + b"\r\nhi yo", 200, (), b"hi yo", "whole", "closed", then="closes"),
    case("http-1.0-until-close", b"HTTP/1.0 200 OK\r\n\r\nhi", 200, (), b"hi", "whole", "closed", then="closes"),
    case("http-1.0-length", b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, SIZED, b"hi", "whole", "closed"),
    case(
        "http-1.0-keep-alive",
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi",
        200,
        (("connection", "keep-alive"), *SIZED),
        b"hi",
        "whole",
        "kept",
    ),
    case(
        "fields-as-they-are",
        OK + b"X-A:\r\nX-A:  b \t\r\nX-B: \xe9\tc\r\ncontent-length: 0\r\n\r\n",
        200,
        (("x-a", ""), ("x-a", "b"), ("x-b", "\xe9\tc"), ("content-length", "0")),
        b"",
        "whole",
        "kept",
    ),
    case("no-reason", b"HTTP/1.1 599\r\ncontent-length: 2\r\n\r\nhi", 599, SIZED, b"hi", "whole", "kept"),
    case("U44-204", b"HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n", 204, SIZED, b"", "whole", "kept"),
    case("U44-304", b"HTTP/1.1 304 Not\r\ncontent-length: 2\r\n\r\n", 304, SIZED, b"", "whole", "kept"),
    case(
        "U44-1xx",
        b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nlink: a\r\n\r\n" + OK + b"content-length: 2\r\n\r\nhi",
        200,
        SIZED,
        b"hi",
        "whole",
        "kept",
    ),
    case(
        "U42-redirect",
        b"HTTP/1.1 307 There\r\nlocation: http://elsewhere.test/\r\ncontent-length: 2\r\n\r\nhi",
        307,
        (("location", "http://elsewhere.test/"), *SIZED),
        b"hi",
        "whole",
        "kept",
    ),
    case(
        "upgrade-offered",
        b"HTTP/1.1 426 Upgrade\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\nhi",
        426,
        (("upgrade", "h2c"), ("connection", "upgrade"), *SIZED),
        b"hi",
        "whole",
        "kept",
    ),
    case("U45-longer", OK + b"content-length: 2\r\n\r\nhi there", 200, SIZED, b"hi", "whole", "closed"),
    case(
        "U45-second-response",
        OK + b"content-length: 2\r\n\r\nhi" + OK + b"content-length: 2\r\n\r\nho",
        200,
        SIZED,
        b"hi",
        "whole",
        "closed",
    ),
    case("U45-after-chunks", CHUNKED + b"2\r\nhi\r\n0\r\n\r\nmore", 200, CODED, b"hi", "whole", "closed"),
]
"""Answers that are right, or whole as far as one can tell. Every cutting of the bytes gives the same."""

BROKEN = [
    case("U11-closed-before-any-byte", b"", 0, (), b"", "closed/head", "closed", then="closes"),
    case("U11-closed-in-head", OK + b"x-a", 0, (), b"", "closed/head", "closed", then="closes"),
    case("U44-only-interim", b"HTTP/1.1 100 Go\r\n\r\n", 0, (), b"", "closed/head", "closed", then="closes"),
    case("U45-shorter", OK + b"content-length: 2\r\n\r\nh", 200, SIZED, b"h", "closed/body", "closed", then="closes"),
    case("U12-no-body", OK + b"content-length: 2\r\n\r\n", 200, SIZED, b"", "closed/body", "closed", then="closes"),
    case("U13-cut-in-chunk", CHUNKED + b"5\r\nhi", 200, CODED, b"hi", "closed/body", "closed", then="closes"),
    case("U13-cut-between-chunks", CHUNKED + b"2\r\nhi\r\n", 200, CODED, b"hi", "closed/body", "closed", then="closes"),
    case("U13-cut-in-last", CHUNKED + b"2\r\nhi\r\n0\r\n", 200, CODED, b"hi", "closed/body", "closed", then="closes"),
    case("chunk-longer", CHUNKED + b"2\r\nhix\r\n0\r\n\r\n", 200, CODED, b"hi", "protocol/body", "closed"),
    case("chunk-size-negative", CHUNKED + b"-2\r\nhi\r\n", 200, CODED, b"", "protocol/body", "closed"),
    case("chunk-size-huge", CHUNKED + b"f" * 17 + b"\r\nhi\r\n", 200, CODED, b"", "protocol/body", "closed"),
    case("chunk-size-prefixed", CHUNKED + b"0x2\r\nhi\r\n", 200, CODED, b"", "protocol/body", "closed"),
    case("chunk-bare-lf", CHUNKED + b"2\nhi\n0\n\n", 200, CODED, b"", "protocol/body", "closed"),
    case("chunk-extension-lf", CHUNKED + b"2;a\nb\r\nhi\r\n0\r\n\r\n", 200, CODED, b"", "protocol/body", "closed"),
    case(
        "trailer-length",
        CHUNKED + b"2\r\nhi\r\n0\r\ncontent-length: 1\r\n\r\n",
        200,
        CODED,
        b"hi",
        "protocol/body",
        "closed",
    ),
    malformed("U43-not-http", b"SSH-2.0-OpenSSH_9.6\r\n"),
    malformed("U43-http-2", b"HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-http-0.9", b"HTTP/0.9 200 OK\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-status-of-2-digits", b"HTTP/1.1 20 OK\r\n\r\n"),
    malformed("U43-status-099", b"HTTP/1.1 099 OK\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-status-600", b"HTTP/1.1 600 OK\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-bare-lf", b"HTTP/1.1 200 OK\ncontent-length: 0\n\n"),
    malformed("U43-bare-cr", OK + b"x-a: a\rb\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-nul", OK + b"x-a: a\0b\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-control", OK + b"x-a: a\x01b\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-folded", OK + b"x-a: a\r\n b\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-space-before-colon", OK + b"x-a : a\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-no-colon", OK + b"x-a\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-no-name", OK + b": a\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-name-not-ascii", OK + b"x-\xe9: a\r\ncontent-length: 0\r\n\r\n"),
    malformed("U43-lengths-differ", OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nhi"),
    malformed("U43-length-twice", OK + b"content-length: 2\r\ncontent-length: 2\r\n\r\nhi"),
    malformed("U43-length-list", OK + b"content-length: 2, 2\r\n\r\nhi"),
    malformed("U43-length-signed", OK + b"content-length: +2\r\n\r\nhi"),
    malformed("U43-length-negative", OK + b"content-length: -2\r\n\r\nhi"),
    malformed("U43-length-huge", OK + b"content-length: 99999999999999999999\r\n\r\nhi"),
    malformed("U43-length-empty", OK + b"content-length:\r\n\r\nhi"),
    malformed("U43-length-and-chunked", OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    malformed("U43-chunked-and-length", OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n"),
    malformed("U43-coding-not-chunked", OK + b"transfer-encoding: gzip\r\n\r\nhi"),
    malformed("U43-coding-identity", OK + b"transfer-encoding: identity\r\n\r\nhi"),
    malformed("U43-codings-listed", OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    malformed("U43-chunked-not-last", OK + b"transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    malformed("U43-chunked-twice", CHUNKED[:-2] + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    malformed("U43-chunked-in-1.0", b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    malformed("U44-101", b"HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhi"),
    malformed("U44-101-bare", b"HTTP/1.1 101 Switch\r\n\r\nhi"),
    case("U44-1xx-storm", b"HTTP/1.1 100 Go\r\n\r\n" * 17 + OK, 0, (), b"", "too_large/head", "closed"),
    case("U43-1000-fields", OK + b"x-a: b\r\n" * 1_000 + b"\r\n", 0, (), b"", "too_large/head", "closed"),
    case("U43-64k-field", OK + b"x-a: " + b"b" * 65_536 + b"\r\n\r\n", 0, (), b"", "too_large/head", "closed"),
    case(
        "U43-64k-trailer",
        CHUNKED + b"2\r\nhi\r\n0\r\nx-a: " + b"b" * 65_536 + b"\r\n\r\n",
        200,
        CODED,
        b"hi",
        "too_large/body",
        "closed",
    ),
]
"""Answers that are wrong or cut. Every cutting of the bytes gives the same."""
