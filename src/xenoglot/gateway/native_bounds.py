"""What a client's connection may cost: how many there are, how large and how slow each may be."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]

HEAD_BYTES: Final = 64 * 1024
"""The longest head of a request, its first line and all fields."""

HEAD_FIELDS: Final = 256
"""The most fields it may have. Real clients send about twenty."""

LENGTH_DIGITS: Final = 18
"""The most digits of a body's length."""

CHUNK_LINE: Final = 256
"""The longest line before a chunk: its size in hexadecimal, and extensions, which nobody needs."""

CHUNK_EXCESS: Final = 16 * 1024
"""The most framing a chunked body may have beyond what chunks as small as 16 bytes would need."""

TRAILER_BYTES: Final = 8 * 1024
"""The longest trailer behind a chunked body; it is read and forgotten."""

HIGH_WATER: Final = 64 * 1024
"""Bytes of a body that nobody has asked for yet, or of requests behind the one being served, before reading stops."""

LINGER_BYTES: Final = 64 * 1024 * 1024
LINGER_SECONDS: Final = 2.0
"""How much of a body that nobody wants is still read, so that its sender gets to see why."""

SLOW_SECONDS: Final = 1.0
SLOW_BYTES: Final = 16 * 1024
"""A body is slow that has not brought so many bytes for so long. It goes where places run out, or the gateway stops."""

OVERFLOW: Final = 64
"""Connections beyond the most that are still taken, to be told to come again, or that we are alive."""


class Connections(Struct, frozen=True, kw_only=True):
    """How many clients may be connected at once, and how slow each may be.

    Of more than `most` connections, those that have waited longest without a request are closed, then those whose
    request's body is slow. A request's head has
    `head_seconds` from its first byte, its body must bring `body_rate` bytes a second and has `body_seconds` in all. A
    connection without a request is closed after `idle_seconds`; one whose client takes less than a kibibyte of what it
    is sent in `stall_seconds` is broken off.
    """

    most: Annotated[int, Meta(ge=1)] = 4096
    head_seconds: Seconds = 20.0
    body_seconds: Seconds = 600.0
    body_rate: Annotated[int, Meta(ge=0)] = 512
    idle_seconds: Seconds = 75.0
    stall_seconds: Seconds = 60.0
