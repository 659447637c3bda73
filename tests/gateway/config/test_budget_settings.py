"""Money budgets in the configuration: what is valid, and the path of each mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.policy.limits.money_budget import EXPECTED_PERIOD, Budget, budget_id

if TYPE_CHECKING:
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON, JSONObject

UPSTREAMS: JSONObject = {"up": {"dialect": "chat", "base_url": "http://127.0.0.1:1"}}


def checked(*budgets: JSONObject, **more: JSON) -> Config:
    return check({"upstreams": UPSTREAMS, "ledger": {}, "budgets": [*budgets], **more}, {}, "the tests")


@pytest.mark.parametrize("amount", ["12.50", 12.5, "12.500000"])
def test_an_amount_is_exact(amount: float | str) -> None:
    (found,) = checked({"scope": "tenant:ada", "amount": amount, "zone": "Europe/Berlin", "warn_at": 80}).budgets
    assert found.budget() == Budget(
        id=budget_id("tenant:ada", "month", "USD"),
        scope="tenant:ada",
        amount=12_500_000,
        period="month",
        zone="Europe/Berlin",
        warn_at=80,
    )


@pytest.mark.parametrize(
    ("budget", "problem"),
    [
        (
            {"scope": "user:ada"},
            'budgets[0].scope: found "user:ada"; expected one of all, tenant:NAME, key:ID, model:NAME, upstream:NAME',
        ),
        ({"amount": -1}, "budgets[0].amount: found -1; expected a number of at least 0"),
        ({"amount": "1e99"}, 'budgets[0].amount: found "1e99"; expected a number of at least 0'),
        ({"amount": "0.0000001"}, 'budgets[0].amount: found "0.0000001"; expected at most 6 decimals'),
        ({"currency": "usd"}, 'budgets[0].currency: found "usd"; expected a code like USD (ISO 4217)'),
        (
            {"period": "year"},
            f'budgets[0].period: found "year"; {EXPECTED_PERIOD}',
        ),
        (
            {"zone": "Mars/Olympus"},
            "budgets[0].zone: `Mars/Olympus`: unknown time zone; expected a name like Europe/Berlin",
        ),
        (
            {"zone": "../etc/passwd"},
            "budgets[0].zone: `../etc/passwd`: unknown time zone; expected a name like Europe/Berlin",
        ),
        (
            {"on_exceeded": "stop"},
            'budgets[0].on_exceeded: found "stop"; expected `refuse`, `warn` or `route:MODEL`',
        ),
        (
            {"on_exceeded": "route:"},
            'budgets[0].on_exceeded: found "route:"; the name of a model stands after `route:`',
        ),
    ],
)
def test_a_mistake_is_reported_at_its_path(budget: JSONObject, problem: str) -> None:
    with pytest.raises(ConfigurationError) as found:
        checked({"scope": "all", "amount": 1, **budget})
    assert str(found.value) == f"the tests: {problem}"


def test_a_route_is_a_model_of_the_configuration() -> None:
    models: JSON = [{"name": "small-*"}]
    assert checked({"scope": "all", "amount": 1, "on_exceeded": "route:small-1"}, models=models).budgets
    with pytest.raises(ConfigurationError) as found:
        checked({"scope": "all", "amount": 1, "on_exceeded": "route:tiny"}, models=models)
    assert str(found.value) == 'the tests: budgets[0].on_exceeded: found "route:tiny"; no model has this name'


def test_the_same_budget_is_set_once() -> None:
    with pytest.raises(ConfigurationError) as found:
        checked(
            {"scope": "all", "amount": 1}, {"scope": "all", "amount": 1, "period": "day"}, {"scope": "all", "amount": 2}
        )
    assert str(found.value) == "the tests: budgets[2].scope: has the scope, period and currency of budgets[0]"


def test_budgets_need_a_ledger() -> None:
    with pytest.raises(ConfigurationError) as found:
        checked({"scope": "all", "amount": 1}, ledger={"enabled": False})
    assert str(found.value) == "the tests: budgets: need a `[ledger]`, which has what was spent before"
