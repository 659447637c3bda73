"""Use of budgets in every kind of store: reserved once, settled once, seeded from the ledger, and never lost."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from msgspec.structs import asdict, replace

from xenoglot.policy.limits.money_budget import Budget, BudgetClaim, BudgetUse, budget_id
from xenoglot.store import schema
from xenoglot.store.ledger import audit, budgets, queries
from xenoglot.store.ledger.audit import AuditFilter, Change
from xenoglot.store.ledger.budgets import BudgetBatch, BudgetOutcome, BudgetRequest
from xenoglot.store.ledger.rows import RequestRow

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from xenoglot.store.queries import Statement
    from xenoglot.store.sql import SQLStore
    from xenoglot.store.store import Store

DAY = 86_400
NOW = 20_000.0 * DAY + 7200.0
"""Two hours into a day."""
ALL = Budget(id=budget_id("all", "day", "USD"), scope="all", amount=1000, period="day")
ADA = Budget(id=budget_id("tenant:ada", "day", "USD"), scope="tenant:ada", amount=500, period="day")


@pytest.fixture
def ledger(store: Store) -> SQLStore:
    """Give a store of each kind, as a database."""
    return cast("SQLStore", store)


def batch(
    *requests: BudgetRequest,
    changes: Mapping[tuple[str, int], BudgetUse] | None = None,
    now: float = NOW,
    number: int = 1,
    again: bool = False,
) -> BudgetBatch:
    return BudgetBatch(process="p", number=number, now=now, changes=changes or {}, requests=requests, again=again)


def change(number: int) -> Change:
    return Change(id=f"aud_{number}", at=NOW + number / 1e6, actor="tester")


def wants(amount: int, *wanted: Budget) -> BudgetRequest:
    return BudgetRequest([BudgetClaim(budget, amount) for budget in wanted], ("lab",))


def spent(cost: int, at: float, name: str, **more: str) -> RequestRow:
    return RequestRow(id=name, at=at, cost=cost, currency="USD", input=1, output=1, **cast("dict[str, Any]", more))


async def test_a_request_is_reserved_in_all_budgets_or_in_none(ledger: SQLStore) -> None:
    made = await ledger.write(budgets.write(batch(wants(400, ALL, ADA), wants(200, ALL, ADA), wants(600, ALL))))
    assert [one.refused_by for one in made.decisions] == [None, ADA, None]
    assert made.uses == {ALL.id: BudgetUse(0, 1000), ADA.id: BudgetUse(0, 400)}
    assert await ledger.read(budgets.uses([ALL, ADA], NOW)) == made.uses
    bucket = 20_000 * DAY
    settled = {(ALL.id, bucket): BudgetUse(150, -400), (ADA.id, bucket): BudgetUse(150, -400)}
    await ledger.write(budgets.write(batch(changes=settled, number=2)))
    assert await ledger.read(budgets.uses([ALL, ADA], NOW)) == {ALL.id: BudgetUse(150, 600), ADA.id: BudgetUse(150)}
    tomorrow = await ledger.write(budgets.write(batch(wants(500, ADA), now=NOW + DAY, number=3)))
    assert tomorrow.uses == {ADA.id: BudgetUse(0, 500)}


async def test_a_write_that_was_committed_is_not_applied_again(ledger: SQLStore) -> None:
    settled = {(ALL.id, 20_000 * DAY): BudgetUse(150, 0)}
    await ledger.write(budgets.write(batch(wants(1, ALL))))
    for again in (False, True, True):
        await ledger.write(budgets.write(batch(changes=settled, number=2, again=again)))
    assert (await ledger.read(budgets.uses([ALL], NOW)))[ALL.id] == BudgetUse(150, 1)


async def test_a_new_budget_counts_what_the_ledger_has_of_its_period(ledger: SQLStore) -> None:
    rows = [
        spent(100, NOW - 3 * 3600, "req_0", tenant="ada"),  # yesterday
        spent(20, NOW - 10, "req_1", tenant="ada", model="claude-opus", upstream="lab", key="key_1"),
        spent(3, NOW - 3700, "req_2", tenant="ben", model="gpt", upstream="lab"),
        replace(spent(50, NOW - 5, "req_3", tenant="ada"), currency="EUR"),
        replace(spent(50, NOW - 5, "req_4", tenant="ada"), cost=None, currency=None),
    ]
    await ledger.write(queries.add(rows))
    scopes = {"all": 23, "tenant:ada": 20, "key:key_1": 20, "model:claude-*": 20, "model:gpt": 3, "upstream:lab": 23}
    wanted = [Budget(id=scope, scope=scope, amount=1000, period="day") for scope in scopes]
    shown = await ledger.read(budgets.uses(wanted, NOW))
    assert {name: use.spent for name, use in shown.items()} == scopes
    counted = await ledger.write(budgets.write(batch(wants(1, *wanted))))
    assert counted.uses == {name: BudgetUse(cost, 1) for name, cost in scopes.items()}
    rolling = [replace(ALL, id=period, period=period) for period in ("rolling:1h", "rolling:24h", "total", "month")]
    assert {name: use.spent for name, use in (await ledger.read(budgets.uses(rolling, NOW))).items()} == {
        "rolling:1h": 20, "rolling:24h": 123, "total": 123, "month": 123,
    }  # fmt: skip


async def test_a_period_that_begins_within_an_hour_is_seeded_to_the_second(ledger: SQLStore) -> None:
    nepal = replace(ALL, zone="Asia/Kathmandu")  # its midnight is at 18:15 UTC
    midnight = 20_000 * DAY - 5 * 3600 - 45 * 60
    rows = [spent(1, midnight - 1, "req_1"), spent(20, midnight, "req_2"), spent(300, midnight + 3600, "req_3")]
    await ledger.write(queries.add(rows))
    assert (await ledger.read(budgets.uses([nepal], NOW)))[ALL.id] == BudgetUse(320)
    assert (await ledger.write(budgets.write(batch(wants(1, nepal))))).uses[ALL.id] == BudgetUse(320, 1)


async def test_another_zone_counts_again_and_keeps_what_is_reserved(ledger: SQLStore) -> None:
    await ledger.write(queries.add([spent(7, NOW - 3 * 3600, "req_1")]))
    assert (await ledger.write(budgets.write(batch(wants(100, ALL))))).uses[ALL.id] == BudgetUse(0, 100)
    moved = replace(ALL, zone="America/New_York")
    assert (await ledger.write(budgets.write(batch(wants(1, moved), number=2)))).uses[ALL.id] == BudgetUse(7, 101)


async def test_definitions_are_stored_replaced_and_deleted(ledger: SQLStore) -> None:
    first = await ledger.read(budgets.stamp())
    assert await ledger.write(budgets.put(ADA, change(1))) is None
    second = await ledger.read(budgets.stamp())
    more = replace(ADA, amount=700, warn_at=80, on_exceeded="route:small")
    assert await ledger.write(budgets.put(more, change(2))) == ADA
    third = await ledger.read(budgets.stamp())
    assert len({first, second, third}) == 3
    assert await ledger.read(budgets.definitions()) == [more]
    await ledger.write(budgets.write(batch(wants(1, more))))
    assert await ledger.write(budgets.delete(ADA.id, change(3))) == more
    assert await ledger.write(budgets.delete(ADA.id, change(4))) is None
    assert await ledger.read(budgets.definitions()) == []
    assert (await ledger.read(budgets.uses([more], NOW)))[ADA.id] == BudgetUse()
    entries = await ledger.read(audit.entries(AuditFilter()))
    assert [(one.action, one.actor, one.object) for one in entries] == [
        (action, "tester", f"budget:{ADA.id}") for action in ("budget.delete", "budget.set", "budget.set")
    ]
    assert (entries[1].before, entries[1].after) == (asdict(ADA), asdict(more))


def run(connection: sqlite3.Connection, steps: Generator[Statement, Sequence[Any], BudgetOutcome]) -> BudgetOutcome:
    """Run a transaction."""
    rows: Sequence[Any] = ()
    try:
        statement = next(steps)
        while True:
            sql = statement.sql.replace("$", "?")
            if statement.many is not None:
                connection.executemany(sql, statement.many)
            else:
                rows = connection.execute(sql, tuple(statement.values)).fetchall()
            statement = steps.send(rows)
    except StopIteration as end:
        return cast("BudgetOutcome", end.value)


class BudgetMachine(RuleBasedStateMachine):
    """Requests that reserve, settle and get lost; what they did cost may be more than they had reserved."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        for migration in schema.MIGRATIONS:
            for sql in migration:
                self.connection.execute(sql)
        self.number = 0
        self.settled = self.reserved = 0
        self.last: list[int] = []
        """What requests in progress and lost ones have reserved."""
        self.over = 0
        """By how much requests cost more than they had reserved."""

    def write(
        self, *requests: BudgetRequest, changes: Mapping[tuple[str, int], BudgetUse] | None = None
    ) -> BudgetOutcome:
        self.number += 1
        return run(self.connection, budgets.write(batch(*requests, changes=changes, number=self.number)))

    @rule(target=held, amounts=st.lists(st.integers(1, 400), min_size=1, max_size=4))
    def reserve(self, amounts: list[int]) -> tuple[int, ...]:
        """Several requests reserve at once."""
        made = self.write(*(wants(amount, ALL) for amount in amounts))
        kept = [amount for amount, one in zip(amounts, made.decisions, strict=True) if one.refused_by is None]
        self.reserved += sum(kept)
        return tuple(kept)

    @rule(amounts=consumes(held), share=st.floats(0, 1.5))
    def settle(self, amounts: tuple[int, ...], share: float) -> None:
        """They end; some cost more than was reserved."""
        for amount in amounts:
            cost = round(amount * share)
            self.write(changes={(ALL.id, 20_000 * DAY): BudgetUse(cost, -amount)})
            self.settled += cost
            self.reserved -= amount
            self.over += max(0, cost - amount)

    @rule(_amounts=consumes(held))
    def crash(self, _amounts: tuple[int, ...]) -> None:
        """The process is killed: nobody settles what it had reserved."""
        self.number = 0

    @invariant()
    def use_is_what_was_reserved_and_settled(self) -> None:
        """What is enforced is what is shown; without requests that cost more it is never above the amount."""
        rows = self.connection.execute("SELECT COALESCE(SUM(spent), 0), COALESCE(SUM(reserved), 0) FROM budget_use")
        use = rows.fetchone()
        assert use == (self.settled, self.reserved)
        assert sum(use) <= ALL.amount + self.over

    def teardown(self) -> None:
        """Close the database."""
        self.connection.close()


TestBudgetMachine = BudgetMachine.TestCase
TestBudgetMachine.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
