"""Money budgets of a whole gateway: what clients see, what is counted, and what a killed gateway leaves behind."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.observability.log_format import JSONFormatter
from xenoglot.model.response import Usage
from xenoglot.policy.limits.money_budget import Budget, BudgetUse
from xenoglot.store.ledger import budgets
from xenoglot.store.ledger.audit import Change
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject

USAGE = Usage(input_tokens=1000, output_tokens=20)
PRICES: list[JSON] = [{"model": "m*", "input": "100", "output": "500"}, {"model": "free", "input": 0, "output": 0}]
COST = 1000 * 100 + 20 * 500
"""Micro-units of one answer."""
TENANTS: JSONObject = {name: {"key_env": f"{name.upper()}_KEY"} for name in ("ada", "ben")}
KEYS = {"ADA_KEY": "key-of-ada", "BEN_KEY": "key-of-ben"}
BODY: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 200}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """A server that reports the same usage for every answer."""
    with Upstream(*answers("chat", text="Hello.", usage=USAGE).rules()) as server:
        yield server


@contextmanager
def gateway(server: Upstream, path: Path, *wanted: JSONObject, **more: JSON) -> Iterator[DialectGateway]:
    ledger = more.pop("ledger", {})
    with DialectGateway(
        server,
        environ=KEYS,
        tenants=TENANTS,
        store={"url": f"sqlite://{path}/state.db"},
        ledger=ledger,
        prices=PRICES,
        budgets=[*wanted],
        **more,
    ) as running:
        yield running


def send(running: DialectGateway, body: JSONObject = BODY, key: str = "key-of-ada") -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.post(f"{running.url}/v1/chat/completions", json=body, headers=headers, timeout=TIMEOUT)


def use_of(path: Path, one: Budget) -> BudgetUse:
    async def read() -> BudgetUse:
        store = SQLite(path / "state.db")
        found = await store.read(budgets.uses([one], 2e9 if one.period == "total" else 0))
        await store.aclose()
        return found[one.id]

    return asyncio.run(read())


def total(scope: str, amount: str, **more: JSON) -> JSONObject:
    return {"scope": scope, "amount": amount, "period": "total", **more}


def budget_of(plain: JSONObject) -> Budget:
    from xenoglot.gateway.config.ledger import BudgetSettings  # noqa: PLC0415

    return BudgetSettings(**plain).budget()


def test_a_budget_is_charged_to_the_micro_unit_and_refuses_in_the_end(upstream: Upstream, tmp_path: Path) -> None:
    ada = total("tenant:ada", "0.30")
    with gateway(upstream, tmp_path, ada) as running:
        told = [send(running) for _ in range(3)]
        other = send(running, key="key-of-ben")
        stream = send(running, {**BODY, "stream": True})
    assert [one.status_code for one in told] == [200, 200, 429]
    assert [one.headers["x-xenoglot-budget-remaining"] for one in told[1:]] == ["0.089500 USD", "0.080000 USD"]
    assert other.status_code == 200
    assert "x-xenoglot-budget-remaining" not in other.headers
    assert stream.status_code == 429
    assert use_of(tmp_path, budget_of(ada)) == BudgetUse(spent=2 * COST)
    refusal = told[2]
    assert refusal.headers["x-should-retry"] == "false"
    assert refusal.json()["error"] == {
        "message": "insufficient quota: this request may cost 0.100500 USD, and 0.080000 USD remain of the budget of"
        " your tenant (total); limit its output tokens",
        "type": "insufficient_quota",
        "param": None,
        "code": "insufficient_quota",
    }


def test_a_budget_reserves_the_summary_of_a_compaction_that_is_due(upstream: Upstream, tmp_path: Path) -> None:
    """It is a second call, of 8,192 tokens at most."""
    said: JSON = [{"role": role, "content": "Hi"} for role in ("user", "assistant", "user")]
    asked: JSONObject = {"model": "m", "input": said, "max_output_tokens": 200}
    later: JSON = [{"type": "compaction", "compact_threshold": 50_000}]
    with (
        gateway(upstream, tmp_path, total("all", "0.30")) as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="key-of-ada", max_retries=0) as client,
    ):
        assert client.responses.create(**asked, context_management=later).output_text == "Hello."
        for wish in (
            {"context_management": [{"type": "compaction", "compact_threshold": 1}]},
            {"input": [*said, {"type": "compaction_trigger"}]},
        ):
            with pytest.raises(openai.RateLimitError, match=r"may cost 4\.[0-9]+ USD"):
                client.responses.create(**asked | wish)


def test_official_sdks_read_the_refusal(upstream: Upstream, tmp_path: Path) -> None:
    with gateway(upstream, tmp_path, {"scope": "all", "amount": 0, "period": "day"}) as running:
        base, key = running.url, "key-of-ada"
        with openai.OpenAI(base_url=f"{base}/v1", api_key=key) as client:
            with pytest.raises(openai.RateLimitError) as found:
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
            with pytest.raises(openai.RateLimitError) as answered:
                client.responses.create(model="m", input="Hi")
        with anthropic.Anthropic(base_url=base, api_key=key) as claude, pytest.raises(anthropic.RateLimitError) as told:
            claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        google = genai.Client(api_key=key, http_options=genai.types.HttpOptions(base_url=base))
        with pytest.raises(genai_errors.ClientError) as gemini:
            google.models.generate_content(model="m", contents="Hi")
        google.close()
        body: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"authorization": f"Bearer {key}"}
        ollama = httpx2.post(f"{base}/api/chat", json=body, headers=headers, timeout=TIMEOUT)
    assert (found.value.type, found.value.code) == ("insufficient_quota", "insufficient_quota")
    assert answered.value.code == "insufficient_quota"
    assert told.value.status_code == 429
    assert cast("JSONObject", told.value.body)["error"]["type"] == "rate_limit_error"
    assert (gemini.value.code, gemini.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert ollama.status_code == 429
    message = "insufficient quota: the budget of this gateway (day) is used up; it begins again at "
    for said in (found.value.message, cast("JSONObject", told.value.body)["error"]["message"], gemini.value.message):
        assert message in str(said)
    assert ollama.json()["error"].startswith(message)


def test_what_nobody_answered_costs_nothing_and_what_broke_off_is_charged(tmp_path: Path) -> None:
    """A refused request gives its reservation back; the budget has what the ledger has."""
    everything = total("all", "5")
    with Upstream() as silent, gateway(silent, tmp_path, everything, upstream={"retry": {"attempts": 1}}) as running:
        assert send(running).status_code >= 400
        assert send(running, {**BODY, "stream": True}).status_code >= 400
    assert use_of(tmp_path, budget_of(everything)) == BudgetUse()


def test_all_scopes_are_charged_and_a_stream_like_a_whole_answer(upstream: Upstream, tmp_path: Path) -> None:
    wanted = [
        total(scope, "100") for scope in ("all", "tenant:ada", "tenant:ben", "model:m*", "model:x", "upstream:up")
    ]
    with gateway(upstream, tmp_path, *wanted) as running:
        assert send(running).status_code == 200
        assert "[DONE]" in send(running, {**BODY, "stream": True}).text
        assert send(running, {**BODY, "model": "free"}).status_code == 200
    spent = [use_of(tmp_path, budget_of(one)) for one in wanted]
    assert spent == [BudgetUse(cost * COST) for cost in (2, 2, 0, 2, 0, 2)]


def test_a_budget_that_warns_lets_requests_pass(
    upstream: Upstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "xenoglot.gateway")
    with gateway(upstream, tmp_path, total("all", "0.15", on_exceeded="warn", warn_at=50)) as running:
        told = [send(running) for _ in range(4)]
    assert [one.status_code for one in told] == [200] * 4
    assert [one.headers.get("x-xenoglot-budget-warning") for one in told] == [None, *["exceeded: all total"] * 3]
    name = budget_of(total("all", "1")).id
    fields = {"budget": name, "scope": "all", "period": "total", "currency": "USD"}
    amounts = {"amount": 150_000, "spent": COST, "reserved": 100_500}
    formatter = JSONFormatter(str)
    lines = [json.loads(formatter.format(record)) for record in caplog.records if hasattr(record, "event")]
    assert [{key: line[key] for key in line if key not in ("time", "logger")} for line in lines] == [
        {
            "level": "warning",
            "event": f"budget_{event}",
            "message": f"budget {event}: {name} (all, total): spent 0.110000, reserved 0.100500 of 0.150000 USD",
            **fields,
            **amounts,
        }
        for event in ("exceeded", "warning")
    ]


def test_a_budget_reroutes_to_a_cheaper_model(upstream: Upstream, tmp_path: Path) -> None:
    models: list[JSON] = [{"name": "m", "upstream": "up"}, {"name": "small", "upstream": "up", "model": "free"}]
    with gateway(upstream, tmp_path, total("model:m", "0.15", on_exceeded="route:small"), models=models) as running:
        told = [send(running) for _ in range(3)]
        stream = send(running, {**BODY, "stream": True})
    assert [one.headers["x-xenoglot-target"] for one in told] == ["up/m", "up/free", "up/free"]
    assert [one.headers.get("x-xenoglot-substituted-model") for one in told] == [None, "free", "free"]
    assert stream.headers["x-xenoglot-target"] == "up/free"
    assert "[DONE]" in stream.text
    assert use_of(tmp_path, budget_of(total("model:m", "1"))) == BudgetUse(COST)


def test_another_target_answers_when_the_budget_of_an_upstream_is_used_up(upstream: Upstream, tmp_path: Path) -> None:
    models: list[JSON] = [{"name": "m", "strategy": "ordered", "targets": [{"upstream": "up"}, {"upstream": "spare"}]}]
    upstreams: JSONObject = {name: {"dialect": "chat", "base_url": upstream.url} for name in ("up", "spare")}
    wanted = [total("upstream:up", "0.15"), total("upstream:spare", "0.15")]
    with gateway(upstream, tmp_path, *wanted, models=models, upstreams=upstreams) as running:
        told = [send(running) for _ in range(3)]
    assert [one.headers.get("x-xenoglot-target") for one in told] == ["up/m", "spare/m", None]
    assert told[2].status_code == 429
    assert "upstream" not in told[2].text
    assert "x-xenoglot-budget-remaining" not in told[2].headers
    assert [use_of(tmp_path, budget_of(one)) for one in wanted] == [BudgetUse(COST)] * 2


@pytest.mark.parametrize(("setting", "status"), [("allow", 200), ("refuse", 403)])
def test_an_unknown_price_is_counted_or_refused(upstream: Upstream, tmp_path: Path, setting: str, status: int) -> None:
    with gateway(upstream, tmp_path, total("all", "1"), ledger={"unpriced": setting}) as running:
        answer = send(running, {**BODY, "model": "unknown"})
    assert answer.status_code == status
    assert use_of(tmp_path, budget_of(total("all", "1"))) == BudgetUse(unpriced=int(status == 200))


def test_a_budget_of_the_store_works_within_seconds_and_its_use_is_what_the_ledger_has(
    upstream: Upstream, tmp_path: Path
) -> None:
    one = budget_of(total("tenant:ada", "0.30"))

    async def put() -> None:
        store = SQLite(tmp_path / "state.db")
        await store.write(budgets.put(one, Change(id="aud_1", at=1.0, actor="tester")))
        await store.aclose()

    with gateway(upstream, tmp_path) as running:
        assert [send(running).status_code for _ in range(2)] == [200, 200]
        asyncio.run(put())
        statuses = [200]
        while statuses[-1] == 200 and len(statuses) < 1000:
            statuses.append(send(running).status_code)
    assert statuses[-1] == 429


def test_metrics_have_what_remains(upstream: Upstream, tmp_path: Path) -> None:
    with gateway(upstream, tmp_path, total("all", "1")) as running:
        assert send(running).status_code == 200
        remains = ""
        while "0.89" not in remains:
            told = httpx2.get(f"{running.url}/metrics", headers={"authorization": "Bearer key-of-ada"}, timeout=TIMEOUT)
            remains = next((row for row in told.text.splitlines() if row.startswith("xenoglot_budget_remaining")), "")
    name = budget_of(total("all", "1")).id
    labels = f'budget="{name}",scope="all",period="total",currency="USD"'
    assert remains == f"xenoglot_budget_remaining{{{labels}}} 0.89"
