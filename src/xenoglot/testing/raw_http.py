"""Lenient HTTP/1.1 parser for tests: splits the bytes of a connection into heads and bodies, and rejects nothing.

Malformed messages stay visible as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.http1.syntax import CRLF, HEAD_END

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
BODILESS = (204, 304)
"""Statuses without a body, whatever the header fields are (RFC 9112 section 6.3)."""


class Received(Struct, kw_only=True):
    """One request. `raw` is all of it, framing included; `at` is when it was complete (seconds, `time.monotonic`)."""

    raw: bytes
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""
    body: bytes
    at: float = 0.0
    rule: int | None = None
    """Index of the server's rule that answered it."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query string."""
        return self.target.partition("?")[2]

    @property
    def json(self) -> JSON:
        """The body, decoded; `None` if it is not JSON."""
        try:
            return decode_json(self.body)
        except WireError:
            return None

    def header(self, name: str) -> str | None:
        """The first value of the header `name` (lower case)."""
        return next((value for named, value in self.headers if named == name), None)


class Chunks:
    """Decodes a chunked body (RFC 9112 section 7.1), however its bytes are split."""

    __slots__ = ("_buffer", "_remaining", "body", "complete")

    def __init__(self) -> None:
        self.body = bytearray()
        self.complete = False
        self._buffer = bytearray()
        self._remaining: int | None = None  # bytes of the open chunk; `None` before its size

    def feed(self, data: bytes) -> None:
        """Process bytes of the body; bytes after its end are in `surplus`."""
        self._buffer += data
        while not self.complete and self._one():
            pass

    @property
    def surplus(self) -> bytes:
        """Bytes after the body."""
        return bytes(self._buffer)

    def _one(self) -> bool:
        """Process a size, a chunk or the trailer; return whether there may be more."""
        if self._remaining is None:
            return self._size()
        taken = self._buffer[: self._remaining]
        self.body += taken
        del self._buffer[: len(taken)]
        self._remaining -= len(taken)
        if self._remaining or len(self._buffer) < len(CRLF):
            return False
        del self._buffer[: len(CRLF)]
        self._remaining = None
        return True

    def _size(self) -> bool:
        at = self._buffer.find(CRLF)
        if at < 0:
            return False
        said = bytes(self._buffer[:at]).partition(b";")[0].strip()
        if _CHUNK_SIZE.fullmatch(said) is None:  # not a chunk: all that follows is left in `rest`
            return False
        if size := int(said, 16):
            del self._buffer[: at + len(CRLF)]
            self._remaining = size
            return True
        end = at + len(CRLF) if self._buffer.startswith(CRLF, at + len(CRLF)) else self._buffer.find(HEAD_END)
        if end < 0:
            return False
        del self._buffer[: self._buffer.index(CRLF, end) + len(CRLF)]
        if self._buffer.startswith(CRLF):  # behind a trailer
            del self._buffer[: len(CRLF)]
        self.complete = True
        return False


class MessageReader:
    """One message of a connection: feed it bytes until it is `complete`; `surplus` belongs to the next one."""

    def __init__(self, kind: Literal["request", "response"], *, bodiless: bool = False) -> None:
        self.start = ""
        self.headers: tuple[tuple[str, str], ...] = ()
        self.interim: list[int] = []
        """The statuses of preceding 1xx heads."""
        self.headed = False
        self.complete = False
        self.raw = bytearray()
        self._kind = kind
        self._bodiless = bodiless
        self._fed = bytearray()
        self._chunks: Chunks | None = None
        self._length: int | None = None
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        """Process received bytes."""
        self.raw += data
        self._fed += data
        while not self.headed and self._head():
            pass
        if self.headed and not self.complete:
            self._read_body()

    def end(self) -> None:
        """Process FIN: it ends a response without a length."""
        endless = self.status is not None and self._chunks is None and self._length is None
        self.complete = self.complete or (self._kind == "response" and endless)

    @property
    def status(self) -> int | None:
        """The status of a response; `None` before its head, or if the head has none."""
        words = self.start.split(" ")
        return int(words[1]) if self.headed and len(words) > 1 and _is_number(words[1]) else None

    @property
    def body(self) -> bytes:
        """The body so far, chunk framing removed."""
        return bytes(self._body if self._chunks is None else self._chunks.body)

    @property
    def surplus(self) -> bytes:
        """Bytes after the end of the message."""
        return bytes(self._fed) if self._chunks is None else self._chunks.surplus

    def received(self, at: float) -> Received:
        """Return the request, as far as it arrived."""
        method, _, target = self.start.partition(" ")
        raw = bytes(self.raw[: len(self.raw) - len(self.surplus)]) if self.complete else bytes(self.raw)
        return Received(
            raw=raw, method=method, target=target.rpartition(" ")[0], headers=self.headers, body=self.body, at=at
        )

    def _head(self) -> bool:
        """Parse a head, if complete; return whether another may follow it before the body."""
        at = self._fed.find(HEAD_END)
        if at < 0:
            return False
        lines = bytes(self._fed[:at]).decode("latin-1").split("\r\n")
        del self._fed[: at + len(HEAD_END)]
        self.start = lines[0]
        self.headers = tuple(_field(line) for line in lines[1:])
        self.headed = True
        status = self.status if self._kind == "response" else None
        if status is not None and status < 200:  # noqa: PLR2004 - RFC 9110 section 15.2
            self.interim.append(status)
            self.headed = False
            return True
        self._frame(bodiless=self._bodiless or status in BODILESS)
        return False

    def _frame(self, *, bodiless: bool) -> None:
        said = dict(reversed(self.headers))
        if bodiless:
            self._length = 0
        elif "chunked" in said.get("transfer-encoding", "").lower():
            self._chunks = Chunks()
        elif _is_number(said.get("content-length", "")):
            self._length = int(said["content-length"])
        elif self._kind == "request":
            self._length = 0

    def _read_body(self) -> None:
        if self._chunks is not None:
            self._chunks.feed(bytes(self._fed))
            self._fed.clear()
            self.complete = self._chunks.complete
            return
        wanted = len(self._fed) if self._length is None else self._length - len(self._body)
        self._body += self._fed[:wanted]
        del self._fed[:wanted]
        self.complete = self._length is not None and len(self._body) == self._length


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()
