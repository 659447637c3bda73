"""Prices of the store: set, listed and deleted over HTTP, and used by the next request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.admin.administered import KEYS, SECRETS, Administered
from tests.gateway.ledger.test_request_cost import NOON, price_list, record
from xenoglot.gateway.ledger import stored_prices
from xenoglot.gateway.observability.request_log import RequestCost
from xenoglot.gateway.store_service import StoreService
from xenoglot.store.ledger import audit, prices
from xenoglot.store.ledger.prices import StoredPrice
from xenoglot.store.records import Retention
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject

COST = "x-xenoglot-cost"


@pytest.fixture(scope="module")
def administered() -> Iterator[Administered]:
    """Give a gateway with a price in its file."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(
            server, environ=SECRETS, keys=KEYS, ledger={}, prices=[{"model": "*", "input": 1, "output": 1}]
        ) as running,
    ):
        yield running


def test_a_price_counts_from_the_next_request_on_until_it_is_deleted(administered: Administered) -> None:
    """7 input and 3 output tokens."""
    costs = [administered.generate("small").headers[COST]]
    made = administered.admin("POST", "/prices", {"model": "small", "input": "2.5", "output": 10, "currency": "EUR"})
    assert made.status_code == 201
    row = made.json()
    costs.append(administered.generate("small").headers[COST])
    costs.append(administered.generate("large").headers[COST])
    deleted = administered.admin("DELETE", f"/prices/{row['id']}")
    costs.append(administered.generate("small").headers[COST])
    assert costs == ["0.000010 USD", "0.000048 EUR", "0.000010 USD", "0.000010 USD"]
    assert deleted.json() == {"id": row["id"], "deleted": True}
    assert administered.admin("DELETE", f"/prices/{row['id']}").status_code == 404
    assert (row["input"], row["output"], row["cache_read"], row["upstream"]) == ("2.5", "10", None, None)


def test_prices_are_listed_page_by_page(administered: Administered) -> None:
    made: list[JSONObject] = [
        administered.admin("POST", "/prices", {"model": name, "upstream": "up", "input": 1, "output": 1}).json()
        for name in ("a", "b", "c")
    ]
    first = administered.admin("GET", "/prices?limit=2").json()
    second = administered.admin("GET", f"/prices?limit=2&after={first['next']}").json()
    assert (first["data"] + second["data"], second["has_more"]) == (made, False)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        pytest.param({"input": -1}, "input", id="negative"),
        pytest.param({"output": "cheap"}, "output", id="no-number"),
        pytest.param({"currency": "euro"}, "currency", id="currency"),
        pytest.param({"upstream": "down"}, "upstream", id="no-such-upstream"),
        pytest.param({"valid_from": "soon"}, "valid_from", id="time"),
        pytest.param({"model": ""}, "model", id="no-name"),
        pytest.param({"price": 1}, "price", id="unknown-field"),
    ],
)
def test_a_price_that_is_invalid(administered: Administered, changes: dict[str, JSON], param: str) -> None:
    answer = administered.admin("POST", "/prices", {"model": "m", "input": 1, "output": 1, **changes})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def stored(pattern: str, price: str, upstream: str = "", valid_from: float = 0.0) -> StoredPrice:
    return StoredPrice(pattern=pattern, upstream=upstream, valid_from=valid_from, input=price, output=price)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], 1100, id="that-of-the-file"),
        pytest.param([stored("*", "2")], 2200, id="of-the-store-before-the-file"),
        pytest.param([stored("*", "2"), stored("m*", "3")], 3300, id="longer-pattern"),
        pytest.param([stored("m*", "2"), stored("m", "3")], 3300, id="name-before-pattern"),
        pytest.param([stored("m", "2"), stored("*", "3", "own")], 3300, id="upstream-before-all"),
        pytest.param([stored("m", "2"), stored("m", "3", valid_from=5.0)], 3300, id="newer"),
        pytest.param([stored("m", "2"), stored("m", "3", valid_from=NOON + 60)], 2200, id="not-yet"),
        pytest.param([stored("m", "2", "sold")], 1100, id="of-another-upstream"),
    ],
)
def test_which_price_counts(rows: list[StoredPrice], expected: int) -> None:
    listed = price_list({"model": "*", "input": 1, "output": 1})
    assert listed.cost(record("own", "m")) == RequestCost(1100, "USD", "own")
    listed.use_stored(rows)
    assert listed.cost(record("own", "m")) == RequestCost(expected, "USD", "own")


async def test_other_gateways_read_a_price_and_its_audit_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_prices, "REFRESH_SECONDS", 0.0)
    mine, other = SQLite(tmp_path / "store"), SQLite(tmp_path / "store")
    listed = price_list()
    async with stored_prices.refreshing(listed, keeper := StoreService(mine, Retention(max_age=1e9, max_bytes=10**9))):
        assert listed.cost(record("own", "m")) is None
        change = audit.Change(id="audit_1", at=1.0, actor="key_1")
        await other.write(prices.put(stored("m", "2"), change))
        while listed.cost(record("own", "m")) is None:
            await mine.read(prices.prices())
    (entry,) = await other.read(audit.entries(audit.AuditFilter()))
    assert (entry.action, entry.object, entry.before) == ("price.set", "price:*/m@0", None)
    await other.aclose()
    await keeper.aclose()
