"""K08: at most so much in any stretch of time of that length, held against a model that remembers every use."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.policy.limits.usage_ledger import MOST_ENTRIES, Window, WindowEntry, WindowUsage

TICKS = st.integers(0, 200).map(lambda eighths: eighths / 8)
"""Times that floating point adds without error."""


class Reference:
    """Remembers every use for ever, and adds them up anew for each question."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.uses: list[WindowEntry] = []

    def used(self, now: float) -> int:
        return sum(use.amount for use in self.uses if now - self.window.seconds < use.at <= now)

    def free_at(self, now: float, amount: int) -> float:
        times = [now, *(use.at + self.window.seconds for use in self.uses if use.at + self.window.seconds > now)]
        return min((at for at in times if self.used(at) + amount <= self.window.amount), default=inf)

    def most(self) -> int:
        """The most that was used in any window: one that begins with a use has the most."""
        return max((self.used(use.at + self.window.seconds * (1 - 2**-30)) for use in self.uses), default=0)


windows = st.builds(Window, st.integers(0, 12), st.sampled_from([0.125, 1.0, 5.0, 60.0]))
asked = st.lists(st.tuples(TICKS, st.integers(1, 6), st.sampled_from([0, 0, 1, 9])), max_size=40)
"""Uses: how long after the one before, how much, and how much of it comes back."""


@given(windows, asked)
def test_k08_a_window_is_what_its_model_is(window: Window, uses: list[tuple[float, int, int]]) -> None:
    log, model, now = WindowUsage(window), Reference(window), 0.0
    for wait, amount, returned in uses:
        now += wait
        assert (log.used(now), log.free_at(now, amount)) == (model.used(now), model.free_at(now, amount))
        if log.free_at(now, amount) > now:
            continue
        entry = log.add(now, amount)
        model.uses.append(WindowEntry(now, now, amount))
        log.take_back(entry, returned)
        model.uses[-1].amount -= min(amount, returned)
        assert model.most() <= window.amount


@given(windows, asked)
def test_k08_whoever_waits_as_told_fits_then_and_not_before(window: Window, uses: list[tuple[float, int, int]]) -> None:
    log, model, now = WindowUsage(window), Reference(window), 0.0
    for wait, amount, _ in uses:
        free_at = log.free_at(now + wait, amount)
        if free_at == inf:
            assert amount > window.amount
            continue
        if free_at > now + wait:
            assert model.used(free_at - 2**-20) + amount > window.amount
        now = free_at
        log.add(now, amount)
        model.uses.append(WindowEntry(now, now, amount))
        assert model.most() <= window.amount


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3_000)), max_size=200))
def test_k08_a_large_window_joins_uses_and_keeps_the_law(uses: list[tuple[int, int]]) -> None:
    window = Window(10_000, 64.0)
    log, model, now = WindowUsage(window), Reference(window), 0.0
    for wait, amount in uses:
        now += wait / 64
        free_at = log.free_at(now, amount)
        assert model.free_at(now, amount) <= free_at <= model.free_at(now, amount) + window.seconds / MOST_ENTRIES
        if free_at <= now:
            log.add(now, amount)
            model.uses.append(WindowEntry(now, now, amount))
        assert model.most() <= window.amount


def test_k08_a_huge_limit_needs_bounded_memory() -> None:
    log = WindowUsage(Window(10**15, 60.0))
    for number in range(50_000):
        log.add(number / 500, 1)
    assert MOST_ENTRIES * 0.9 < len(log) <= MOST_ENTRIES + 2


@pytest.mark.parametrize(
    ("amount", "apart", "entries"),
    [(1024, 0.5, 2), (1025, 0.5, 1), (1025, 1.0, 2)],
    ids=["exact", "joined", "far-enough-apart"],
)
def test_k08_only_a_large_window_joins_uses(amount: int, apart: float, entries: int) -> None:
    log = WindowUsage(Window(amount, 1024.0))
    log.add(0.0, 1)
    log.add(apart, 1)
    assert len(log) == entries


def test_k08_what_came_to_nothing_needs_no_memory() -> None:
    log = WindowUsage(Window(10, 86_400.0))
    kept = log.add(0.0, 1)
    for number in range(100):
        log.take_back(log.add(number, 2), 2)
    log.take_back(kept, 1)
    assert (len(log), log.used(200.0)) == (0, 0)


def test_k08_nothing_ever_fits_a_limit_of_zero() -> None:
    assert (WindowUsage(Window(0, 60.0)).free_at(5.0, 1), WindowUsage(Window(0, 60.0)).free_at(5.0, 0)) == (inf, 5.0)


@pytest.mark.parametrize(("at", "used"), [(59.875, 3), (60.0, 1), (61.0, 0)], ids=["before", "edge", "after"])
def test_k08_the_edge_of_a_window_is_outside(at: float, used: int) -> None:
    log = WindowUsage(Window(3, 60.0))
    log.add(0.0, 2)
    log.add(0.125, 1)
    assert log.used(at) == used


def test_u50_k08_a_clock_that_steps_back_stands_still() -> None:
    log = WindowUsage(Window(2, 60.0))
    log.add(100.0, 2)
    assert (log.used(-1e9), log.free_at(50.0, 1)) == (2, 160.0)
    log.add(0.0, 1)
    assert (log.used(159.0), log.used(160.0)) == (3, 0)


def test_k07_what_is_out_of_the_window_cannot_be_given_back() -> None:
    log = WindowUsage(Window(10, 60.0))
    old = log.add(0.0, 4)
    log.add(60.0, 4)
    log.take_back(old, 4)
    assert log.used(60.0) == 4


def test_k07_more_than_was_taken_cannot_be_given_back() -> None:
    log = WindowUsage(Window(10, 60.0))
    entry = log.add(0.0, 4)
    log.take_back(entry, 9)
    log.take_back(entry, 9)
    assert log.used(0.0) == 0


def test_what_was_used_beyond_the_limit_counts() -> None:
    log = WindowUsage(Window(10, 60.0))
    log.add(0.0, 10)
    log.add(10.0, 5)
    assert [log.free_at(10.0, amount) for amount in (0, 5, 6)] == [60.0, 60.0, 70.0]


def test_a_log_follows_another() -> None:
    older, newer = WindowUsage(Window(10, 60.0)), WindowUsage(Window(4, 30.0))
    older.add(0.0, 3)
    older.add(40.0, 3)
    newer.copy_history(older)
    assert (newer.used(45.0), newer.free_at(45.0, 2)) == (3, 70.0)
