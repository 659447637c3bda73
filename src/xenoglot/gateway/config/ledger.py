"""Settings of the ledger of requests, prices of the operator, and money budgets."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from xenoglot.codec.glob import matches
from xenoglot.gateway.config.schema import join, shown
from xenoglot.policy.limits.money_budget import (
    EXPECTED_PERIOD,
    REFUSE,
    ROUTE,
    SCOPES,
    WARN,
    Budget,
    budget_id,
    is_period,
    is_scope,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.gateway.config.schema import Problems
    from xenoglot.gateway.config.settings import ModelSettings

Amount: TypeAlias = float | int | str
"""A decimal number; text has no rounding at all."""

CURRENCY = re.compile(r"[A-Z]{3}")
AMOUNTS = ("input", "output", "cache_read", "cache_write", "searches")

MICRO = Decimal(1_000_000)
PERCENT = 100
MOST = 2**62
"""Micro-units; a sum of several stays within the integers of databases."""


class LedgerSettings(Struct, frozen=True, kw_only=True):
    """A row for each request and hourly sums, in the store of `[store]`.

    `on_outage` is what happens to requests while rows cannot be written: they are answered all the same, and rows are
    dropped once `queue` of them wait; or they are refused from the first write that fails. Requests are deleted after
    `max_age_days`, sums after `usage_max_age_days`. `unpriced` is what happens to requests without a known price that
    a budget concerns: they are sent and counted, or refused.
    """

    enabled: bool = True
    on_outage: Literal["ignore", "refuse"] = "ignore"
    unpriced: Literal["allow", "refuse"] = "allow"
    queue: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    max_age_days: Annotated[float, Meta(gt=0, le=36_500)] = 90.0
    usage_max_age_days: Annotated[float, Meta(gt=0, le=36_500)] = 1100.0


class CaptureSettings(Struct, frozen=True, kw_only=True):
    """Which requests are captured with their bodies, how much of each body, and for how long.

    A request is captured if its tenant, its key (id or name) and its model are among those that are set, and then by
    chance with the probability `share`. `fields` are names of JSON fields whose values are redacted.
    """

    enabled: bool = True
    tenants: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    share: Annotated[float, Meta(gt=0, le=1)] | None = None
    fields: tuple[str, ...] = ()
    max_bytes: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] = 65_536
    max_age_hours: Annotated[float, Meta(gt=0, le=8_784)] = 24.0


def check_capture(capture: CaptureSettings | None, *, recorded: bool, problems: Problems) -> None:
    """Note a capture without a ledger, and one of all requests that is not set expressly."""
    if capture is None or not capture.enabled:
        return
    if not recorded:
        problems.add("capture", "needs the table [ledger]")
    if not (capture.tenants or capture.keys or capture.models or capture.share):
        problems.add("capture", "set `tenants`, `keys`, `models` or `share`; `share = 1.0` captures every request")


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
        if CURRENCY.fullmatch(price.currency) is None:
            problems.add(join(path, "currency"), f"found {shown(price.currency)}; expected a code like USD (ISO 4217)")
        if price.upstream is not None and price.upstream not in upstreams:
            problems.add(
                join(path, "upstream"), f"found {shown(price.upstream)}; expected one of {', '.join(upstreams)}"
            )


class BudgetSettings(Struct, frozen=True, kw_only=True):
    """At most `amount` of a currency in each `period`, for what `scope` names.

    Calendar periods begin at midnight in the time zone `zone`. At `warn_at` percent a warning is logged. `on_exceeded`
    is what happens to a request that does not fit: `refuse`, `warn`, or `route:MODEL`, which sends it to another model.
    """

    scope: str
    amount: Amount
    currency: str = "USD"
    period: str = "month"
    zone: str = "UTC"
    warn_at: Annotated[int, Meta(ge=1, le=PERCENT)] | None = None
    on_exceeded: str = REFUSE

    def budget(self) -> Budget:
        """Return the budget that is set, whose settings are valid."""
        micro = int((amount(self.amount) or Decimal(0)) * MICRO)
        return Budget(
            id=budget_id(self.scope, self.period, self.currency),
            scope=self.scope,
            amount=micro,
            currency=self.currency,
            period=self.period,
            zone=self.zone,
            warn_at=self.warn_at,
            on_exceeded=self.on_exceeded,
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong, each with the name of the setting."""
        from xenoglot.store.ledger.budgets import zone_of  # noqa: PLC0415  most configurations have no budgets

        if not is_scope(self.scope):
            yield "scope", f"found {shown(self.scope)}; expected one of {', '.join(SCOPES)}"
        if problem := _amount_problem(self.amount):
            yield "amount", f"found {shown(self.amount)}; {problem}"
        if CURRENCY.fullmatch(self.currency) is None:
            yield "currency", f"found {shown(self.currency)}; expected a code like USD (ISO 4217)"
        if not is_period(self.period):
            yield "period", f"found {shown(self.period)}; {EXPECTED_PERIOD}"
        try:
            zone_of(self.zone)
        except ValueError as error:
            yield "zone", str(error)
        if self.warn_at is not None and not 1 <= self.warn_at <= PERCENT:
            yield "warn_at", f"found {self.warn_at}; expected a percentage from 1 to {PERCENT}"
        if self.on_exceeded == ROUTE:
            yield "on_exceeded", f"found {shown(self.on_exceeded)}; the name of a model stands after `{ROUTE}`"
        elif self.on_exceeded not in (REFUSE, WARN) and not self.on_exceeded.startswith(ROUTE):
            yield "on_exceeded", f"found {shown(self.on_exceeded)}; expected `{REFUSE}`, `{WARN}` or `{ROUTE}MODEL`"


def _amount_problem(value: Amount) -> str | None:
    number = amount(value)
    if number is None or number.is_nan() or number * MICRO > MOST:
        return "expected a number of at least 0"
    return None if number * MICRO == int(number * MICRO) else "expected at most 6 decimals"


def check_budgets(
    budgets: Sequence[BudgetSettings], models: Sequence[ModelSettings], problems: Problems, *, recorded: bool
) -> None:
    """Note what is wrong with budgets; `recorded` is whether there is a ledger."""
    if budgets and not recorded:
        problems.add("budgets", "need a `[ledger]`, which has what was spent before")
    first: dict[str, int] = {}
    for index, one in enumerate(budgets):
        path = f"budgets[{index}]"
        found = list(one.problems())
        for name, problem in found:
            problems.add(join(path, name), problem)
        route = one.on_exceeded.removeprefix(ROUTE)
        if one.on_exceeded.startswith(ROUTE) and models and not any(matches(model.name, route) for model in models):
            problems.add(join(path, "on_exceeded"), f"found {shown(one.on_exceeded)}; no model has this name")
        if not found and (before := first.setdefault(one.budget().id, index)) != index:
            problems.add(join(path, "scope"), f"has the scope, period and currency of budgets[{before}]")
