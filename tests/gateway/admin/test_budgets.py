"""`/admin/v1/budgets`: set, changed, shown with what is spent, and deleted; the gateway enforces them at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.gateway.admin.administered import KEYS, SECRETS, VIEWER, Administered
from xenoglot.model.response import Usage
from xenoglot.policy.limits.money_budget import budget_id
from xenoglot.store.ledger import audit
from xenoglot.store.ledger.audit import AuditFilter
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.model.json import JSONObject
    from xenoglot.store.ledger.audit import AuditEntry

COST = 1000 * 100 + 20 * 500
ALL, MODEL = budget_id("all", "total", "USD"), budget_id("model:m*", "month", "USD")
FIXED: JSONObject = {
    "object": "budget",
    "id": ALL,
    "scope": "all",
    "amount": 100_000_000,
    "currency": "USD",
    "period": "total",
    "zone": "UTC",
    "warn_at": None,
    "on_exceeded": "refuse",
    "spent": 0,
    "reserved": 0,
    "remaining": 100_000_000,
    "unpriced": 0,
    "resets_at": None,
    "source": "file",
}


@pytest.fixture
def running() -> Iterator[Administered]:
    """A gateway with a budget in its configuration, and a store in memory."""
    usage = Usage(input_tokens=1000, output_tokens=20)
    with (
        Upstream(*answers("chat", text="Hello.", usage=usage).rules()) as server,
        Administered(
            server,
            environ=SECRETS,
            keys=KEYS,
            ledger={},
            prices=[{"model": "*", "input": 100, "output": 500}],
            budgets=[{"scope": "all", "amount": 100, "period": "total"}],
        ) as gateway,
    ):
        yield gateway


def test_a_budget_is_set_enforced_changed_and_deleted(running: Administered) -> None:
    assert running.generate(max_tokens=10).status_code == 200
    made = running.admin("POST", "/budgets", {"scope": "model:m*", "amount": "0.2", "zone": "Europe/Berlin"})
    assert made.status_code == 201
    state = made.json()
    assert state.items() >= {"id": MODEL, "amount": 200_000, "spent": COST, "source": "store"}.items(), "seeded"
    assert running.generate(max_tokens=200).status_code == 429
    assert running.generate(max_tokens=10).status_code == 200
    assert running.generate(max_tokens=10).status_code == 429
    shown = running.admin("GET", f"/budgets/{MODEL}", key=VIEWER).json()
    assert (shown["spent"], shown["reserved"], shown["remaining"]) == (2 * COST, 0, 200_000 - 2 * COST)
    changed = running.admin("PATCH", f"/budgets/{MODEL}", {"amount": 1, "warn_at": 80})
    assert changed.json() == shown | {"amount": 1_000_000, "warn_at": 80, "remaining": 1_000_000 - 2 * COST}
    assert running.generate(max_tokens=10).status_code == 200
    listed = running.admin("GET", "/budgets?limit=1").json()
    rest = running.admin("GET", f"/budgets?limit=1&after={listed['next']}").json()
    assert [one["id"] for one in (*listed["data"], *rest["data"])] == sorted([ALL, MODEL])
    assert (listed["has_more"], rest["has_more"]) == (True, False)
    (fixed,) = running.admin("GET", "/budgets?scope=all").json()["data"]
    assert fixed == FIXED | {"spent": 3 * COST, "remaining": 100_000_000 - 3 * COST}
    assert running.admin("DELETE", f"/budgets/{MODEL}").json() == {"object": "budget", "id": MODEL, "deleted": True}
    assert running.admin("GET", f"/budgets/{MODEL}").status_code == 404
    answer = running.generate(max_tokens=10)
    assert answer.headers["x-xenoglot-budget-remaining"].startswith("99.")


@pytest.mark.parametrize(
    ("request_line", "body", "status", "problem"),
    [
        ("POST /budgets", {"scope": "ada", "amount": 1}, 400, 'scope: found "ada"; expected one of all'),
        (
            "POST /budgets",
            {"scope": "all", "amount": "1e-9"},
            400,
            'amount: found "1e-9"; expected at most 6 decimals',
        ),
        ("POST /budgets", {"scope": "all"}, 400, "amount: required"),
        ("POST /budgets", {"scope": "all", "amount": 1, "limit": 2}, 400, "limit: unknown"),
        ("POST /budgets", {"scope": "all", "amount": 1, "period": "total"}, 409, "change it with PATCH"),
        (f"PATCH /budgets/{ALL}", {"amount": 1}, 409, "the budget is set in the configuration file"),
        (f"DELETE /budgets/{ALL}", None, 409, "the budget is set in the configuration file"),
        (f"PATCH /budgets/{MODEL}", {"amount": 1}, 404, f"no budget `{MODEL}` exists"),
        ("DELETE /budgets/bud_1", None, 404, "no budget `bud_1` exists"),
    ],
)
def test_a_mistake_changes_nothing(
    running: Administered, request_line: str, body: JSONObject | None, status: int, problem: str
) -> None:
    method, path = request_line.split()
    answer = running.admin(method, path, body)
    assert answer.status_code == status
    assert problem in answer.json()["error"]["message"]
    assert running.admin("GET", "/budgets").json()["data"] == [FIXED]


def test_viewers_change_nothing(running: Administered) -> None:
    assert running.admin("POST", "/budgets", {"scope": "all", "amount": 1}, key=VIEWER).status_code == 403
    assert running.admin("DELETE", f"/budgets/{ALL}", key=VIEWER).status_code == 403
    assert running.admin("GET", "/budgets", key="client-key").status_code == 403


def test_changes_are_in_the_audit_log(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/state.db"
    with (
        Upstream() as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}, store={"url": url}) as gateway,
    ):
        assert gateway.admin("POST", "/budgets", {"scope": "model:m*", "amount": 1}).status_code == 201
        assert gateway.admin("DELETE", f"/budgets/{MODEL}").status_code == 200

    async def read() -> list[AuditEntry]:
        store = SQLite(tmp_path / "state.db")
        found = await store.read(audit.entries(AuditFilter()))
        await store.aclose()
        return found

    found = asyncio.run(read())
    assert [(one.action, one.object) for one in found] == [
        (action, f"budget:{MODEL}") for action in ("budget.delete", "budget.set")
    ]
    assert all(one.actor.startswith("key_") and (one.request or "").startswith("req_") for one in found)
