"""Fixed limits of one connection: sizes of heads and framing, what is buffered, how slow a body may be."""

from __future__ import annotations

from typing import Final

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
