"""How long is waited between tries, and what all of them may cost together."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from xenoglot.policy.target_health import SLOTS, Retry, RetryBudget, delay

RETRY = Retry(base=0.5, cap=8.0, wait_limit=20.0)


@pytest.mark.parametrize(
    ("attempt", "retry_after", "chance", "seconds"),
    [
        pytest.param(1, None, 1.0, 0.5, id="U38-first"),
        pytest.param(2, None, 1.0, 1.0, id="U38-second"),
        pytest.param(3, None, 1.0, 2.0, id="U38-third"),
        pytest.param(5, None, 1.0, 8.0, id="U38-cap-reached"),
        pytest.param(6, None, 1.0, 8.0, id="U38-cap-kept"),
        pytest.param(10**9, None, 1.0, 8.0, id="U38-no-overflow"),
        pytest.param(0, None, 1.0, 0.5, id="U38-none-before"),
        pytest.param(3, None, 0.0, 0.0, id="K02-full-jitter-least"),
        pytest.param(3, None, 0.25, 0.5, id="K02-full-jitter"),
        pytest.param(1, 7.0, 0.0, 7.0, id="U37-asked-is-the-floor"),
        pytest.param(1, 7.0, 0.5, 7.25, id="K02-asked-and-jitter"),
        pytest.param(1, 0.0, 0.5, 0.25, id="U37-past-date"),
        pytest.param(1, -3.0, 0.5, 0.25, id="U37-negative"),
        pytest.param(1, 20.0, 0.0, 20.0, id="U37-longest"),
        pytest.param(1, 20.1, 0.0, None, id="U37-too-long"),
        pytest.param(1, float("inf"), 0.0, None, id="U37-for-ever"),
        pytest.param(1, float("nan"), 0.5, 0.25, id="U37-nan"),
    ],
)
def test_delay(attempt: int, retry_after: float | None, chance: float, seconds: float | None) -> None:
    assert delay(RETRY, attempt, retry_after, chance) == seconds


@given(st.integers(1, 100), st.none() | st.floats(0, 100), st.floats(0, 1))
def test_a_wait_is_never_shorter_than_asked_nor_longer_than_that_and_the_cap(
    attempt: int, retry_after: float | None, chance: float
) -> None:
    seconds = delay(RETRY, attempt, retry_after, chance)
    asked = retry_after or 0.0
    assert (seconds is None) == (asked > RETRY.wait_limit)
    assert seconds is None or asked <= seconds <= asked + RETRY.cap


def test_the_defaults() -> None:
    assert Retry() == Retry(
        attempts=2,
        base=0.5,
        cap=8.0,
        wait_limit=20.0,
        budget=0.2,
        budget_floor=10,
        resend=True,
        timeouts=False,
    )


@pytest.mark.parametrize(
    ("field", "allowed", "refused"),
    [
        pytest.param("attempts", (1, 100), (0, 101), id="attempts"),
        pytest.param("base", (0, 3600), (-0.1, 3600.1), id="base"),
        pytest.param("cap", (0, 3600), (-0.1, 3600.1), id="cap"),
        pytest.param("wait_limit", (0, 3600), (-0.1, 3600.1), id="wait_limit"),
        pytest.param("budget", (0, 100), (-0.1, 100.1), id="budget"),
        pytest.param("budget_floor", (0, 10**9), (-1,), id="budget_floor"),
    ],
)
def test_r50_every_setting_has_a_range(field: str, allowed: tuple[float, ...], refused: tuple[float, ...]) -> None:
    for value in allowed:
        assert getattr(msgspec.convert({field: value}, Retry), field) == value
    for value in refused:
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({field: value}, Retry)


def test_k01_a_storm_gets_its_share_and_no_more() -> None:
    """Everything fails for ten minutes, and every request would like to be tried again nine times."""
    budget = RetryBudget(0.2, 10)
    granted = 0
    for moment in range(600 * 20):
        now = moment / 20
        budget.earn(now)
        granted += sum(budget.spend(now) for _ in range(9))
    assert granted == 600 * 20 * 0.2 + 10 * 10  # the share, and the floor of ten minutes


def test_k01_the_floor_serves_the_first_of_a_quiet_minute() -> None:
    budget = RetryBudget(0.2, 3)
    budget.earn(100.0)
    assert [budget.spend(100.0) for _ in range(5)] == [True, True, True, False, False]
    assert [budget.spend(160.0) for _ in range(4)] == [True, True, True, False]


def test_k01_without_any_budget_nothing_is_tried_again() -> None:
    budget = RetryBudget(0.0, 0)
    budget.earn(0.0)
    assert budget.spend(0.0) is False


class BudgetModel(RuleBasedStateMachine):
    """K01: a budget beside a list of all that ever happened, on a clock that may step back."""

    RATIO, FLOOR, SECONDS = 0.5, 2, 30.0

    def __init__(self) -> None:
        super().__init__()
        self.budget = RetryBudget(self.RATIO, self.FLOOR, self.SECONDS)
        self.now = 0.0
        self.latest = 0
        self.requests: list[int] = []
        self.further: list[int] = []

    @property
    def slot(self) -> int:
        self.latest = max(self.latest, int(self.now // (self.SECONDS / SLOTS)))
        return self.latest

    def lately(self, slots: list[int]) -> int:
        return sum(slot > self.slot - SLOTS for slot in slots)

    @rule(seconds=st.sampled_from([-5.0, 0.1, 0.9, 1.0, 7.0, 29.0, 30.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.now = max(0.0, self.now + seconds)

    @rule(times=st.integers(1, 9))
    def requests_come(self, times: int) -> None:
        for _ in range(times):
            self.requests.append(self.slot)
            self.budget.earn(self.now)

    @rule(times=st.integers(1, 9))
    def they_fail(self, times: int) -> None:
        for _ in range(times):
            allowed = self.lately(self.further) + 1 <= self.RATIO * self.lately(self.requests) + self.FLOOR
            assert self.budget.spend(self.now) is allowed
            if allowed:
                self.further.append(self.slot)

    @invariant()
    def memory_is_bounded(self) -> None:
        assert len(self.budget._tally._slots) <= SLOTS


TestBudget = BudgetModel.TestCase
