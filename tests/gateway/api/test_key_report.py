"""`GET /v1/key`: a client sees what its key may do and has spent, whatever kind of key it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.auth.test_shared_keys import CHAT, create
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.model.response import Usage
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject

PRICES: list[JSONObject] = [{"model": "*", "input": "1", "output": "10"}]
NAMED: JSONObject = {"ci": {"key_env": "CI", "models": ["m"], "tenant": "ada"}}
TENANTS: JSONObject = {"ben": {"key_env": "BEN", "models": ["m"]}}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """Give a server that reports its usage."""
    with Upstream(*answers("chat", text="Hi", usage=Usage(input_tokens=100, output_tokens=2)).rules()) as scripted:
        yield scripted


def report(running: DialectGateway, key: str | None) -> JSONObject:
    """Return what a key reports."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    answer = httpx2.get(f"{running.url}/v1/key", headers=headers, timeout=TIMEOUT)
    assert answer.status_code == 200
    found: JSONObject = answer.json()
    return found


def test_each_kind_of_key_reports_its_rights_and_what_it_has_spent(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite://{tmp_path}/state.db"
    expires = float(int(time.time()) + 1000)
    limits = LimitSettings(requests=("60/1m",))
    stored = create(place, name="laptop", tenant="ada", roles=("viewer", "client"), limits=limits, expires=expires)
    settings: JSONObject = {"keys": {"store": True, "named": NAMED}, "tenants": TENANTS, "ledger": {}, "prices": PRICES}
    environ = {"CI": "ci-key", "BEN": "ben-key", "STORE": place}
    with DialectGateway(upstream, environ=environ, store={"url_env": "STORE"}, **settings) as running:
        for _ in range(2):
            headers = {"authorization": f"Bearer {stored}"}
            answer = httpx2.post(f"{running.url}/v1/chat/completions", json=CHAT, headers=headers, timeout=TIMEOUT)
            assert answer.status_code == 200
        own, ci, ben = (report(running, key) for key in (stored, "ci-key", "ben-key"))
    assert own.pop("id").startswith("key_")
    assert 0 <= time.time() - own.pop("created") < TIMEOUT
    assert own == {
        "object": "key",
        "name": "laptop",
        "tenant": "ada",
        "roles": ["client", "viewer"],
        "models": ["*"],
        "limits": {"requests": ["60/1m"]},
        "expires": expires,
        "spent": [{"currency": "USD", "cost": 240, "requests": 2, "unpriced": 0, "input": 200, "output": 4}],
        "budgets": [],
    }
    assert (ci["name"], ci["tenant"], ci["models"], ci["limits"], ci["created"]) == ("ci", "ada", ["m"], None, None)
    assert (ci["spent"], ci["expires"]) == ([], None)
    assert (ben["name"], ben["roles"], ben["models"]) == ("ben", ["client"], ["m"])


def test_a_gateway_without_keys_and_ledger_has_little_to_report(upstream: Upstream) -> None:
    with DialectGateway(upstream) as running:
        found = report(running, None)
    assert (found["id"], found["name"], found["models"], found["spent"]) == (None, None, ["*"], None)


def test_a_key_reports_what_remains_of_its_budgets(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite://{tmp_path}/state.db"
    stored = create(place, name="laptop", tenant="ada", budgets=("1/total",))
    budgets: JSON = [{"scope": scope, "amount": 5, "period": "day"} for scope in ("all", "tenant:ada", "tenant:ben")]
    settings: JSONObject = {"keys": {"store": True}, "tenants": TENANTS, "ledger": {}, "prices": PRICES}
    environ = {"BEN": "ben-key", "STORE": place}
    with DialectGateway(upstream, environ=environ, store={"url_env": "STORE"}, budgets=budgets, **settings) as running:
        headers = {"authorization": f"Bearer {stored}"}
        answer = httpx2.post(f"{running.url}/v1/chat/completions", json=CHAT, headers=headers, timeout=TIMEOUT)
        own, ben = (report(running, key)["budgets"] for key in (stored, "ben-key"))
    assert answer.headers["x-xenoglot-budget-remaining"].startswith("0.98")
    resets = {one.pop("resets_at") for one in (*own, *ben) if one["period"] == "day"}
    assert len(resets) == 1
    usual = {"currency": "USD", "spent": 120, "reserved": 0}
    assert sorted(own, key=lambda one: one["scope"]) == [
        {"scope": "key", "period": "total", "amount": 1_000_000, "remaining": 999_880, "resets_at": None, **usual},
        {"scope": "tenant", "period": "day", "amount": 5_000_000, "remaining": 4_999_880, **usual},
    ]
    assert [(one["scope"], one["remaining"]) for one in ben] == [("tenant", 5_000_000)]


@pytest.mark.parametrize(
    ("rights", "code"),
    [
        pytest.param(
            {"limits": LimitSettings(requests=("2/1d",), queue_seconds=0.0)}, "rate_limit_exceeded", id="limits"
        ),
        pytest.param({"budgets": ("0.0002/month",)}, "insufficient_quota", id="budget"),
    ],
)
def test_limits_and_budgets_of_a_stored_key_hold_for_it_alone(
    upstream: Upstream, tmp_path: Path, rights: dict[str, object], code: str
) -> None:
    place = f"sqlite://{tmp_path}/state.db"
    limited, free = create(place, tenant="ada", **rights), create(place, tenant="ada")
    settings: JSONObject = {"keys": {"store": True}, "ledger": {}, "prices": PRICES}
    body = {**CHAT, "max_tokens": 2}
    found = []
    with DialectGateway(upstream, environ={"STORE": place}, store={"url_env": "STORE"}, **settings) as running:
        for key in (limited, limited, limited, free):
            headers = {"authorization": f"Bearer {key}"}
            url = f"{running.url}/v1/chat/completions"
            answer = httpx2.post(url, json=body, headers=headers, timeout=TIMEOUT)
            found.append((answer.status_code, answer.json().get("error", {}).get("code")))
    assert found[0] == found[-1] == (200, None)
    assert found[2] == (429, code)
