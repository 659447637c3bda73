"""Rate limits that an upstream reported."""

from __future__ import annotations

from msgspec import Struct

from xenoglot.model.short_repr import short_repr

MOST_DIGITS = 18
"""A count with more digits than this is no count."""

LONGEST_RESET = 366 * 86_400.0
"""Seconds: a window that is longer than a year is none."""


class RateBudget(Struct, frozen=True, kw_only=True):
    """One allowance: how much there is in a window, how much is left, and in how many seconds it is whole again."""

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None

    __repr__ = short_repr


class RateLimits(Struct, frozen=True, kw_only=True):
    """The allowances of one key; `tokens` counts input and output together."""

    requests: RateBudget | None = None
    tokens: RateBudget | None = None
    input_tokens: RateBudget | None = None
    output_tokens: RateBudget | None = None

    __repr__ = short_repr
