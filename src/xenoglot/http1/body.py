"""The body of an HTTP/1.1 request, by its length or in chunks, without a socket. Pure (RFC 9112 sections 6 and 7)."""

from __future__ import annotations

from typing import Final, Protocol

from xenoglot.http1.syntax import CHUNK_EXCESS, CHUNK_LINE, CHUNK_SIZE, CRLF, FIELDS, TRAILER_BYTES, FramingError

SMALL_CHUNK: Final = 16
"""Bytes: chunks from this size on pay for their own framing, see `CHUNK_EXCESS`."""


class Body(Protocol):
    """A body on its way. `feed` gives the bytes of it in `data`; what does not belong to it is then in `rest`."""

    done: bool
    rest: bytes

    def feed(self, data: bytes) -> bytes:
        """Read on.

        Raises:
            FramingError: it is malformed.
        """
        ...


class FixedLengthBody:
    """A body of `left` bytes."""

    __slots__ = ("done", "left", "rest")

    def __init__(self, left: int) -> None:
        self.left = left
        self.done = left == 0
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to it."""
        size = len(data)
        if size < self.left:
            self.left -= size
            return data
        self.done = True
        piece = data if size == self.left else data[: self.left]
        self.rest = data[self.left :] if size > self.left else b""
        self.left = 0
        return piece


class ChunkedBody:
    """A body in chunks, and its trailer, which is dropped."""

    __slots__ = ("_excess", "_left", "_line", "_trailer", "done", "rest")

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._line = b""
        """The start of an incomplete line, or of the CRLF after a chunk."""
        self._left = 0
        """Bytes of the current chunk that are still to come, its CRLF included."""
        self._excess = 0
        self._trailer: int | None = None

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to it.

        Raises:
            FramingError: the chunks are malformed, or there is more framing than a sender could need.
        """
        data, self._line = self._line + data, b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and not self.done:
            at = self._read_chunk(data, at, pieces) if self._left else self._read_line(data, at)
        self.rest = data[at:] if self.done else b""
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_chunk(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        size = min(self._left - len(CRLF), len(data) - at)
        if size > 0:
            pieces.append(data[at : at + size])
            self._left -= size
            return at + size
        ending = data[at : at + self._left]
        if not CRLF.startswith(ending):
            raise FramingError("a chunk of the body is not as long as its size")
        if len(ending) < len(CRLF):
            self._line = ending
            return len(data)
        self._left = 0
        return at + len(CRLF)

    def _read_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at, at + TRAILER_BYTES)
        if end < 0:
            self._line = data[at:]
            if len(self._line) > (CHUNK_LINE if self._trailer is None else TRAILER_BYTES):
                raise FramingError("a line between the chunks of the body is too long")
            return len(data)
        line = data[at : end + 1]
        if not line.endswith(CRLF):
            raise FramingError("a line between the chunks of the body does not end in CRLF")
        if self._trailer is None:
            self._begin_chunk(line)
        else:
            self._pass_trailer(line)
        return end + 1

    def _begin_chunk(self, line: bytes) -> None:
        found = CHUNK_SIZE.fullmatch(line[: -len(CRLF)])
        if found is None or len(line) > CHUNK_LINE:
            raise FramingError("the size of a chunk of the body is malformed")
        size = int(found[1], 16)
        self._excess = max(0, self._excess + len(line) - min(size, CHUNK_EXCESS) - SMALL_CHUNK)
        if self._excess > CHUNK_EXCESS:
            raise FramingError("the body is more framing than body")
        if size:
            self._left = size + len(CRLF)
        else:
            self._trailer = 0

    def _pass_trailer(self, line: bytes) -> None:
        if line == CRLF:
            self.done = True
            return
        self._trailer = (self._trailer or 0) + len(line)
        if self._trailer > TRAILER_BYTES or not FIELDS.fullmatch(line.decode("latin-1")):
            raise FramingError("the trailer after the body is malformed or too large")


WHOLE: Final[Body] = FixedLengthBody(0)
"""A body of which all is here: nothing more is fed to it."""


def body_of(length: int | None) -> Body:
    """Return what reads a body of `length` bytes, or in chunks."""
    if length == 0:
        return WHOLE
    return ChunkedBody() if length is None else FixedLengthBody(length)
