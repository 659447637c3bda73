"""The head of an HTTP/1.1 request, read as strictly as RFC 9112 allows, without a socket. Pure.

Two readers that disagree on where a request ends are how one request is smuggled inside another. So nothing is guessed
here: lines end in CRLF, a field has one spelling, a body has one length, and what is doubtful is refused.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from xenoglot.http1.syntax import FIELDS, HEAD_BYTES, HEAD_END, HEAD_FIELDS, LENGTH_DIGITS, NAME_CHARACTER, FramingError

BAD_REQUEST: Final = 400
EXPECTATION_FAILED: Final = 417
FIELDS_TOO_LARGE: Final = 431
UNAVAILABLE: Final = 503
VERSION_NOT_SUPPORTED: Final = 505

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\n"
"""The first bytes of an HTTP/2 client (RFC 9113 section 3.4), without `SM` at the end."""
HANDSHAKE: Final = b"\x16\x03"
"""How TLS begins: a handshake record of any version (RFC 8446 section 5.1)."""

_FIRST = re.compile(rf"({NAME_CHARACTER}{{1,64}}) ([!-~]+) HTTP/([0-9])\.([0-9])")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_LENGTH = re.compile(rf"[0-9]{{1,{LENGTH_DIGITS}}}")
_BLANKS: Final = " \t"


class InvalidHeadError(FramingError):
    """The bytes are not a valid request. `status` is that of the response, `path` that of the request, if known."""

    def __init__(self, problem: str, status: int = BAD_REQUEST, *, method: str = "", path: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.method = method
        self.path = path


class RequestHead(Struct, gc=False):
    """The head of a request. `length` is that of the body in bytes, `None` where it comes in chunks.

    `close`: this is the last request of the connection. `plain`: the client does not support chunks (HTTP/1.0).
    `waits`: it sends the body after `100 Continue` (RFC 9110 section 10.1.1).
    """

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    length: int | None = 0
    close: bool = False
    plain: bool = False
    waits: bool = False


def find_end(data: bytes | bytearray, begin: int) -> int:
    """Return the end of the head in `data`, after its empty line; 0 if it is incomplete.

    `begin` is how much of `data` was looked at before.

    Raises:
        InvalidHeadError: whatever may still come, this is no head.
    """
    end = data.find(HEAD_END, max(0, begin - len(HEAD_END) + 1))
    if 0 <= end <= HEAD_BYTES:
        return end + len(HEAD_END)
    if end > 0 or len(data) > HEAD_BYTES:
        raise InvalidHeadError(f"the request's head is larger than {HEAD_BYTES} bytes", FIELDS_TOO_LARGE)
    if _BARE_LF.search(data, max(0, begin - 1)):
        raise InvalidHeadError("a line of the request's head does not end in CRLF")
    return 0


def decode_head(data: bytes) -> RequestHead:
    """Return the head in `data`, which ends in an empty line.

    Raises:
        InvalidHeadError: it is none, or not one that can be served.
    """
    first, _, fields = data.decode("latin-1").partition("\r\n")
    head = _first_line(first, data)
    try:
        return _with_fields(head, fields[:-2])
    except InvalidHeadError as refused:
        refused.method, refused.path = head.method, head.path
        raise


def _first_line(line: str, data: bytes) -> RequestHead:
    found = _FIRST.fullmatch(line)
    if found is None:
        raise InvalidHeadError("the first line is not that of an HTTP/1.1 request")
    method, target, major, minor = found.groups()
    if data.startswith(PREFACE) or major != "1" or minor not in "01":
        raise InvalidHeadError("the gateway speaks HTTP/1.1 alone", VERSION_NOT_SUPPORTED)
    if not target.startswith("/") or "#" in target:
        if target == "*" and method == "OPTIONS":  # RFC 9112 section 3.2.4
            return RequestHead(method, target, "", [])
        # A proxy is asked with a whole URL, or by CONNECT; this is none, and the host in it would have to be believed.
        raise InvalidHeadError("the request's target must be a path", method=method)
    path, _, query = target.partition("?")
    return RequestHead(method, path, query, [], plain=minor == "0")


def _with_fields(head: RequestHead, block: str) -> RequestHead:
    if not FIELDS.fullmatch(block):
        raise InvalidHeadError(_field_problem(block))
    lines = block.split("\r\n")
    lines.pop()
    if len(lines) > HEAD_FIELDS:
        raise InvalidHeadError(f"the request has more than {HEAD_FIELDS} header fields", FIELDS_TOO_LARGE)
    headers = head.headers
    for line in lines:
        name, _, value = line.partition(":")
        headers.append((name.lower(), value.strip(_BLANKS)))
    names = [name for name, _ in headers]
    head.length = _body_length(head, names)
    head.close = head.plain or ("connection" in names and "close" in _words(head, "connection"))
    if "expect" in names:
        head.waits = _waits(head)
    return head


def _body_length(head: RequestHead, names: list[str]) -> int | None:
    """Return the length of the body by RFC 9112 section 6.3, where that leaves no doubt."""
    codings = "transfer-encoding" in names
    lengths = names.count("content-length")
    if codings:
        if lengths:
            raise InvalidHeadError("the request has both `content-length` and `transfer-encoding`")
        if head.plain:
            raise InvalidHeadError("a request of HTTP/1.0 has no `transfer-encoding`")
        if [value.lower() for value in _values(head, "transfer-encoding")] != ["chunked"]:
            raise InvalidHeadError("the only `transfer-encoding` taken is `chunked`, once")
        return None
    if not lengths:
        return 0
    value = _values(head, "content-length")[0]
    if lengths > 1 or not _LENGTH.fullmatch(value):
        raise InvalidHeadError("the request needs one valid `content-length`")
    return int(value)


def _waits(head: RequestHead) -> bool:
    if _words(head, "expect") != ["100-continue"]:
        raise InvalidHeadError("the only `expect` known is `100-continue`", EXPECTATION_FAILED)
    return not head.plain and head.length != 0


def _values(head: RequestHead, name: str) -> list[str]:
    return [value for field, value in head.headers if field == name]


def _words(head: RequestHead, name: str) -> list[str]:
    """Return the members of a list, in lower case."""
    return [word.strip(_BLANKS).lower() for value in _values(head, name) for word in value.split(",")]


def _field_problem(block: str) -> str:
    """Return what is wrong with the first invalid field."""
    for line in block.split("\r\n"):
        if line.startswith((" ", "\t")):
            return "a header field is folded over two lines"
        if "\r" in line or "\n" in line or "\0" in line:
            return "a header field holds CR, LF or NUL"
        if not FIELDS.fullmatch(f"{line}\r\n"):
            return "a line of the request's head is not a lawful header field"
    return "the request's head is malformed"
