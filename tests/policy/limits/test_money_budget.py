"""Money budgets: periods tile time in every zone, and a request is sent only if it fits into all budgets."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.policy.limits.money_budget import (
    HOUR,
    Budget,
    BudgetClaim,
    BudgetDecision,
    BudgetUse,
    budget_id,
    concerns,
    decide,
    is_period,
    is_scope,
    period_bounds,
    remaining,
)

BERLIN, HAVANA, LORD_HOWE = (ZoneInfo(name) for name in ("Europe/Berlin", "America/Havana", "Australia/Lord_Howe"))
NOW = datetime(2026, 11, 23, 9, 30, tzinfo=UTC).timestamp()


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("period", "zone", "now", "since", "ends"),
    [
        pytest.param("day", UTC, "2026-11-23T09:30Z", "2026-11-23T00:00Z", "2026-11-24T00:00Z", id="day"),
        pytest.param(
            "day", BERLIN, "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z", id="a day of 23 hours"
        ),
        pytest.param(
            "day", BERLIN, "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z", id="a day of 25 hours"
        ),
        pytest.param(
            "day", HAVANA, "2026-03-08T12:00Z", "2026-03-08T05:00Z", "2026-03-09T04:00Z", id="a day without a midnight"
        ),
        pytest.param(
            "day", HAVANA, "2026-11-01T05:30Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z", id="a day with two midnights"
        ),
        pytest.param(
            "day", LORD_HOWE, "2026-01-01T00:00Z", "2025-12-31T13:00Z", "2026-01-01T13:00Z", id="a zone east of UTC"
        ),
        pytest.param(
            "week", UTC, "2026-11-22T23:59Z", "2026-11-16T00:00Z", "2026-11-23T00:00Z", id="the end of a week"
        ),
        pytest.param("month", UTC, "2026-02-28T23:59Z", "2026-02-01T00:00Z", "2026-03-01T00:00Z", id="a short month"),
        pytest.param("month", UTC, "2028-02-29T00:00Z", "2028-02-01T00:00Z", "2028-03-01T00:00Z", id="a leap year"),
        pytest.param("month", UTC, "2026-12-31T23:59Z", "2026-12-01T00:00Z", "2027-01-01T00:00Z", id="a year's end"),
        pytest.param(
            "month", BERLIN, "2026-03-31T22:30Z", "2026-03-31T22:00Z", "2026-04-30T22:00Z", id="a month by its zone"
        ),
    ],
)
def test_a_calendar_period(period: str, zone: ZoneInfo, now: str, since: str, ends: str) -> None:
    bounds = period_bounds(period, zone, at(now))
    assert (bounds.since, bounds.bucket, bounds.ends) == (at(since), at(since), at(ends))


@given(
    st.sampled_from(["day", "week", "month"]),
    st.sampled_from([UTC, BERLIN, HAVANA, LORD_HOWE]),
    st.integers(0, 4_000_000_000),
)
def test_calendar_periods_follow_each_other_without_gap(period: str, zone: ZoneInfo, now: int) -> None:
    bounds = period_bounds(period, zone, now)
    assert bounds.ends is not None
    assert bounds.since <= now < bounds.ends
    assert period_bounds(period, zone, bounds.ends).since == bounds.ends
    assert period_bounds(period, zone, bounds.ends - 1) == bounds


@given(st.integers(1, 400), st.floats(0, 4e9), st.floats(0, 2_000_000))
def test_what_was_spent_in_a_rolling_window_never_comes_free_early(hours: int, spent: float, later: float) -> None:
    bucket = period_bounds(f"rolling:{hours}h", UTC, spent).bucket
    counts = bucket >= period_bounds(f"rolling:{hours}h", UTC, spent + later).since
    assert counts or later > hours * HOUR
    assert not counts or later < (hours + 1) * HOUR


def test_a_total_has_no_end() -> None:
    assert period_bounds("total", UTC, NOW) == (0, 0, None)


@pytest.mark.parametrize("period", ["", "year", "rolling", "rolling:0d", "rolling:367d", "rolling:5m", "Day", "day "])
def test_what_is_no_period(period: str) -> None:
    assert not is_period(period)


@pytest.mark.parametrize("period", ["day", "week", "month", "total", "rolling:1h", "rolling:30d", "rolling:366d"])
def test_what_is_a_period(period: str) -> None:
    assert is_period(period)


@pytest.mark.parametrize(
    ("scope", "valid"),
    [
        ("all", True),
        ("tenant:ada", True),
        ("model:qwen/*", True),
        ("tenant:", False),
        ("ada", False),
        ("key:a\n", False),
    ],
)
def test_scopes(scope: str, *, valid: bool) -> None:
    assert is_scope(scope) is valid


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("all", True),
        ("tenant:ada", True),
        ("tenant:ben", False),
        ("key:key_1", True),
        ("key:key_2", False),
        ("model:claude-*", True),
        ("model:gpt-*", False),
        ("upstream:lab", False),
    ],
)
def test_whom_a_budget_concerns(scope: str, *, expected: bool) -> None:
    assert concerns(budget(scope), "ada", "key_1", "claude-opus") is expected
    assert not concerns(budget("tenant:None"), None, None, "m")


def budget(scope: str = "all", on_exceeded: str = "refuse", amount: int = 100) -> Budget:
    return Budget(id=budget_id(scope, "day", "USD"), scope=scope, amount=amount, period="day", on_exceeded=on_exceeded)


ALL, ADA, WARN, CHEAP = budget(), budget("tenant:ada"), budget("key:k", "warn"), budget("model:m", "route:small")
LAB, SPARE = budget("upstream:lab"), budget("upstream:spare")


def decided(*claims: BudgetClaim, used: int = 80, rerouted: bool = False) -> BudgetDecision:
    uses = {claim.budget.id: BudgetUse(used - 10, 10) for claim in claims}
    return decide(claims, uses, ("lab", "spare"), rerouted=rerouted)


def test_a_request_reserves_in_all_budgets() -> None:
    claims = (BudgetClaim(ALL, 20), BudgetClaim(ADA, 20))
    assert decided(*claims) == BudgetDecision(claims)


@pytest.mark.parametrize(
    ("amount", "used", "fits"), [(20, 80, True), (21, 80, False), (0, 200, True), (None, 99, True)]
)
def test_what_fits(amount: int | None, used: int, *, fits: bool) -> None:
    refused = decided(BudgetClaim(ALL, amount), used=used).refused_by
    assert refused == (None if fits else ALL)


def test_an_unknown_price_is_refused_when_nothing_is_left() -> None:
    assert decided(BudgetClaim(ALL, None), used=100).refused_by == ALL


def test_a_budget_that_warns_is_exceeded_and_counted() -> None:
    claim = BudgetClaim(WARN, 21)
    assert decided(claim) == BudgetDecision((claim,), (WARN,))


def test_a_budget_that_reroutes_does_so_once_unless_another_refuses() -> None:
    claim = BudgetClaim(CHEAP, 21)
    assert decided(claim) == BudgetDecision(exceeded=(CHEAP,), route="small")
    assert decided(claim, rerouted=True) == BudgetDecision((claim,), (CHEAP,))
    assert decided(claim, BudgetClaim(ALL, 21)).refused_by == ALL


def test_an_upstream_whose_budget_is_exceeded_is_left_out() -> None:
    lab, spare, common = BudgetClaim(LAB, 21, "lab"), BudgetClaim(SPARE, 5, "spare"), BudgetClaim(ALL, 20)
    assert decided(common, lab, spare) == BudgetDecision((common, spare), (LAB,), frozenset({"lab"}))
    assert decided(lab, BudgetClaim(SPARE, 21, "spare")).refused_by == LAB


def test_what_remains_may_be_below_zero() -> None:
    assert remaining(ALL, BudgetUse(90, 15)) == -5
