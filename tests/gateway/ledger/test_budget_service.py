"""The budgets of one process: one transaction at a time, nothing lost with a request, and outages of the store."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from msgspec.structs import replace

from xenoglot.errors import FailureError
from xenoglot.gateway.config.ledger import LedgerSettings
from xenoglot.gateway.ledger.budget_service import BudgetService
from xenoglot.policy.limits.money_budget import Budget, BudgetClaim, BudgetUse
from xenoglot.store.ledger import budgets
from xenoglot.store.ledger.audit import Change
from xenoglot.store.ledger.budgets import BudgetRequest
from xenoglot.store.records import StoreError
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

T = TypeVar("T")

NOW = 1_000_000_000.0
ALL = Budget(id="b", scope="all", amount=1000, period="total")


class FlakyStore:
    """A store that may fail, before or after it has committed."""

    def __init__(self) -> None:
        self.store = Memory()
        self.fails = ""
        self.calls = 0
        self.then: Callable[[], object] = bool
        """Called before anything else when an answer is there."""

    @staticmethod
    def now() -> float:
        return NOW

    async def within(self, asked: Awaitable[T]) -> T:
        self.calls += 1
        if self.fails == "before":
            asked.close()  # type: ignore[attr-defined]
            raise StoreError("lost")
        result = await asked
        if self.fails == "after":
            raise StoreError("lost")
        asyncio.get_running_loop().call_soon(self.then)
        return result

    async def use(self, budget: Budget = ALL) -> BudgetUse:
        return (await self.store.read(budgets.uses([budget], NOW)))[budget.id]


@pytest.fixture
async def flaky() -> AsyncGenerator[FlakyStore]:
    made = FlakyStore()
    yield made
    await made.store.aclose()


def service_of(flaky: FlakyStore, **settings: Any) -> BudgetService:  # noqa: ANN401
    return BudgetService(flaky, LedgerSettings(**settings), [ALL])


def wants(amount: int | None = 100, budget: Budget = ALL) -> BudgetRequest:
    return BudgetRequest([BudgetClaim(budget, amount)], ("up",))


async def test_requests_that_wait_share_a_transaction(flaky: FlakyStore) -> None:
    service = service_of(flaky)
    made = await asyncio.gather(*(service.reserve(wants()) for _ in range(64)))
    assert [decision.refused_by for decision, _ in made].count(None) == 10
    assert flaky.calls <= 2, "the first begins one, the others wait for the next"
    assert await flaky.use() == BudgetUse(0, 1000)
    await service.aclose()


async def test_a_request_that_is_cancelled_while_it_waits_reserves_nothing(flaky: FlakyStore) -> None:
    service = service_of(flaky)
    waiting = [asyncio.create_task(service.reserve(wants())) for _ in range(8)]
    await asyncio.sleep(0)
    waiting[3].cancel()
    await asyncio.wait(waiting)
    late = asyncio.create_task(service.reserve(wants()))
    flaky.then = late.cancel  # the decision is there, and the request does not know it yet
    await asyncio.wait({late})
    flaky.then = bool
    assert late.cancelled()
    await service.flush()
    assert await flaky.use() == BudgetUse(0, 700)
    await service.aclose()


@pytest.mark.parametrize("fails", ["before", "after"])
async def test_what_a_request_cost_is_counted_once_although_the_store_failed(
    flaky: FlakyStore, fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "xenoglot.gateway")
    service = service_of(flaky)
    await service.reserve(wants(500))
    flaky.fails = fails
    service.change([("b", 0, BudgetUse(40, -500))])
    await service.flush()
    assert service.failing
    flaky.fails = ""
    service._retry_at = 0.0
    await service.reserve(wants(1))
    await service.flush()
    assert await flaky.use() == BudgetUse(40, 1)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "budgets are not counted in the store",
        "budgets are counted in the store again",
    ]
    await service.aclose()


async def test_in_an_outage_the_last_known_use_holds(flaky: FlakyStore) -> None:
    service = service_of(flaky)
    await service.reserve(wants(700))
    flaky.fails = "before"
    assert (await service.reserve(wants(200)))[0].refused_by is None
    assert (await service.reserve(wants(200)))[0].refused_by == ALL
    service.change([("b", 0, BudgetUse(10, -200))])
    assert (await service.reserve(wants(290)))[0].refused_by is None
    flaky.fails = ""
    service._retry_at = 0.0
    await service.flush()
    assert await flaky.use() == BudgetUse(10, 990)
    await service.aclose()


async def test_in_an_outage_requests_are_refused_if_the_ledger_is_needed(flaky: FlakyStore) -> None:
    service = service_of(flaky, on_outage="refuse")
    flaky.fails = "before"
    for _ in range(2):  # one that waited for the store, and one that need not
        with pytest.raises(FailureError) as refused:
            await service.reserve(wants())
        assert refused.value.failure.kind == "overloaded"
    await service.aclose()


async def test_budgets_of_the_store_are_found_when_they_change(flaky: FlakyStore) -> None:
    stored = replace(ALL, id="stored", scope="tenant:ada", amount=5)
    service = service_of(flaky)
    await service.start()
    assert [one.id for one in service.common("ada", None, "m")] == ["b"]
    await flaky.store.write(budgets.put(stored, Change(id="1", at=NOW, actor="tester")))
    await service._poll()
    assert [one.id for one in service.common("ada", None, "m")] == ["stored", "b"]
    assert dict(service.remaining()) == {ALL: 1000, stored: 5}
    await flaky.store.write(budgets.delete("stored", Change(id="2", at=NOW, actor="tester")))
    await service._poll()
    assert [one.id for one in service.common("ada", None, "m")] == ["b"]
    await service.aclose()
