"""`xenoglot budgets`: set, change, list and delete budgets in the store; mistakes have one line."""

from __future__ import annotations

import asyncio
import getpass
import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from xenoglot.cli import main
from xenoglot.policy.limits.money_budget import budget_id
from xenoglot.store.ledger import audit
from xenoglot.store.ledger.audit import AuditFilter
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xenoglot.store.ledger.audit import AuditEntry

CONFIG = """
[upstreams.lab]
dialect = "chat"
base_url = "http://127.0.0.1:1"

[store]
url = "sqlite://{path}"

[ledger]

[[budgets]]
scope = "all"
amount = "100"
period = "total"
"""
NONE = "there is no budget for `tenant:ada` with the period day and the currency USD; `xenoglot budgets list` shows all"
ADA, ALL = budget_id("tenant:ada", "month", "USD"), budget_id("all", "total", "USD")


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def budgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Give a function that runs the command."""
    config = tmp_path / "gateway.toml"
    config.write_text(CONFIG.format(path=tmp_path / "state.db"))

    def run(action: str, *arguments: str) -> Done:
        code = main(["budgets", action, "--config", str(config), *arguments])
        return Done(code, *capsys.readouterr())

    return run


def test_a_budget_is_set_changed_listed_and_deleted(budgets: Callable[..., Done]) -> None:
    assert budgets("set", "tenant:ada", "50").out == f"{ADA}: tenant:ada 50.000000 USD (month)\n"
    changed = json.loads(budgets("set", "tenant:ada", "0.25", "--warn-at", "80", "--json").out)
    more = json.loads(budgets("set", "tenant:ada", "0.5", "--zone", "Europe/Berlin", "--json").out)
    assert changed == {
        "id": ADA,
        "scope": "tenant:ada",
        "amount": 250_000,
        "currency": "USD",
        "period": "month",
        "zone": "UTC",
        "warn_at": 80,
        "on_exceeded": "refuse",
    }
    assert more == changed | {"amount": 500_000, "zone": "Europe/Berlin"}
    first, second = map(json.loads, budgets("list", "--json").out.splitlines())
    nothing = {"spent": 0, "reserved": 0, "unpriced": 0}
    assert (
        first.items() >= {"id": ALL, "source": "file", "remaining": 100_000_000, "resets_at": None, **nothing}.items()
    )
    assert second.items() >= {**more, "source": "store", "remaining": 500_000, **nothing}.items()
    assert second["resets_at"].endswith(":00:00Z")
    assert budgets("list").out.splitlines() == [
        f"id{' ' * 16}scope       period      amount     spent  reserved   remaining  currency  on_exceeded  source",
        f"{ALL}  all         total   100.000000  0.000000  0.000000  100.000000  USD       refuse       file",
        f"{ADA}  tenant:ada  month     0.500000  0.000000  0.000000    0.500000  USD       refuse       store",
    ]
    assert budgets("delete", "tenant:ada").out == f"deleted {ADA}\n"
    assert [json.loads(line)["id"] for line in budgets("list", "--json").out.splitlines()] == [ALL]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("set", "ada", "5"),
            'SCOPE: found "ada"; expected one of all, tenant:NAME, key:ID, model:NAME, upstream:NAME',
        ),
        (("set", "tenant:ada", "much"), 'AMOUNT: found "much"; expected a number of at least 0'),
        (
            ("set", "tenant:ada", "5", "--on-exceeded", "stop"),
            '--on-exceeded: found "stop"; expected `refuse`, `warn` or `route:MODEL`',
        ),
        (("set", "tenant:ada", "5", "--warn-at", "0"), "--warn-at: found 0; expected a percentage from 1 to 100"),
        (
            ("set", "all", "5", "--period", "total"),
            "the budget for `all` is set in the configuration: change it there",
        ),
        (
            ("delete", "tenant:ada", "--period", "day"),
            NONE,
        ),
    ],
)
def test_a_mistake_is_one_line(budgets: Callable[..., Done], arguments: tuple[str, ...], problem: str) -> None:
    assert budgets(*arguments) == Done(2, "", f"xenoglot: {problem}\n")


def test_budgets_need_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(CONFIG.partition("[ledger]")[0].format(path=tmp_path / "state.db"))
    assert main(["budgets", "list", "--config", str(config)]) == 2
    assert capsys.readouterr().err == "xenoglot: budgets need the ledger: add a table [ledger] to the configuration\n"


def test_changes_are_in_the_audit_log_with_the_user(budgets: Callable[..., Done], tmp_path: Path) -> None:
    budgets("set", "tenant:ada", "50")
    budgets("delete", "tenant:ada")

    async def read() -> list[AuditEntry]:
        store = SQLite(tmp_path / "state.db")
        found = await store.read(audit.entries(AuditFilter()))
        await store.aclose()
        return found

    found = asyncio.run(read())
    assert [(one.action, one.object) for one in found] == [
        (action, f"budget:{ADA}") for action in ("budget.delete", "budget.set")
    ]
    assert {one.actor for one in found} == {f"cli:{getpass.getuser()}"}
