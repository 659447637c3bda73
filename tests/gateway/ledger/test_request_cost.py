"""Cost of requests: rows of the operator, the packaged table, and what has no price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.gateway.ledger.request_budget import charge
from xenoglot.gateway.ledger.request_cost import PriceList
from xenoglot.gateway.observability.request_log import RequestCost, RequestLog
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage
from xenoglot.policy.limits.money_budget import Budget, BudgetClaim
from xenoglot.testing import Upstream
from xenoglot.testing.script import Respond, ScriptRule

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import FinishReason

NOON = 1_793_534_400.0
USAGE = Usage(input_tokens=1000, output_tokens=100, cache_read=400, cache_write=0)
SOLD: JSONObject = {"provider": "anthropic", "dialect": "messages", "base_url": "http://127.0.0.1:9"}
OWN: JSONObject = {"dialect": "chat", "base_url": "http://127.0.0.1:9"}
UPSTREAMS: JSONObject = {"sold": SOLD, "own": OWN}
CATCH_ALL: list[JSON] = [{"name": "*", "upstream": "own"}]


def price_list(*rows: JSON) -> PriceList:
    plain: JSONObject = {"upstreams": UPSTREAMS, "models": CATCH_ALL, "prices": list(rows)}
    return PriceList(check(plain, {"ANTHROPIC_API_KEY": "key"}, "the tests"), lambda: NOON)


def record(upstream: str, model: str, usage: Usage | None = USAGE, finish: FinishReason | None = "stop") -> RequestLog:
    made = RequestLog("req_1", "POST", 0.0, float, backend=upstream, target=model, usage=usage)
    made.finish = finish
    return made


def test_rows_of_the_operator_come_first() -> None:
    prices = price_list(
        {"model": "small", "upstream": "own", "input": "0.15", "output": "0.6", "cache_read": "0.075"},
        {"model": "*", "input": 1, "output": 2, "currency": "EUR"},
    )
    assert prices.cost(record("own", "small")) == RequestCost(90 + 60 + 30, "USD", "own")
    assert prices.cost(record("sold", "small")) == RequestCost(1000 + 200, "EUR", "own")
    assert prices.cost(record("sold", "claude-sonnet-4-5")) == RequestCost(1200, "EUR", "own")


def test_each_call_of_a_request_has_the_price_of_its_target() -> None:
    prices = price_list(
        {"model": "small", "input": 1, "output": 2},
        {"model": "large", "input": 10, "output": 20},
        {"model": "foreign", "input": 1, "output": 1, "currency": "EUR"},
    )
    log = record("own", "small", Usage(input_tokens=10, output_tokens=5))
    log.parts += (prices.part(log, Usage(input_tokens=10, output_tokens=5)),)
    assert prices.cost(log) == RequestCost(20, "USD", "own"), "no further call was answered"
    log.backend, log.target, log.usage = "sold", "large", Usage(input_tokens=40, output_tokens=7)
    log.parts += (prices.part(log, Usage(input_tokens=40, output_tokens=7)),)
    log.backend, log.target, log.usage = "own", "small", Usage(input_tokens=41, output_tokens=8)
    assert [(part.backend, part.cost and part.cost.amount) for part in log.parts] == [("own", 20), ("sold", 340)]
    assert prices.cost(log) == RequestCost(20 + 340 + 3, "USD", "own")
    for model in ("unknown", "foreign"):
        log.target = model
        assert prices.cost(log) is None


def test_the_budget_of_an_upstream_is_charged_its_own_calls() -> None:
    prices = price_list({"model": "small", "input": 1, "output": 2}, {"model": "large", "input": 10, "output": 20})
    log = record("own", "small", Usage(input_tokens=10, output_tokens=5))
    log.parts += (prices.part(log, Usage(input_tokens=10, output_tokens=5)),)
    log.backend, log.target, log.usage, log.tries = "sold", "large", Usage(input_tokens=40, output_tokens=7), 2
    log.cost = prices.cost(log)
    budget = Budget(id="b", scope="upstream:*", amount=1000, period="total")
    claims = [BudgetClaim(budget, 1000, upstream) for upstream in ("own", "sold", "third", "")]
    assert [charge(claim, log) for claim in claims] == [20, 340, 0, 360]


def test_the_table_prices_upstreams_of_a_provider_alone() -> None:
    prices = price_list()
    found = prices.cost(record("sold", "claude-sonnet-4-5"))
    assert found == RequestCost(600 * 3 + 120 + 1500, "USD", "genai-prices: anthropic/claude-sonnet-4-5")
    assert prices.cost(record("own", "claude-sonnet-4-5")) is None
    assert prices.cost(record("sold", "no-such-model")) is None


def test_parts_with_prices_of_their_own_are_priced_by_the_table() -> None:
    """An hour's cache costs twice the input, iterations that are billed apart what others cost."""
    fields: JSONObject = {
        "iterations": [{"type": "compaction", "input_tokens": 2000, "output_tokens": 10}],
    }
    extra = Extra(dialect="messages", fields=fields)
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read=0, cache_write=500, cache_write_1h=500, extra=extra)
    found = price_list().cost(record("sold", "claude-sonnet-4-5", usage))
    assert found is not None
    assert found.amount == 500 * 3 + 500 * 6 + 1500 + 2000 * 3 + 10 * 15


@pytest.mark.parametrize(
    ("usage", "finish"),
    [
        pytest.param(None, None, id="no-usage"),
        pytest.param(Usage(input_tokens=1000), "stop", id="no-output"),
        pytest.param(Usage(input_tokens=1, output_tokens=1, cache_read=2), "stop", id="contradiction"),
    ],
)
def test_what_is_not_known_costs_null(usage: Usage | None, finish: FinishReason | None) -> None:
    prices = price_list({"model": "*", "input": 1, "output": 1, "cache_read": 1})
    assert prices.cost(record("own", "small", usage, finish)) is None


def test_an_answer_of_the_gateway_itself_has_no_cost() -> None:
    made = record("own", "small")
    made.answered_locally("quota")
    assert price_list({"model": "*", "input": 1, "output": 1}).cost(made) is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"model": "*", "input": "cheap", "output": 1}, 'prices[0].input: found "cheap"; expected a number'),
        ({"model": "*", "input": 1, "output": -1}, "prices[0].output: found -1; expected a number of at least 0"),
        ({"model": "*", "input": 1, "output": 1, "currency": "$"}, 'prices[0].currency: found "$"; expected a code'),
        ({"model": "*", "input": 1, "output": 1, "upstream": "x"}, 'prices[0].upstream: found "x"; expected one of'),
    ],
)
def test_a_mistake_in_a_price_is_named(row: JSONObject, problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        price_list(row)
    assert problem in str(raised.value)


@pytest.mark.parametrize("more", [b"", b',"completion_tokens":0,"prompt_tokens_details":null'], ids=["OpenAI", "vLLM"])
def test_embeddings_cost_their_input(more: bytes) -> None:
    """Usage of vLLM has further fields (`UsageInfo` in its `entrypoints/openai/protocol.py`)."""
    body = b'{"object":"list","model":"e","data":[{"object":"embedding","index":0,"embedding":[0.5]}],'
    body += b'"usage":{"prompt_tokens":2000,"total_tokens":2000' + more + b"}}"
    steps = (Respond(headers=(("content-type", "application/json"),), body=body),)
    rows: list[JSON] = [{"model": "*", "input": "0.02", "output": 0}]
    with Upstream(ScriptRule(steps=steps)) as server, DialectGateway(server, prices=rows) as running:
        answer = httpx2.post(f"{running.url}/v1/embeddings", json={"model": "e", "input": "Hi"}, timeout=TIMEOUT)
    assert answer.headers["x-xenoglot-cost"] == "0.000040 USD"
