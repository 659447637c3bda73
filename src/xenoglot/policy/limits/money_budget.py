"""Money budgets: periods of a calendar, and whether a request fits into all budgets that concern it. Pure.

Amounts are integer micro-units of one currency. What a request may cost is reserved before it is sent, and replaced by
what it did cost afterwards. Use is kept in buckets: a calendar period is one bucket, a rolling window has one for each
hour, so what was spent in it comes free by the hour, late by less than one, and never early.

Times are Unix seconds and arguments. Calendar periods begin at midnight of the budget's time zone, weeks on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

from msgspec import Struct

from xenoglot.codec.glob import matches

CALENDAR: Final = ("day", "week", "month", "total")
HOUR: Final = 3600
MOST_HOURS: Final = 366 * 24
EXPECTED_PERIOD: Final = "expected `day`, `week`, `month`, `total`, or `rolling:30d` (h, d; up to 366d)"

SCOPES: Final = ("all", "tenant:NAME", "key:ID", "model:NAME", "upstream:NAME")
UPSTREAM: Final = "upstream"

REFUSE: Final = "refuse"
WARN: Final = "warn"
ROUTE: Final = "route:"

ID_DIGITS: Final = 12
_ROLLING: Final = re.compile(r"rolling:([1-9][0-9]{0,4})([hd])")
_SCOPE: Final = re.compile(r"all|(?:tenant|key|model|upstream):[^\s].{0,255}")


class Budget(Struct, frozen=True, kw_only=True):
    """At most `amount` in each `period`, for what `scope` names.

    `scope` is one of `SCOPES`; the name of a model may be a pattern. `zone` is the time zone in which calendar periods
    begin. `warn_at` is a percentage of the amount. `on_exceeded` is `refuse`, `warn` or `route:MODEL`.
    """

    id: str
    scope: str
    amount: int
    currency: str = "USD"
    period: str = "month"
    zone: str = "UTC"
    warn_at: int | None = None
    on_exceeded: str = REFUSE

    @property
    def kind(self) -> str:
        """The kind of what is limited: `all`, `tenant`, `key`, `model` or `upstream`."""
        return self.scope.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of what is limited; empty for `all`."""
        return self.scope.partition(":")[2]


class PeriodBounds(NamedTuple):
    """The current period: use counts in buckets from `since`, new use goes to `bucket`.

    `ends` is when all use expires; `None` if there is no such time.
    """

    since: int
    bucket: int
    ends: int | None


class BudgetUse(NamedTuple):
    """What is spent and reserved in the current period of a budget, and requests that had no price."""

    spent: int = 0
    reserved: int = 0
    unpriced: int = 0


class BudgetClaim(NamedTuple):
    """What one request may cost of a budget, `None` if the price is unknown; that of an `upstream` if it answers."""

    budget: Budget
    amount: int | None
    upstream: str = ""


class BudgetDecision(NamedTuple):
    """Whether a request may be sent.

    `claims` are to be reserved. `exceeded` are the budgets that it does not fit into; `closed` are upstreams that it
    may not be sent to. `refused_by` is the budget that refuses it, `route` the model that is to answer instead.
    """

    claims: Sequence[BudgetClaim] = ()
    exceeded: Sequence[Budget] = ()
    closed: frozenset[str] = frozenset()
    refused_by: Budget | None = None
    route: str = ""


def budget_id(scope: str, period: str, currency: str) -> str:
    """Return the id of a budget: the same in all places where the same thing is limited in the same way."""
    return f"bud_{sha256(chr(0).join((scope, period, currency)).encode()).hexdigest()[:ID_DIGITS]}"


def is_scope(text: str) -> bool:
    """Return whether `text` is a scope."""
    return _SCOPE.fullmatch(text) is not None and text.isprintable()


def is_period(text: str) -> bool:
    """Return whether `text` is a period."""
    return text in CALENDAR or 0 < rolling_hours(text) <= MOST_HOURS


@lru_cache(maxsize=256)
def rolling_hours(period: str) -> int:
    """Return the hours of a rolling period; 0 for other periods."""
    found = _ROLLING.fullmatch(period)
    return 0 if found is None else int(found[1]) * (24 if found[2] == "d" else 1)


def period_bounds(period: str, zone: tzinfo, now: float) -> PeriodBounds:
    """Return the bounds of the period that `now` is in.

    Raises:
        ValueError: there is no such period.
    """
    if hours := rolling_hours(period):
        bucket = int(now // HOUR) * HOUR
        since = bucket - hours * HOUR  # the oldest hour counts until all of it is out of the window
        return PeriodBounds(since, bucket, None)
    if period == "total":
        return PeriodBounds(0, 0, None)
    today = datetime.fromtimestamp(now, zone).date()
    match period:
        case "day":
            first, then = today, today + timedelta(days=1)
        case "week":
            first = today - timedelta(days=today.weekday())
            then = first + timedelta(days=7)
        case "month":
            first = today.replace(day=1)
            then = (first + timedelta(days=32)).replace(day=1)
        case _:
            raise ValueError(EXPECTED_PERIOD)
    begins = _midnight(first, zone)
    return PeriodBounds(begins, begins, _midnight(then, zone))


def _midnight(day: date, zone: tzinfo) -> int:
    """Return when a day begins; where a clock change leaves out its midnight, that is the change.

    The first of two midnights begins the day (https://peps.python.org/pep-0495/).
    """
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())


def remaining(budget: Budget, use: BudgetUse) -> int:
    """Return what further requests may reserve; below 0 if a request cost more than it had reserved."""
    return budget.amount - use.spent - use.reserved


def concerns(budget: Budget, tenant: str | None, key: str | None, model: str) -> bool:
    """Return whether a budget concerns a request for `model` with a key of this id, to any upstream."""
    match budget.kind:
        case "all":
            return True
        case "tenant":
            return budget.name == tenant
        case "key":
            return budget.name == key
        case "model":
            return matches(budget.name, model)
        case _:
            return False


def decide(
    claims: Sequence[BudgetClaim], uses: Mapping[str, BudgetUse], upstreams: Sequence[str], *, rerouted: bool = False
) -> BudgetDecision:
    """Return whether a request with these `claims` may be sent to some of `upstreams`, by what is used of each budget.

    An upstream whose own budget is exceeded is left out as long as another one is left. A request that was `rerouted`
    is not rerouted again.
    """
    exceeded = [claim for claim in claims if _exceeds(claim, uses)]
    budgets = tuple(claim.budget for claim in exceeded)
    closed = frozenset(claim.upstream for claim in exceeded if claim.upstream and claim.budget.on_exceeded != WARN)
    is_open = any(name not in closed for name in upstreams)
    binding = [claim.budget for claim in exceeded if not claim.upstream or not is_open]
    refusing = next((budget for budget in binding if budget.on_exceeded == REFUSE), None)
    if refusing is not None:
        return BudgetDecision(exceeded=budgets, refused_by=refusing)
    routes = [budget.on_exceeded for budget in binding if budget.on_exceeded.startswith(ROUTE)]
    if routes and not rerouted:
        return BudgetDecision(exceeded=budgets, route=routes[0].removeprefix(ROUTE))
    if not is_open:
        closed = frozenset()
    kept = tuple(claim for claim in claims if claim.upstream not in closed)
    return BudgetDecision(kept, budgets, closed)


def _exceeds(claim: BudgetClaim, uses: Mapping[str, BudgetUse]) -> bool:
    """Return whether a claim does not fit. What costs nothing fits, an unknown price as long as anything is left."""
    left = remaining(claim.budget, uses[claim.budget.id])
    return left <= 0 if claim.amount is None else 0 < claim.amount > left
