"""HTTP/1.1 framing for clients, without I/O: requests to bytes, bytes to responses (RFC 9112)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import httptools
import msgspec

from xenoglot.backends.http.timeouts import TransportError
from xenoglot.http1.syntax import CONNECTION_FIELDS, NOT_IN_VALUES, TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.http.timeouts import Kind, TransportLimits

INTERIM_HEADS = 16
"""1xx responses that may come before the one that counts; real servers send one or two."""

URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>(?:[\w-]{1,63}\.)*[\w-]{1,63}\.?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>(?:[/?][!-\"$-~]*)?)",  # RFC 9112 section 3.2: visible ASCII, and no fragment
    re.ASCII | re.IGNORECASE,
)
METHODS = {"GET": False, "HEAD": False, "OPTIONS": False, "POST": True, "PUT": True, "PATCH": True, "DELETE": True}
"""Allowed methods, and whether an empty body is sent with its length (RFC 9110 section 8.6)."""
VERSIONS = ("1.1", "1.0")
DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin(msgspec.Struct, frozen=True, cache_hash=True):
    """Where a connection leads: what requests must share to share one."""

    scheme: str
    host: str
    """Without the brackets of an IPv6 literal."""
    port: int
    socket_path: str | None = None


class RequestURL(msgspec.Struct, frozen=True):
    """A URL in the parts a request is made of. `target` is its path and query, to the byte."""

    origin: Origin
    authority: str
    """The value of the `host` field."""
    target: str


def invalid(problem: str) -> TransportError:
    """The request was never sent, for it cannot be written as HTTP."""
    return TransportError("protocol", "request", problem, sent=False)


@lru_cache(maxsize=256)
def locate(url: str, socket_path: str | None = None) -> RequestURL:
    """Read an absolute http or https URL. Raises `TransportError`, without quoting it."""
    found = URL.fullmatch(url)
    if found is None:
        raise invalid("the URL is not http(s)://host[:port]/path in visible ASCII, without credentials and fragment")
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 1 << 16:
        raise invalid("the URL's port is not between 1 and 65535")
    authority = host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
    target = found["target"]
    return RequestURL(
        origin=Origin(scheme, host.strip("[]"), port, socket_path),
        authority=authority,
        target=target if target.startswith("/") else "/" + target,
    )


class HTTPRequest(msgspec.Struct, frozen=True, gc=False):
    """A request as it is written, and where to."""

    method: str
    origin: Origin
    head: bytes
    body: bytes


class PreparedRequest(msgspec.Struct, frozen=True):
    """All of a request that does not depend on its body: for one request as for many that differ in nothing else."""

    method: str
    origin: Origin
    start: bytes
    """The head, but for the length and the empty line."""

    def request(self, body: bytes = b"") -> HTTPRequest:
        """The request with this body."""
        if body or METHODS[self.method]:
            head = b"%bcontent-length: %d\r\n\r\n" % (self.start, len(body))
        else:
            head = self.start + b"\r\n"
        return HTTPRequest(self.method, self.origin, head, body)

    def streamed(self, first: bytes, length: int | None) -> HTTPRequest:
        """The request with a body that begins with `first`; with a `length` of `None` it is sent in chunks."""
        if length is not None:
            return HTTPRequest(self.method, self.origin, b"%bcontent-length: %d\r\n\r\n" % (self.start, length), first)
        head = self.start + b"transfer-encoding: chunked\r\n\r\n"
        return HTTPRequest(self.method, self.origin, head, chunk(first))

    def with_fields(self, fields: Sequence[tuple[str, str]]) -> PreparedRequest:
        """The same with further `fields`, whose names and values are known to be valid."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
        return PreparedRequest(self.method, self.origin, self.start + lines.encode("latin-1"))


def chunk(data: bytes) -> bytes:
    """Return `data` as a chunk of a body (RFC 9112 section 7.1). No data is no chunk: an empty one is the last."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"


def prepare(
    method: str, url: str, headers: Sequence[tuple[str, str]], socket_path: str | None = None
) -> PreparedRequest:
    """Check and write what can be before there is a body. Raises `TransportError` for what HTTP cannot express."""
    location = locate(url, socket_path)
    if method not in METHODS:
        raise invalid("the method is none of " + ", ".join(METHODS))
    coding = accepted_coding(tuple([name for name, _ in headers]))
    if NOT_IN_VALUES.search("".join([value for _, value in headers])):
        name = next(name for name, value in headers if NOT_IN_VALUES.search(value))
        raise invalid(f"the value of the header field `{name}` has characters that header fields cannot have")
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers])
    start = f"{method} {location.target} HTTP/1.1\r\nhost: {location.authority}\r\n{fields}{coding}"
    return PreparedRequest(method, location.origin, start.encode("latin-1"))


@lru_cache(maxsize=256)
def accepted_coding(names: tuple[str, ...]) -> str:
    """Check the names of header fields; returns the field that declines codings, unless the caller has his own."""
    for name in names:
        if TOKEN.fullmatch(name) is None:
            shown = re.sub(r"[^!-~]", "?", name)[:64]
            raise invalid(f"`{shown}` is not a name that a header field can have")
        if name.lower() in CONNECTION_FIELDS:
            raise invalid(f"the header field `{name}` is the transport's own")
    return "" if "accept-encoding" in [name.lower() for name in names] else "accept-encoding: identity\r\n"


class ResponseHead:
    """Status and header fields of a response, decoded on access, because most are never read."""

    __slots__ = ("_fields", "_headers", "_named", "status")

    def __init__(self, status: int, fields: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self._fields = fields
        self._named = {name.lower(): value for name, value in fields}
        self._headers: tuple[tuple[str, str], ...] | None = None

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """In their order; names in lower case, values as latin-1."""
        if self._headers is None:
            self._headers = tuple([(name.lower().decode("ascii"), text(value)) for name, value in self._fields])
        return self._headers

    def values(self, name: bytes) -> Sequence[str]:
        """The values of the fields of this lower-case name."""
        if name not in self._named:
            return ()
        return [text(value) for named, value in self._fields if named.lower() == name]

    def first(self, name: bytes) -> str | None:
        """The first value of the field of this lower-case name."""
        if name not in self._named:
            return None
        return text(self._named[name]) if len(self._named) == len(self._fields) else self.values(name)[0]

    def has(self, name: bytes) -> bool:
        """Whether there is a field of this lower-case name."""
        return name in self._named

    def with_prefix(self, prefix: bytes) -> dict[str, str]:
        """The fields whose lower-case names begin so, the last of each name."""
        if prefix not in b"\n".join(self._named):  # most often there is none
            return {}
        named = self._named.items()
        return {name.decode("ascii"): text(value) for name, value in named if name.startswith(prefix)}


def text(value: bytes) -> str:
    """A field's value; llhttp has stripped the space before it, but not the space after it (RFC 9110 section 5.5)."""
    return value.rstrip(b"\t ").decode("latin-1")


class ResponseParser:
    """The responses of one connection, one after another.

    `begin` before each request; `feed` what was read and take the body bytes it held; then look at `head` (`None`
    until it is whole), `complete` and `error`. What follows a complete response is not read, but then the connection
    is no longer `reusable`. The `on_` methods are what httptools calls; its llhttp refuses the malformed, and here is
    refused what it leaves to its user.
    """

    def __init__(self, limits: TransportLimits) -> None:
        self._limits = limits
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        """Takes body bytes, those that follow the end as well."""
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data
        self.begin("")

    def begin(self, method: str) -> None:
        """Expect the response to a request of this method."""
        self._bodiless = method == "HEAD"
        self._pieces.clear()
        self._end: int | None = None
        self._fields: list[tuple[bytes, bytes]] = []
        self._first_field = 0
        self._head_fields = 0
        self._interim_heads = 0
        self._fed_bytes = 0
        self._silent_bytes = 0
        self._until_end = False
        self.head: ResponseHead | None = None
        self.complete = False
        self.reusable = False
        self.error: TransportError | None = None

    def feed(self, data: bytes | memoryview) -> bytes:
        """Read on; returns the body bytes among them, chunk framing removed."""
        headless = self.head is None
        if headless:
            self._fed_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserUpgrade:
            self._fail("the upstream changes the protocol unasked")
        except httptools.HttpParserError:
            self._fail("the response is not well-formed HTTP/1.1")
        pieces = self._pieces
        if self._end is not None:  # what follows is no body of this response
            del pieces[self._end :]
            self._end = 0
        if pieces:
            self._silent_bytes = 0
            if len(pieces) == 1:
                return pieces.pop()
            body = b"".join(pieces)
            pieces.clear()
            return body
        self._silent_bytes = 0 if headless and self.head is not None else self._silent_bytes + len(data)
        if self._silent_bytes > 2 * self._limits.head_bytes:  # whole fields are weighed; this may be one without end
            self._fail("the response has too much between its parts", "too_large")
        return b""

    def end(self) -> None:
        """The upstream sends no more: the end of a body without a length (RFC 9112 section 6.3), or an error."""
        if self._until_end and self.error is None:
            self.complete = True
        else:
            self._fail("the upstream closed the connection before the end of its response", "closed")

    def close(self) -> None:
        """Read nothing any more. The parser of httptools and this one hold each other: that ends here."""
        del self._parser, self._feed

    def on_message_begin(self) -> None:
        """A response begins; without a request, the connection cannot be reused."""
        self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of a head, or after it of a trailer."""
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """A head is whole: the one that counts, or a 1xx before it."""
        if self.head is not None or self.error is not None:
            return
        status = self._parser.get_status_code()
        version = self._parser.get_http_version()
        head = ResponseHead(status, self._fields[self._first_field :])
        codings = head.values(b"transfer-encoding")
        if not 100 <= status < 600 or version not in VERSIONS:  # noqa: PLR2004 - RFC 9110 section 15
            self._fail("the response's status line is not that of HTTP/1.0 or HTTP/1.1")
        elif codings and (version == "1.0" or [coding.lower() for coding in codings] != ["chunked"]):
            self._fail("the response has a transfer coding other than chunked, or one in HTTP/1.0")
        elif self._weigh() and status >= 200:  # noqa: PLR2004 - RFC 9110 section 15.2
            self._until_end = not codings and not head.has(b"content-length")
            self._head_fields = len(self._fields)
            self.head = head
            if self._bodiless:
                self.complete = True
                self._end = len(self._pieces)

    def on_message_complete(self) -> None:
        """The end of a response, or of a 1xx."""
        if self.error is not None or self.complete:
            return
        if self.head is not None:
            self.complete = len(self._fields) == self._head_fields or self._weigh()
            self._end = len(self._pieces)
            self.reusable = self.complete and self._parser.should_keep_alive()
            return
        self._first_field = len(self._fields)
        self._interim_heads += 1
        if self._interim_heads > INTERIM_HEADS:
            self._fail("the upstream sends one interim response after another", "too_large")

    def _weigh(self) -> bool:
        """Whether the fields so far are within the limits. Those of a head are, as long as all that was fed is."""
        limits = self._limits
        large = self.head is not None or self._fed_bytes > limits.head_bytes
        if large and sum(len(name) + len(value) for name, value in self._fields) > limits.head_bytes:
            self._fail("the header fields of the response are too large", "too_large")
        if len(self._fields) > limits.header_count:
            self._fail("the response has too many header fields", "too_large")
        return self.error is None

    def _fail(self, problem: str, kind: Kind = "protocol") -> None:
        """Note the first error; one after the end of the response is no longer the response's."""
        self.reusable = False
        if not self.complete and self.error is None:
            self.error = TransportError(kind, "body" if self.head else "head", problem)
            self._end = len(self._pieces)
