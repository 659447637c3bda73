"""What answers cost: worked out by hand from the prices that the providers publish, and from one's own."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from xenoglot.dialects.messages.usage import decode_usage
from xenoglot.errors import ConfigurationError
from xenoglot.model.response import Usage
from xenoglot.providers import costs
from xenoglot.providers.costs import Cost, Price, Prices, sum_costs

LATE = datetime(2026, 11, 1, 12, tzinfo=UTC)
NIGHT = datetime(2026, 11, 1, 20, tzinfo=UTC)

LISTED: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, float]]] = [
    # 3 $ and 15 $ for a million tokens, a tenth for those from the cache, a quarter more for those that go there
    (
        "anthropic-caches",
        {"input_tokens": 1000, "output_tokens": 50, "cache_read": 200, "cache_write": 100},
        {"model": "claude-sonnet-4-5", "provider": "anthropic"},
        {"input": 0.0021, "output": 0.00075, "cache_read": 0.00006, "cache_write": 0.000375, "total": 0.003285},
    ),
    # beyond 200,000 tokens of prompt all of them cost twice as much, an answer half as much again
    (
        "anthropic-long-prompts",
        {"input_tokens": 250_000, "output_tokens": 1000, "cache_read": 50_000, "cache_write": 0},
        {"model": "claude-sonnet-4-5", "provider": "anthropic"},
        {"input": 1.2, "output": 0.0225, "cache_read": 0.03, "total": 1.2525},
    ),
    (
        "anthropic-at-the-edge",
        {"input_tokens": 200_000, "output_tokens": 0, "cache_read": 0, "cache_write": 0},
        {"model": "claude-sonnet-4-5", "provider": "anthropic"},
        {"input": 0.6, "total": 0.6},
    ),
    # 1.25 $ and 10 $, a tenth for cached ones; reasoning is part of the answer
    (
        "openai-caches-and-reasoning",
        {"input_tokens": 10_000, "output_tokens": 2000, "cache_read": 8000, "reasoning": 1900},
        {"model": "gpt-5", "provider": "openai"},
        {"input": 0.0025, "output": 0.02, "cache_read": 0.001, "total": 0.0235},
    ),
    (
        "openai-flex",
        {"input_tokens": 10_000, "output_tokens": 2000, "cache_read": 8000},
        {"model": "gpt-5", "provider": "openai", "service_tier": "flex"},
        {"input": 0.00125, "output": 0.01, "cache_read": 0.0005, "total": 0.01175},
    ),
    (
        "openai-default-tier",
        {"input_tokens": 1_000_000, "output_tokens": 0, "cache_read": 0},
        {"model": "gpt-5", "provider": "openai", "service_tier": "default"},
        {"input": 1.25, "total": 1.25},
    ),
    (
        "gemini-by-its-row",
        {"input_tokens": 100_000, "output_tokens": 1000, "cache_read": 0},
        {"model": "gemini-2.5-pro", "provider": "gemini"},
        {"input": 0.125, "output": 0.01, "total": 0.135},
    ),
    (
        "azure-deployments-cost-what-azure-costs",
        {"input_tokens": 1000, "output_tokens": 100, "cache_read": 0},
        {"model": "gpt-4o", "provider": "azure_deployments"},
        {"input": 0.0025, "output": 0.001, "total": 0.0035},
    ),
    (
        "by-the-name-alone",
        {"input_tokens": 1000, "output_tokens": 100, "cache_read": 0},
        {"model": "gpt-4o"},
        {"input": 0.0025, "output": 0.001, "total": 0.0035},
    ),
    (
        "nothing-is-told-apart-from-zero",
        {"input_tokens": 0, "output_tokens": 0, "cache_read": 0},
        {"model": "gpt-4o", "provider": "openai"},
        {"total": 0.0},
    ),
]
UNKNOWN: list[tuple[str, dict[str, Any] | None, dict[str, Any]]] = [
    ("c-w4-no-usage", None, {"model": "gpt-4o", "provider": "openai"}),
    ("c-w4-no-counts", {}, {"model": "gpt-4o", "provider": "openai"}),
    ("c-w4-no-output", {"input_tokens": 5}, {"model": "gpt-4o", "provider": "openai"}),
    ("c-w4-total-alone", {"total": 5}, {"model": "gpt-4o", "provider": "openai"}),
    ("c-w4-more-cached-than-there-is", {"input_tokens": 5, "output_tokens": 1, "cache_read": 6}, {"model": "gpt-4o"}),
    ("no-such-model", {"input_tokens": 5, "output_tokens": 1}, {"model": "nobody-knows-it"}),
    ("no-such-model-of-theirs", {"input_tokens": 5, "output_tokens": 1}, {"model": "zzz", "provider": "openai"}),
    ("a-server-of-ones-own", {"input_tokens": 5, "output_tokens": 1}, {"model": "gpt-4o", "provider": "vllm"}),
    ("no-model", {"input_tokens": 5, "output_tokens": 1}, {"model": None}),
]


@pytest.mark.parametrize(("counts", "asked", "expected"), [pytest.param(*rest, id=name) for name, *rest in LISTED])
def test_costs_are_those_of_the_table(
    counts: dict[str, Any], asked: dict[str, Any], expected: dict[str, float]
) -> None:
    cost = Prices().cost(Usage(**counts), asked.pop("model"), at=LATE, **asked)
    assert cost is not None
    parts = {part: getattr(cost, part) for part in ("total", "input", "output", "cache_read", "cache_write", "other")}
    assert {part: value for part, value in parts.items() if value or part == "total"} == expected
    assert (cost.currency, cost.estimated) == ("USD", False)
    assert cost.source.startswith("genai-prices: ")


@pytest.mark.parametrize(("counts", "asked"), [pytest.param(*rest, id=name) for name, *rest in UNKNOWN])
def test_what_is_not_known_costs_none(counts: dict[str, Any] | None, asked: dict[str, Any]) -> None:
    usage = None if counts is None else Usage(**counts)
    assert Prices().cost(usage, asked.pop("model"), at=LATE, **asked) is None


def test_prices_change_with_the_time_of_day() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cache_read=0)
    day = Prices().cost(usage, "deepseek-chat", provider="deepseek", at=LATE)
    night = Prices().cost(usage, "deepseek-chat", provider="deepseek", at=NIGHT)
    assert day is not None
    assert night is not None
    assert (day.total, night.total) == (0.27, 0.135)


def test_what_anthropic_counts_apart_is_charged_apart() -> None:
    wire = {
        "input_tokens": 100,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
        "output_tokens": 10,
        "server_tool_use": {"web_search_requests": 3},
    }
    cost = Prices().cost(decode_usage(wire)[0], "claude-sonnet-4-5", provider="anthropic", at=LATE)
    assert cost is not None
    # 1,000 at 3.75 $, 2,000 at 6 $ for a million; a search is a cent
    assert (cost.cache_write, cost.other, cost.input) == (0.01575, 0.03, 0.0003)
    assert cost.total == 0.0462


@pytest.mark.parametrize(
    ("usage", "model", "estimated"),
    [
        pytest.param(Usage(input_tokens=5, output_tokens=1), "gpt-4o", True, id="c-w4-nothing-said-of-caches"),
        pytest.param(Usage(input_tokens=5, output_tokens=1, cache_read=0), "gpt-4o", False, id="c-w4-none-cached"),
        pytest.param(
            Usage(input_tokens=5, output_tokens=1, cache_read=0, estimated=True), "gpt-4o", True, id="c-w4-estimated"
        ),
        pytest.param(Usage(input_tokens=5, output_tokens=1), "gpt-4", False, id="c-w4-caches-have-no-price"),
    ],
)
def test_a_cost_says_where_it_is_an_estimate(usage: Usage, model: str, estimated: bool) -> None:  # noqa: FBT001  a case
    cost = Prices().cost(usage, model, provider="openai", at=LATE)
    assert cost is not None
    assert cost.estimated is estimated


def test_own_prices_stand_before_the_table() -> None:
    mine = {"gpt-4o": Price(input=1, output="2.5"), "vllm/*": Price(input=0.1, output=0.2, cache_read=0)}
    prices = Prices(mine)
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000, cache_read=500_000)
    assert prices.cost(usage, "gpt-4o") == Cost(total=3.5, input=1.0, output=2.5, source="own")
    assert prices.cost(usage, "qwen", provider="vllm") == Cost(total=0.25, input=0.05, output=0.2, source="own")
    assert prices.cost(usage, "qwen", provider="sglang") is None


def test_own_prices_know_caches_apart() -> None:
    price = Price(input=10, output=20, cache_read=1, cache_write=12, currency="EUR")
    cost = Prices({"*": price}).cost(Usage(input_tokens=1000, output_tokens=0, cache_read=600, cache_write=300), "m")
    assert cost == Cost(total=0.0052, input=0.001, cache_read=0.0006, cache_write=0.0036, currency="EUR", source="own")
    told = Prices({"*": price}).cost(Usage(input_tokens=1000, output_tokens=0), "m")
    assert told is not None
    assert told.estimated


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param(Usage(output_tokens=1), id="no-input"),
        pytest.param(Usage(input_tokens=1), id="no-output"),
        pytest.param(Usage(input_tokens=1, output_tokens=1, cache_read=2), id="more-cached-than-there-is"),
    ],
)
def test_own_prices_of_what_was_not_counted_are_none(usage: Usage) -> None:
    assert Prices({"*": Price(input=1, output=1, cache_read=1)}).cost(usage, "m") is None


@pytest.mark.parametrize("amount", [-1, "free", float("nan"), float("inf"), "1e999999999999999999999"])
def test_what_is_no_price_is_refused(amount: float | str) -> None:
    with pytest.raises(ConfigurationError, match="`output` is no price"):
        Price(input=1, output=amount)


def test_sums_are_exact() -> None:
    total = sum_costs([Cost(total=0.1, input=0.1, source="a"), Cost(total=0.2, output=0.2, source="b", estimated=True)])
    assert total == Cost(total=0.3, input=0.1, output=0.2, source="a; b", estimated=True)


@pytest.mark.parametrize(
    "several",
    [
        pytest.param([], id="none"),
        pytest.param([Cost(total=1), None], id="one-is-not-known"),
        pytest.param([Cost(total=1), Cost(total=1, currency="EUR")], id="two-currencies"),
    ],
)
def test_what_has_no_sum_has_none(several: list[Cost | None]) -> None:
    assert sum_costs(several) is None


def test_two_currencies_are_not_added() -> None:
    with pytest.raises(ValueError, match="EUR"):
        Cost(total=1) + Cost(total=1, currency="EUR")


def test_a_cost_is_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Cost(total=0.5)))["total"] == 0.5


def test_without_the_table_own_prices_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_installed", lambda: False)
    usage = Usage(input_tokens=1_000_000, output_tokens=0)
    own = Prices({"mine": Price(input=1, output=1)}).cost(usage, "mine")
    assert own is not None
    assert own.total == 1.0
    assert Prices().cost(usage, "gpt-4o") is None
    Prices().load()
    with pytest.raises(ConfigurationError, match=r"xenoglot\[prices\]"):
        Prices(packaged=True)


def test_a_table_that_is_not_wanted_is_not_asked() -> None:
    assert Prices(packaged=False).cost(Usage(input_tokens=1, output_tokens=1), "gpt-4o") is None
