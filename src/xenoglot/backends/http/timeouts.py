"""Deadlines and size limits of upstream requests, and `TransportError`."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["connect", "tls", "timeout", "protocol", "closed", "too_large", "exhausted", "credentials"]
Stage = Literal["request", "connect", "head", "body"]

MEBIBYTE = 1024 * 1024


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits of one attempt, in seconds; `None` is no limit.

    Args:
        connect: For name lookup, TCP and TLS. Default: `5.0`.
        first_byte: From the first byte of the request to the end of the response's head. Default: `600.0`.
        idle: Between two pieces of the body, not counting the time in which the caller does not read. Default: `300.0`.
        total: For everything, up to the last byte of the body. Default: `3600.0`.

    Example:
        >>> import xenoglot
        >>> limits = xenoglot.Deadlines(connect=2, total=60)
        >>> client = xenoglot.Client("http://localhost:8000/v1", model="m", deadlines=limits)
    """

    connect: float | None = 5.0
    first_byte: float | None = 600.0
    idle: float | None = 300.0
    total: float | None = 3600.0


class TransportLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much to take from an upstream, and how many connections to keep."""

    head_bytes: int = 65_536
    """Names and values of one response's header fields, trailers included."""
    header_count: int = 256
    body_bytes: int = 128 * MEBIBYTE
    """A body read whole, after decoding. A body that is iterated has no such end: its reader decides."""
    decoded_bytes: int = 256 * MEBIBYTE
    """What one compressed body may grow to ..."""
    decoded_ratio: int = 100
    """... and how many times its compressed size, once it is larger than a mebibyte."""
    idle_connections: int = 64
    """Kept open per origin for the next request; the oldest goes first."""
    idle_seconds: float = 30.0
    connection_seconds: float = 300.0
    """A connection of this age carries no further request: the name is looked up again."""


class TransportError(Exception):
    """There is no response, or not the whole of it.

    `kind` is the kind of failure, `stage` the stage that failed, `sent` whether bytes of the request may have reached
    the upstream: while it is false, sending the request again is safe. The text never holds a host, a path or the value
    of a header field; that of `credentials`, a sign-in that failed, is for operators alone.
    """

    def __init__(self, kind: Kind, stage: Stage, problem: str, *, sent: bool = True) -> None:
        super().__init__(problem)
        self.kind: Kind = kind
        self.stage: Stage = stage
        self.sent = sent

    def copy(self) -> TransportError:
        """A copy to raise: an error that is kept must not be raised, or it would keep its traceback."""
        error = TransportError(self.kind, self.stage, str(self), sent=self.sent)
        error.__cause__ = self.__cause__
        return error
