"""Settings of the ledger of requests, and prices of the operator."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from xenoglot.gateway.config.schema import join, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config.schema import Problems

Amount: TypeAlias = float | int | str
"""A decimal number; text has no rounding at all."""

_CURRENCY = re.compile(r"[A-Z]{3}")
AMOUNTS = ("input", "output", "cache_read", "cache_write", "searches")


class LedgerSettings(Struct, frozen=True, kw_only=True):
    """A row for each request and hourly sums, in the store of `[store]`.

    `on_outage` is what happens to requests while rows cannot be written: they are answered all the same, and rows are
    dropped once `queue` of them wait; or they are refused from the first write that fails. Requests are deleted after
    `max_age_days`, sums after `usage_max_age_days`.
    """

    enabled: bool = True
    on_outage: Literal["ignore", "refuse"] = "ignore"
    queue: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    max_age_days: Annotated[float, Meta(gt=0, le=36_500)] = 90.0
    usage_max_age_days: Annotated[float, Meta(gt=0, le=36_500)] = 1100.0


class PriceSettings(Struct, frozen=True, kw_only=True):
    """Prices of a million tokens of the models that `model` matches, at one `upstream` or at all.

    Cached tokens without a price of their own cost as much as others; `searches` is the price of a thousand.
    """

    model: str
    input: Amount
    output: Amount
    upstream: str | None = None
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    searches: Amount | None = None
    currency: str = "USD"


def amount(value: Amount | None) -> Decimal | None:
    """Return a price as a decimal number; `None` if there is none, NaN for what is no number of at least 0."""
    if value is None:
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return Decimal("NaN")
    return number if number.is_finite() and number >= 0 else Decimal("NaN")


def check_prices(prices: Sequence[PriceSettings], upstreams: Sequence[str], problems: Problems) -> None:
    """Note what is wrong with the prices of the operator."""
    for index, price in enumerate(prices):
        path = f"prices[{index}]"
        for name in AMOUNTS:
            value = getattr(price, name)
            if (number := amount(value)) is not None and number.is_nan():
                problems.add(join(path, name), f"found {shown(value)}; expected a number of at least 0")
        if _CURRENCY.fullmatch(price.currency) is None:
            problems.add(join(path, "currency"), f"found {shown(price.currency)}; expected a code like USD (ISO 4217)")
        if price.upstream is not None and price.upstream not in upstreams:
            problems.add(
                join(path, "upstream"), f"found {shown(price.upstream)}; expected one of {', '.join(upstreams)}"
            )
