"""Fixed limits of one connection: what is buffered, how slow a body may be."""

from __future__ import annotations

from typing import Final

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
