"""Usage that the streams of a dialect report only on request: how it is requested, and hidden from other clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from xenoglot.codec.loss import Losses


class UsageFilter(Protocol):
    """Takes the usage out of the bytes of a stream, split anywhere; all other bytes are unchanged and in order."""

    def feed(self, data: bytes, /) -> bytes:
        """Return what of `data`, and of what was held back, may be passed on: whole frames."""
        ...

    def close(self) -> bytes:
        """Return what is held back: a frame without its end."""
        ...


class StreamUsage(Struct, frozen=True):
    """The option of a dialect that requests usage in streams, for clients that did not set it.

    `request` returns the body of a streaming request with the option set, its other bytes unchanged. `filter` makes the
    stage that returns to the client the stream that it would have got without the option; fields that are lost with
    the usage are recorded in the given losses.
    """

    request: Callable[[bytes], bytes]
    filter: Callable[[Losses], UsageFilter]
