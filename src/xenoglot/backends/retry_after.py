"""How long an upstream asks us to wait, in each of the forms in which it is said."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 60.0
"""Seconds: a longer wait is cut to this, for clients sleep for whatever they are told."""


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait, 0 to `LONGEST`, by `retry-after-ms` or `retry-after` (RFC 9110 section 10.2.3).

    `headers` have lower-case names, `now` is in Unix seconds. What cannot be read says nothing.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST)
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is None and value:
        seconds = _seconds_until(value, now)
    return None if seconds is None else min(seconds, LONGEST)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
