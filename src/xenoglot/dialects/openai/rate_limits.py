"""Rate-limit headers (https://developers.openai.com/api/docs/guides/rate-limits#rate-limits-in-headers).

A reset is a duration like `1s`, `6m0s` or `17ms`; some servers write plain seconds, or a moment in Unix seconds or
milliseconds.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from xenoglot.model.limits import LONGEST_RESET, MOST_DIGITS, RateBudget, RateLimits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "x-ratelimit-"
_REQUESTS, _UNNAMED, _TOKENS = (
    tuple(f"{PREFIX}{what}{of}" for what in ("limit", "remaining", "reset")) for of in ("-requests", "", "-tokens")
)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|us|µs|ns|[dhms]))+")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|[dhms])")
_MOMENT = 1e9
"""A plain number above this is a moment, not a duration: it would be 31 years."""
_MILLISECONDS = 1e11


def decode_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """Return the limits in the headers (lower-case names); `now` is in Unix seconds."""
    requests = _budget(headers, _REQUESTS, now) or _budget(headers, _UNNAMED, now)
    tokens = _budget(headers, _TOKENS, now)
    return RateLimits(requests=requests, tokens=tokens) if requests or tokens else None


def encode_limits(limits: RateLimits, now: float) -> list[tuple[str, str]]:  # noqa: ARG001  resets are durations here
    """Return the headers for a client; of input and output tokens that which runs out first stands for both."""
    scarce = [budget for budget in (limits.input_tokens, limits.output_tokens) if budget is not None]
    tokens = limits.tokens or min(scarce, key=_remaining, default=None)
    return [*_headers("requests", limits.requests), *_headers("tokens", tokens)]


def _budget(headers: Mapping[str, str], names: Sequence[str], now: float) -> RateBudget | None:
    limit, remaining, reset = map(headers.get, names)
    if limit is remaining is reset is None:
        return None
    budget = RateBudget(limit=_count(limit), remaining=_count(remaining), reset=_seconds(reset or "", now))
    return None if budget.limit is budget.remaining is budget.reset is None else budget


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def _seconds(text: str, now: float) -> float | None:
    seconds = _duration_or_moment(text, now)
    return seconds if seconds is not None and seconds <= LONGEST_RESET else None


def _duration_or_moment(text: str, now: float) -> float | None:
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or number < 0:
        return None
    if number < _MOMENT:
        return number
    return max(0.0, (number / 1000 if number > _MILLISECONDS else number) - now)


def _remaining(budget: RateBudget) -> float:
    return math.inf if budget.remaining is None else budget.remaining


def _headers(name: str, budget: RateBudget | None) -> Iterator[tuple[str, str]]:
    if budget is None:
        return
    if budget.limit is not None:
        yield f"{PREFIX}limit-{name}", str(budget.limit)
    if budget.remaining is not None:
        yield f"{PREFIX}remaining-{name}", str(budget.remaining)
    if budget.reset is not None:
        yield f"{PREFIX}reset-{name}", _duration(budget.reset)


def _duration(seconds: float) -> str:
    """Return a duration as Go writes it, to the millisecond: `1h2m3.5s`, `17ms`."""
    milliseconds = max(0, math.ceil(seconds * 1000))
    if 0 < milliseconds < 1000:  # noqa: PLR2004  one second
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{text}{rest / 1000:g}s"
