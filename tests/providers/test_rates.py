"""Rates: the cost of a request in micro-units is exact, and the same as by the table."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from xenoglot.gateway.ledger.request_cost import counts_of
from xenoglot.model.response import Usage
from xenoglot.providers.costs import Prices
from xenoglot.providers.rates import Rates, micro_units, per_search, per_token

NONE = dict.fromkeys(
    ("input", "output", "cache_read", "cache_write", "audio_in", "audio_out", "searches", "extra_input", "extra_output")
)
AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
MODELS = (
    ("openai", "gpt-4o"),
    ("anthropic", "claude-sonnet-4-5"),  # dearer above 200000 tokens
    ("google", "gemini-2.5-pro"),
    ("groq", "llama-3.3-70b-versatile"),
)

prices = st.decimals(0, 100, places=6, allow_nan=False)
counts = st.integers(0, 400_000)


@given(given=prices, made=prices, read=prices, tokens=st.tuples(counts, counts, counts))
def test_the_cost_is_exact_and_rounded_once(
    given: Decimal, made: Decimal, read: Decimal, tokens: tuple[int, int, int]
) -> None:
    fresh, cached, output = tokens
    rates = Rates(input=per_token(given), output=per_token(made), cache_read=per_token(read))
    cost = rates.cost(NONE | {"input": fresh + cached, "output": output, "cache_read": cached})
    exact = fresh * Fraction(given) + cached * Fraction(read) + output * Fraction(made)
    assert cost is not None
    assert abs(cost - exact) <= Fraction(1, 2)


@pytest.mark.parametrize(("provider", "model"), MODELS)
@given(fresh=counts, read=counts, made=counts)
def test_rates_cost_what_the_table_says(provider: str, model: str, fresh: int, read: int, made: int) -> None:
    table = Prices(packaged=True)
    rates = table.rates(model, provider=provider, at=AT)
    usage = Usage(input_tokens=fresh + read, output_tokens=made, cache_read=read, cache_write=0)
    listed = table.cost(usage, model, provider=provider, at=AT)
    assert rates is not None
    assert listed is not None
    cost = rates.cost(NONE | {"input": fresh + read, "output": made, "cache_read": read, "cache_write": 0})
    assert cost is not None
    assert abs(cost - micro_units(listed.total)) <= 1
    assert rates.source == listed.source


rate = st.none() | st.integers(0, 10**9)
few = st.none() | st.integers(0, 1000)


@given(
    rates=st.builds(
        Rates, input=rate, output=rate, cache_read=rate, cache_write=rate, audio_in=rate, audio_out=rate, searches=rate
    ),
    usage=st.builds(
        Usage,
        input_tokens=few,
        output_tokens=few,
        cache_read=few,
        cache_write=few,
        reasoning=few,
        input_audio=few,
        output_audio=few,
    ),
    above=st.none() | st.integers(0, 1000),
)
def test_usual_usage_costs_the_same_by_itself(rates: Rates, usage: Usage, above: int | None) -> None:
    """`text_cost` gives the cost of `cost`, or none."""
    if above is not None:
        rates = replace(rates, above=((above, replace(rates, input=1)),))
    cost = rates.text_cost(usage)
    if cost is not None:
        assert cost == rates.cost(NONE | counts_of(usage))


def test_most_usage_is_usual() -> None:
    usual = Usage(input_tokens=12, output_tokens=3, cache_read=4, cache_write=0, reasoning=1)
    assert Rates(input=2_000_000, output=8_000_000, cache_read=500_000).text_cost(usual) == 16 + 2 + 24


def test_what_is_not_known_has_no_cost() -> None:
    rates = Rates(input=1, output=1, cache_read=1)
    assert rates.cost(NONE) is None
    assert rates.cost(NONE | {"input": 1}) is None
    assert rates.cost(NONE | {"input": 1, "output": 1, "cache_read": 2}) is None
    assert Prices(packaged=True).rates("no-such-model", provider="openai", at=AT) is None
    assert Prices(packaged=False).rates("gpt-4o", provider="openai", at=AT) is None


def test_searches_and_tokens_billed_apart_count() -> None:
    rates = Rates(input=per_token(Decimal(3)), output=per_token(Decimal(15)), searches=per_search(Decimal(10)))
    given = NONE | {"input": 100, "output": 10, "searches": 2, "extra_input": 1000, "extra_output": 20}
    assert rates.cost(given) == 1100 * 3 + 30 * 15 + 2 * 10_000


@pytest.mark.parametrize(("amount", "micro"), [(0.0, 0), (1.5e-06, 2), (2.5e-06, 3), (0.0235, 23500), (1e3, 10**9)])
def test_amounts_become_micro_units(amount: float, micro: int) -> None:
    assert micro_units(amount) == micro
