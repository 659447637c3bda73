"""Content codings: incremental, bounded decoding of gzip and deflate bodies (RFC 9110 section 8.4)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from xenoglot.backends.http.timeouts import MEBIBYTE, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.backends.http.timeouts import TransportLimits

PIECE = MEBIBYTE
"""The most that one call decodes, in bytes; and what a body may grow to before its ratio is judged."""

GZIP, ZLIB, RAW = 31, 15, -15  # `wbits`, https://docs.python.org/3/library/zlib.html#zlib.decompress


class Inflater:
    """Decodes one body. What a read's compressed bytes hold comes out with them: a stream is not held back."""

    __slots__ = ("_decoded", "_inflate", "_limits", "_received", "_unused", "pending")

    def __init__(self, limits: TransportLimits, *, gzip: bool) -> None:
        self._limits = limits
        self._inflate = zlib.decompressobj(GZIP) if gzip else None
        self._unused = b""
        self._received = 0
        self._decoded = 0
        self.pending = False
        """More is to come of what was fed: call `feed` again, with nothing."""

    def feed(self, data: bytes) -> bytes:
        """The next piece, of at most `PIECE` bytes. Raises `TransportError` for data that is broken or a bomb."""
        self._received += len(data)
        data = self._unused + data
        inflate = self._inflate or self._choose(data)
        if inflate is None:
            self._unused = data
            return b""
        try:
            piece = inflate.decompress(data, PIECE)
        except zlib.error:
            raise TransportError("protocol", "body", "the compressed body is malformed") from None
        if inflate.unused_data:
            raise TransportError("protocol", "body", "the compressed body is followed by other data")
        self._unused = inflate.unconsumed_tail
        self.pending = len(piece) == PIECE
        self._decoded += len(piece)
        self._judge()
        return piece

    def close(self) -> None:
        """Raise `TransportError` if the body is cut. No body at all is whole, whatever its head promised."""
        if self._received and not (self._inflate and self._inflate.eof):
            raise TransportError("protocol", "body", "the compressed body ends early")

    def _choose(self, data: bytes) -> zlib._Decompress | None:
        """`deflate` may also be bare deflate data: the zlib header distinguishes them (RFC 1950 section 2.2)."""
        if len(data) < 2:  # noqa: PLR2004 - the header's length
            return None
        headed = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
        self._inflate = zlib.decompressobj(ZLIB if headed else RAW)
        return self._inflate

    def _judge(self) -> None:
        limits = self._limits
        bomb = self._decoded > PIECE and self._decoded > limits.decoded_ratio * self._received
        if bomb or self._decoded > limits.decoded_bytes:
            raise TransportError("too_large", "body", "the compressed body grows beyond its limit")


def inflater(codings: Iterable[str], limits: TransportLimits) -> Inflater | None:
    """What decodes a body of these `content-encoding` values; `None` for a body that is as it is."""
    applied = [
        coding for item in ",".join(codings).split(",") if (coding := item.strip().lower()) not in ("", "identity")
    ]
    match applied:
        case []:
            return None
        case ["gzip" | "x-gzip"]:
            return Inflater(limits, gzip=True)
        case ["deflate"]:
            return Inflater(limits, gzip=False)
        case _:
            raise TransportError("protocol", "head", "the body has a content coding other than gzip or deflate")
