"""Rates: the prices of a model in integers, so that the cost of a request is a few multiplications, and exact.

A price in a currency for a million tokens is the price of one token in micro-units (millionths of the currency). Rates
are kept in millionths of these, so that prices with six decimals have no rounding; each request is rounded once.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.response import Usage

SCALE: Final = 1_000_000
OWN: Final = "own"
"""Source of prices that the operator set."""
_THOUSAND: Final = 1000


class Rates(Struct, frozen=True, kw_only=True):
    """Prices of a token each, of a search, in millionths of a micro-unit; `None` costs as much as other tokens.

    Cached tokens and audio are parts of the input, audio of the output, as in `Usage`. `source` is where the prices are
    from. Input or output without a price costs nothing. `above` are the rates that apply instead where the whole input
    has more than so many tokens, the largest number first.
    """

    input: int | None
    output: int | None
    cache_read: int | None = None
    cache_write: int | None = None
    audio_in: int | None = None
    audio_out: int | None = None
    searches: int | None = None
    currency: str = "USD"
    source: str = OWN
    above: tuple[tuple[int, Rates], ...] = ()

    def cost(self, counts: Mapping[str, int | None]) -> int | None:
        """Return the cost in micro-units; `None` if counts are missing or contradict each other.

        Keys are `input`, `output`, `cache_read`, `cache_write`, `audio_in`, `audio_out`, `searches`, `extra_input` and
        `extra_output`.
        """
        given, made = counts["input"], counts["output"]
        if (given is None and self.input is not None) or (made is None and self.output is not None):
            return None
        rest_in, rest_out = given or 0, made or 0
        for tokens, rates in self.above:
            if rest_in > tokens:
                return rates.cost(counts)
        total = (counts["searches"] or 0) * (self.searches or 0)
        for name in ("cache_read", "cache_write", "audio_in"):
            rate, count = getattr(self, name), counts[name]
            if rate is not None and count:
                total += count * rate
                rest_in -= count
        if self.audio_out is not None and counts["audio_out"]:
            total += counts["audio_out"] * self.audio_out
            rest_out -= counts["audio_out"]
        if rest_in < 0 or rest_out < 0:
            return None
        total += (rest_in + (counts["extra_input"] or 0)) * (self.input or 0)
        total += (rest_out + (counts["extra_output"] or 0)) * (self.output or 0)
        return (total + SCALE // 2) // SCALE

    def text_cost(self, usage: Usage) -> int | None:
        """Return the same cost for nearly all usage; `None` for usage that is unusual, or has no cost.

        Usual are text, read from a cache or not, and rates that are the same for every size of the input.
        """
        given, made = usage.input_tokens, usage.output_tokens
        if given is None or made is None or usage.extra is not None or self.above:
            return None
        if usage.cache_write or usage.input_audio or usage.output_audio or usage.web_searches:
            return None
        total = given * (self.input or 0) + made * (self.output or 0)
        if (cached := usage.cache_read) and (rate := self.cache_read) is not None:
            if cached > given:
                return None
            total += cached * (rate - (self.input or 0))
        return (total + SCALE // 2) // SCALE


def per_token(price: Decimal | None) -> int | None:
    """Return the rate of a token from the price of a million."""
    return None if price is None else round(price * SCALE)


def per_search(price: Decimal | None) -> int | None:
    """Return the rate of a search from the price of a thousand."""
    return None if price is None else round(price * SCALE * _THOUSAND)


def micro_units(amount: float) -> int:
    """Return an amount of a currency in micro-units, rounded half up."""
    return int((Decimal(repr(amount)) * SCALE + Decimal("0.5")).to_integral_value(rounding="ROUND_FLOOR"))
