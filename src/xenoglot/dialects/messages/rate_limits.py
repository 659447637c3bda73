"""Encodes and decodes rate-limit headers (https://docs.claude.com/en/api/rate-limits#response-headers)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from xenoglot.model.limits import LONGEST_RESET, MOST_DIGITS, RateBudget, RateLimits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREFIX = "anthropic-ratelimit-"

BUDGETS = {
    "requests": "requests",
    "tokens": "tokens",
    "input_tokens": "input-tokens",
    "output_tokens": "output-tokens",
}
"""Field of `RateLimits` -> its word in the headers."""

_NAMES = {
    field: tuple(f"{PREFIX}{word}-{what}" for what in ("limit", "remaining", "reset"))
    for field, word in BUDGETS.items()
}


def decode_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """Return the limits in `headers` (lower-case names) at `now` (Unix seconds), or `None` if they have none."""
    budgets = {field: _decode_budget(headers, names, now) for field, names in _NAMES.items()}
    return RateLimits(**budgets) if any(budgets.values()) else None


def _decode_budget(headers: Mapping[str, str], names: Sequence[str], now: float) -> RateBudget | None:
    limit, remaining, reset = map(headers.get, names)
    if limit is remaining is reset is None:
        return None
    budget = RateBudget(limit=_count(limit), remaining=_count(remaining), reset=_seconds(reset, now))
    return None if budget.limit is budget.remaining is budget.reset is None else budget


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def _seconds(text: str | None, now: float) -> float | None:
    """Return how far the time in `text` (RFC 3339) is from `now`, not below zero."""
    seconds = _unix(text)
    return None if seconds is None or seconds - now > LONGEST_RESET else max(0.0, seconds - now)


def _unix(text: str | None) -> float | None:
    try:
        read = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()


def moment(text: str | None) -> int | None:
    """Return the Unix seconds of a time as the dialect writes it; the epoch stands for an unknown time."""
    seconds = _unix(text)
    return int(seconds) or None if seconds is not None else None


def timestamp(seconds: float) -> str:
    """Return Unix seconds as the dialect writes times (RFC 3339, in UTC, whole seconds)."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def encode_limits(limits: RateLimits, now: float) -> list[tuple[str, str]]:
    """Return the headers for `limits` at `now` (Unix seconds)."""
    headers = []
    for field, word in BUDGETS.items():
        budget: RateBudget | None = getattr(limits, field)
        if budget is None:
            continue
        if budget.limit is not None:
            headers.append((f"{PREFIX}{word}-limit", str(budget.limit)))
        if budget.remaining is not None:
            headers.append((f"{PREFIX}{word}-remaining", str(budget.remaining)))
        if budget.reset is not None:
            headers.append((f"{PREFIX}{word}-reset", timestamp(now + budget.reset)))
    return headers
