"""Intervals of a report, as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_AGO: Final = re.compile(r"([0-9]{1,6})([mhdw])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
AHEAD_EXPECTED: Final = "expected a time from now like 12h, 90d or 52w, a date like 2027-01-31, or `never`"
EXPECTED: Final = "expected a time like 30m, 24h, 7d or 4w ago, a date like 2026-11-01, or a time in Unix seconds"


def since(text: str, now: float) -> float:
    """Return the Unix time that `text` means at the time `now`: a duration ago, a date or time (UTC), or seconds.

    Raises:
        ValueError: it is none of these.
    """
    if (found := _AGO.fullmatch(text)) is not None:
        return max(0.0, now - int(found[1]) * _SECONDS[found[2]])
    if re.fullmatch(r"[0-9]{1,11}(\.[0-9]+)?", text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(EXPECTED) from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def until(text: str, now: float) -> float | None:
    """Return the Unix time that `text` means at the time `now`: a duration from now, or a date or time (UTC).

    `None` for `never`.

    Raises:
        ValueError: it is none of these, or is past.
    """
    if text == "never":
        return None
    if (found := _AGO.fullmatch(text)) is not None:
        return now + int(found[1]) * _SECONDS[found[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(AHEAD_EXPECTED) from None
    at = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if at <= now:
        raise ValueError("that time is past")
    return at
