"""Fixed limits of requests: sizes of heads and framing."""

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
