"""Four gateways with one budget: together they spend no more than it, whatever store and limiter they share."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import asyncpg
import httpx2
import pytest

from tests.gateway.limits.valkey import running as running_valkey
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.store.postgresql import running as running_postgresql
from xenoglot.gateway.ledger.request_budget import QUOTA
from xenoglot.model.response import Usage
from xenoglot.policy.limits.money_budget import Budget, BudgetUse, budget_id
from xenoglot.store.ledger import budgets, queries
from xenoglot.store.ledger.queries import UsageFilter
from xenoglot.store.location import open_store
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.sql import SQLStore

GATEWAYS = 4
IN_FLIGHT = 64
REQUESTS = 128
USAGE = Usage(input_tokens=10, output_tokens=100)
COST = 10 * 100 + 100 * 500
"""Micro-units of an answer: 0.051."""
AMOUNT = 1_000_000
ALL = Budget(id=budget_id("all", "total", "USD"), scope="all", amount=AMOUNT, period="total")


class SharedStores(NamedTuple):
    """Where stores and limits are kept that several gateways share."""

    postgresql: str
    valkey: str


@pytest.fixture(scope="module")
def shared() -> Generator[SharedStores]:
    """Give the servers."""
    with running_postgresql() as postgresql, running_valkey() as valkey:
        yield SharedStores(postgresql.url(), valkey.url)


async def new_database(url: str, name: str) -> str:
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return url.replace("/postgres?", f"/{name}?")


async def read(url: str) -> tuple[BudgetUse, JSON]:
    """Return what is used of the budget, and the cost in the ledger."""
    store = open_store(url, {})
    assert store is not None
    ledger: SQLStore = store  # type: ignore[assignment]
    use = await ledger.read(budgets.uses([ALL], 0.0))
    sums = await ledger.read(queries.usage((), UsageFilter()))
    await store.aclose()
    return use[ALL.id], sum(int(str(row["cost"])) for row in sums)


@pytest.mark.parametrize(
    ("kind", "most", "reserved"),
    [
        ("sqlite", 100, 0.051),
        ("sqlite", 20, 0.011),
        ("postgresql", 200, 0.101),
        ("postgresql", 20, 0.011),
        ("postgresql-and-valkey", 100, 0.051),
    ],
)
def test_gateways_that_share_a_store_do_not_overspend(
    shared: SharedStores, tmp_path: Path, kind: str, most: int, reserved: float
) -> None:
    """`reserved` is about what each request reserves: as much as it costs, more, and less."""
    url = f"sqlite://{tmp_path}/state.db"
    if kind != "sqlite":
        url = asyncio.run(new_database(shared.postgresql, f"shared_{most}_{kind.count('-')}"))
    more: JSONObject = {"limits": {"store": "redis", "url": shared.valkey}} if kind.endswith("valkey") else {}
    with ExitStack() as stack:
        server = stack.enter_context(Upstream(*answers("chat", text="Hello.", usage=USAGE).rules()))
        running = [
            stack.enter_context(
                DialectGateway(
                    server,
                    environ={"STORE": url},
                    store={"url_env": "STORE"},
                    ledger={},
                    prices=[{"model": "*", "input": 100, "output": 500}],
                    budgets=[{"scope": "all", "amount": "1.00", "period": "total"}],
                    **more,
                )
            )
            for _ in range(GATEWAYS)
        ]
        client = stack.enter_context(httpx2.Client(timeout=TIMEOUT, limits=httpx2.Limits(max_connections=IN_FLIGHT)))

        def send(number: int) -> tuple[int, bool]:
            """Return the status, and whether the budget is used up: not only reserved by requests in progress."""
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": most}
            answer = client.post(f"{running[number % GATEWAYS].url}/v1/chat/completions", json=body)
            return answer.status_code, QUOTA in answer.text

        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            statuses = [status for status, _ in pool.map(send, range(REQUESTS))]
        spent = False
        while not spent:  # what other gateways give back may not be written yet
            status, spent = send(0)
            statuses.append(status)
    use, recorded = asyncio.run(read(url))
    answered = statuses.count(200)
    assert set(statuses) == {200, 429}
    assert use == BudgetUse(answered * COST) == BudgetUse(int(str(recorded)))
    assert use.spent + reserved * AMOUNT * 1.02 > AMOUNT, "all of the budget can be used"
    last = max(0, COST - int(reserved * AMOUNT)) * int(1 / reserved)  # of all that can be reserved at once
    assert use.spent <= AMOUNT + last
