"""Intervals of a report, as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_AGO: Final = re.compile(r"([0-9]{1,6})([mhdw])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
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
