"""Parses how long an upstream asks clients to wait, in every known form."""

from __future__ import annotations

import math
from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSON
    from xenoglot.model.limits import RateBudget, RateLimits

LONGEST = 60.0
"""Seconds: longer waits are reduced to this, because clients sleep as long as requested."""


def retry_after(
    headers: Mapping[str, str], now: float, *, said: float | None = None, limits: RateLimits | None = None
) -> float | None:
    """Return the seconds to wait, 0 to `LONGEST`; `None` if nothing sets them.

    The headers go first: `retry-after-ms`, then `retry-after` (RFC 9110 section 10.2.3). Next is what the body of the
    error `said` in words that its dialect reads. Last come the allowances (`limits`) that are used up, and of several
    the one that is longest in coming back. `headers` have lower-case names, `now` is in Unix seconds. Unreadable
    values are ignored.
    """
    for seconds in (_from_header(headers, now), said, None if limits is None else _until_full(limits)):
        if seconds is not None and seconds >= 0:
            return min(seconds, LONGEST)
    return None


def headers_in(body: JSON) -> dict[str, str]:
    """Return the headers that the body of an error quotes, names in lower case.

    OpenRouter has none of its own on a 429, and puts those of its limits in `error.metadata.headers`
    (https://openrouter.ai/docs/api-reference/limits).
    """
    found = body
    for key in ("error", "metadata", "headers"):
        found = found.get(key) if isinstance(found, dict) else None
    fields = found if isinstance(found, dict) else {}
    return {name.lower(): str(value) for name, value in fields.items() if isinstance(value, str | int | float)}


def _from_header(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    return _seconds_until(value, now) if seconds is None and value else seconds


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  slow to load, and few servers say a date

    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:  # the form of `asctime`, which is UTC (RFC 9110 section 5.6.7)
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _until_full(limits: RateLimits) -> float | None:
    budgets: tuple[RateBudget | None, ...] = (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens)
    used_up = [one.reset for one in budgets if one is not None and one.remaining == 0 and one.reset is not None]
    return max(used_up, default=None)
