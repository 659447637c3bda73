"""Queries of money budgets: their definitions, and what all gateways together have spent and reserved of each.

Theory of operation. One transaction applies what a process has settled and reserves for the requests that wait. It
locks the budgets in the order of their ids, so that two gateways never wait for each other, reads what is used, decides
by `policy.limits.money_budget`, and writes. The first transaction that meets a budget takes what was spent in its
period from the ledger. A write whose result was not received may have been committed: each process numbers its writes,
and one that was committed is not applied again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict

from xenoglot.codec.glob import matches
from xenoglot.policy.limits.money_budget import (
    HOUR,
    Budget,
    BudgetClaim,
    BudgetDecision,
    BudgetUse,
    PeriodBounds,
    decide,
    period_bounds,
    rolling_hours,
)
from xenoglot.store.ledger import audit
from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from datetime import tzinfo

    from xenoglot.model.json import JSON
    from xenoglot.store.ledger.audit import Change
    from xenoglot.store.queries import Steps, Value

DEFINITION: Final = ("id", "scope", "amount", "currency", "period", "zone", "warn_at", "on_exceeded")
KEPT_SECONDS: Final = 172_800
"""Buckets are kept for so long after their period: clocks of gateways differ."""
WRITER_SECONDS: Final = 604_800
CLEAN_EACH: Final = 1000
"""Writes after which what is long over is deleted."""
TICK: Final = 0.001
"""The least by which the time of a change grows, so that each is noticed."""
MOST_LISTED: Final = 200
"""Budgets in one statement."""

_COLUMNS: Final = {"tenant": "tenant", "key": "key", "model": "model", "upstream": "upstream"}
_LOCK: Final = "UPDATE budget_state SET zone = zone WHERE budget = $1 RETURNING zone"
_ADD: Final = (
    "INSERT INTO budget_use (budget, bucket, spent, reserved, unpriced) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT (budget, bucket) DO UPDATE SET spent = budget_use.spent + excluded.spent,"
    " reserved = budget_use.reserved + excluded.reserved, unpriced = budget_use.unpriced + excluded.unpriced"
)


class BudgetRequest(Struct, frozen=True):
    """One request that wants to reserve: what it may cost, and the upstreams that may answer."""

    claims: Sequence[BudgetClaim]
    upstreams: Sequence[str]
    rerouted: bool = False


class BudgetBatch(Struct, frozen=True, kw_only=True):
    """What one process writes at once: `changes` of use by budget and bucket, then `requests` that want to reserve.

    `number` counts the writes of `process`; `again` is set if this one may have been committed before.
    """

    process: str
    number: int
    now: float
    changes: Mapping[tuple[str, int], BudgetUse]
    requests: Sequence[BudgetRequest]
    again: bool = False


class BudgetOutcome(Struct, frozen=True):
    """The decision for each request, in order; use and bounds of all budgets that they concern."""

    decisions: Sequence[BudgetDecision]
    uses: Mapping[str, BudgetUse]
    bounds: Mapping[str, PeriodBounds]


def zone_of(name: str) -> tzinfo:
    """Return a time zone.

    Raises:
        ValueError: it is unknown.
    """
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415  most gateways have no budgets

    try:
        return ZoneInfo(name)
    except (OSError, KeyError, ValueError):
        raise ValueError(f"`{name}`: unknown time zone; expected a name like Europe/Berlin") from None


def bounds_of(budget: Budget, now: float) -> PeriodBounds:
    """Return the bounds of the budget's current period."""
    return period_bounds(budget.period, zone_of(budget.zone), now)


def definitions() -> Steps[list[Budget]]:
    """Return the budgets of the table, by their ids."""
    rows = yield Statement(f"SELECT {', '.join(DEFINITION)} FROM budget ORDER BY id")  # noqa: S608  constants
    return [Budget(**dict(zip(DEFINITION, row, strict=True))) for row in rows]


def stamp() -> Steps[tuple[int, float]]:
    """Return what changes with every change of the table."""
    rows = yield Statement("SELECT COUNT(*), COALESCE(MAX(changed), 0) FROM budget")
    return int(rows[0][0]), float(rows[0][1])


def put(budget: Budget, change: Change) -> Steps[Budget | None]:
    """Store a budget, replacing the one with its id, which is returned."""
    latest = yield Statement("SELECT COALESCE(MAX(changed), 0) FROM budget")
    before = yield from find(budget.id)
    names = (*DEFINITION, "changed")
    values = (*(getattr(budget, name) for name in DEFINITION), max(change.at, float(latest[0][0]) + TICK))
    yield Statement("DELETE FROM budget WHERE id = $1", (budget.id,))
    places = ", ".join(f"${place + 1}" for place in range(len(names)))
    yield Statement(f"INSERT INTO budget ({', '.join(names)}) VALUES ({places})", values)  # noqa: S608  constants
    yield from audit.record(change, "budget.set", _object(budget), before=_plain(before), after=_plain(budget))
    return before


def of_scope(scope: str) -> Steps[list[str]]:
    """Return the ids of the budgets of the table with this scope."""
    rows = yield Statement("SELECT id FROM budget WHERE scope = $1 ORDER BY id", (scope,))
    return [str(row[0]) for row in rows]


def find(name: str) -> Steps[Budget | None]:
    """Return the budget of the table with this id; `None` if there is none."""
    rows = yield Statement(f"SELECT {', '.join(DEFINITION)} FROM budget WHERE id = $1", (name,))  # noqa: S608  as above
    return Budget(**dict(zip(DEFINITION, rows[0], strict=True))) if rows else None


def delete(name: str, change: Change) -> Steps[Budget | None]:
    """Delete a budget and what was counted of it; return it."""
    before = yield from find(name)
    if before is not None:
        yield Statement("UPDATE budget_state SET zone = zone WHERE budget = $1", (name,))
        for table, column in (("budget", "id"), ("budget_use", "budget"), ("budget_state", "budget")):
            yield Statement(f"DELETE FROM {table} WHERE {column} = $1", (name,))  # noqa: S608  as above
        yield from audit.record(change, "budget.delete", _object(before), before=_plain(before))
    return before


def _object(budget: Budget) -> str:
    return f"budget:{budget.id}"


def _plain(budget: Budget | None) -> JSON:
    return None if budget is None else asdict(budget)


def write(batch: BudgetBatch) -> Steps[BudgetOutcome]:
    """Apply what was settled, and reserve for the requests that may be sent."""
    budgets = {claim.budget.id: claim.budget for request in batch.requests for claim in request.claims}
    known = yield from _lock(batch, budgets)
    changes = {} if batch.again and (yield from _committed(batch)) else batch.changes
    if changes:
        yield Statement(_ADD, many=[(*place, *use) for place, use in sorted(changes.items())])
    bounds = {name: bounds_of(budget, batch.now) for name, budget in budgets.items()}
    for name in sorted(budgets):
        if known.get(name) != budgets[name].zone:
            yield from _count_again(budgets[name], bounds[name])
    uses = yield from _uses(bounds)
    outcome, reserved = decided(batch.requests, uses, bounds)
    if reserved:
        yield Statement(_ADD, many=[(*place, *use) for place, use in sorted(reserved.items())])
    yield from _note_writer(batch, bounds)
    return outcome


def uses(budgets: Sequence[Budget], now: float) -> Steps[dict[str, BudgetUse]]:
    """Return what is used of budgets in their current periods, by id. What was never counted comes from the ledger."""
    found: dict[str, BudgetUse] = {}
    rows = yield Statement("SELECT budget, zone FROM budget_state")
    known = {str(name): str(zone) for name, zone in rows}
    bounds = {budget.id: bounds_of(budget, now) for budget in budgets}
    counted = sorted(budget.id for budget in budgets if known.get(budget.id) == budget.zone)
    for start in range(0, len(counted), MOST_LISTED):
        found |= yield from _uses({name: bounds[name] for name in counted[start : start + MOST_LISTED]})
    for budget in budgets:
        if budget.id not in found:
            spent = yield from _spent(budget, bounds[budget.id])
            found[budget.id] = BudgetUse(sum(spent.values()))
    return found


def _lock(batch: BudgetBatch, budgets: Mapping[str, Budget]) -> Steps[dict[str, str]]:
    """Lock all budgets of a batch; return the zones in which their use is counted."""
    known: dict[str, str] = {}
    for name in sorted({*budgets, *(name for name, _ in batch.changes)}):
        rows = yield Statement(_LOCK, (name,))
        if not rows and name in budgets:
            yield Statement(
                "INSERT INTO budget_state (budget, zone) VALUES ($1, '') ON CONFLICT (budget) DO NOTHING", (name,)
            )
            rows = yield Statement(_LOCK, (name,))
        if rows:
            known[name] = str(rows[0][0])
    return known


def _committed(batch: BudgetBatch) -> Steps[bool]:
    rows = yield Statement("SELECT number FROM budget_writer WHERE process = $1", (batch.process,))
    return bool(rows) and int(rows[0][0]) >= batch.number


def _note_writer(batch: BudgetBatch, bounds: Mapping[str, PeriodBounds]) -> Steps[None]:
    """Note that the batch is written; sometimes delete what is long over."""
    yield Statement(
        "INSERT INTO budget_writer (process, number, at) VALUES ($1, $2, $3)"
        " ON CONFLICT (process) DO UPDATE SET number = excluded.number, at = excluded.at",
        (batch.process, batch.number, batch.now),
    )
    if batch.number % CLEAN_EACH == 1:
        yield Statement("DELETE FROM budget_writer WHERE at < $1", (batch.now - WRITER_SECONDS,))
        over = [(name, bound.since - KEPT_SECONDS) for name, bound in sorted(bounds.items())]
        yield Statement("DELETE FROM budget_use WHERE budget = $1 AND bucket < $2", many=over)


def _count_again(budget: Budget, bounds: PeriodBounds) -> Steps[None]:
    """Take what was spent of a budget from the ledger; what is reserved stays so."""
    rows = yield Statement("SELECT COALESCE(SUM(reserved), 0) FROM budget_use WHERE budget = $1", (budget.id,))
    reserved = max(0, int(rows[0][0]))
    spent = yield from _spent(budget, bounds)
    spent.setdefault(bounds.bucket, 0)
    yield Statement("DELETE FROM budget_use WHERE budget = $1", (budget.id,))
    held = {bounds.bucket: reserved}
    yield Statement(_ADD, many=[(budget.id, at, cost, held.get(at, 0), 0) for at, cost in sorted(spent.items())])
    yield Statement("UPDATE budget_state SET zone = $2 WHERE budget = $1", (budget.id, budget.zone))


def _spent(budget: Budget, bounds: PeriodBounds) -> Steps[dict[int, int]]:
    """Return what the ledger has of a budget, by bucket."""
    full = -(-bounds.since // HOUR) * HOUR  # a period of a time zone may begin within an hour
    conditions, values = ["currency = $1"], [budget.currency]
    column = _COLUMNS.get(budget.kind)
    if column is not None and "*" not in budget.name:
        conditions.append(f"{column} = $2")
        values.append(budget.name)
    name, where = f"{column or 'currency'} || ''", " AND ".join(conditions)  # no name with an index: see `usage`
    bound: list[Value] = [*values, full]
    hours = yield Statement(
        f"SELECT hour, {name}, CAST(SUM(cost) AS BIGINT) FROM usage_hour WHERE {where}"  # noqa: S608  constants
        f" AND hour >= ${len(bound)} GROUP BY hour, {name}",
        bound,
    )
    rows = [(int(hour), str(who), int(cost)) for hour, who, cost in hours]
    if full > bounds.since:
        bound = [*values, bounds.since, full]
        first = yield Statement(
            f"SELECT {name}, CAST(SUM(cost) AS BIGINT) FROM request WHERE {where} AND cost IS NOT NULL"  # noqa: S608  as above
            f" AND at >= ${len(bound) - 1} AND at < ${len(bound)} GROUP BY {name}",
            bound,
        )
        rows += [(bounds.since, str(who), int(cost)) for who, cost in first if cost is not None]
    spent: dict[int, int] = {}
    for hour, who, cost in rows:
        if column is None or matches(budget.name, who):
            bucket = hour if rolling_hours(budget.period) else bounds.bucket
            spent[bucket] = spent.get(bucket, 0) + cost
    return spent


def _uses(bounds: Mapping[str, PeriodBounds]) -> Steps[dict[str, BudgetUse]]:
    """Return what is used of budgets since their periods began."""
    if not bounds:
        return {}
    conditions: list[str] = []
    values: list[Value] = []
    for name, bound in bounds.items():
        values += (name, bound.since)
        conditions.append(f"(budget = ${len(values) - 1} AND bucket >= ${len(values)})")
    sums = ", ".join(f"CAST(SUM({name}) AS BIGINT)" for name in ("spent", "reserved", "unpriced"))
    rows = yield Statement(
        f"SELECT budget, {sums} FROM budget_use WHERE {' OR '.join(conditions)} GROUP BY budget",  # noqa: S608  places
        values,
    )
    found = {str(name): BudgetUse(int(spent), int(reserved), int(unpriced)) for name, spent, reserved, unpriced in rows}
    return {name: found.get(name, BudgetUse()) for name in bounds}


def decided(
    requests: Sequence[BudgetRequest], uses: dict[str, BudgetUse], bounds: Mapping[str, PeriodBounds]
) -> tuple[BudgetOutcome, dict[tuple[str, int], BudgetUse]]:
    """Return the decisions, each with those before it in mind, and what is reserved by them; `uses` grow by that."""
    decisions: list[BudgetDecision] = []
    reserved: dict[tuple[str, int], BudgetUse] = {}
    for request in requests:
        decision = decide(request.claims, uses, request.upstreams, rerouted=request.rerouted)
        decisions.append(decision)
        for claim in decision.claims:
            name = claim.budget.id
            change = BudgetUse(0, claim.amount or 0, int(claim.amount is None))
            place = (name, bounds[name].bucket)
            uses[name] = added(uses[name], change)
            reserved[place] = added(reserved.get(place, BudgetUse()), change)
    return BudgetOutcome(decisions, uses, bounds), reserved


def added(one: BudgetUse, other: BudgetUse) -> BudgetUse:
    """Return the sum of two uses."""
    return BudgetUse(*(mine + more for mine, more in zip(one, other, strict=True)))
