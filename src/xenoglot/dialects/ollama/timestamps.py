"""Timestamps of the wire: RFC 3339, with up to nine digits of a second (`time.Time` of Go)."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST = 253_402_300_799
"""The last second of the year 9999, beyond which there is no such text."""


def decode_moment(text: str | None) -> int | None:
    """Return the Unix seconds of a time; `None` for one that nobody knows, which is written as the epoch."""
    try:
        read = datetime.fromisoformat(text or "")
        seconds = int((read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def encode_moment(seconds: int | None) -> str:
    """Return Unix seconds as text; the epoch stands for a time that nobody knows: clients in Go require one."""
    known = seconds if seconds is not None and 0 < seconds <= _LAST else 0
    return datetime.fromtimestamp(known, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
