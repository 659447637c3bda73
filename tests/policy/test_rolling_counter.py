"""Counts in a window that rolls on."""

from __future__ import annotations

from xenoglot.policy.target_health import SLOTS, RollingCounter


def counted(tally: RollingCounter, now: float) -> list[int]:
    tally.roll(now)
    return list(tally.totals)


def test_what_is_counted_leaves_with_its_slot() -> None:
    tally = RollingCounter(float(SLOTS), 2)
    for now, kind in ((0.0, 0), (0.9, 1), (1.0, 1), (5.0, 0)):
        tally.add(now, kind)
    trace = {now: counted(tally, now) for now in (5.0, 29.9, 30.0, 30.9, 31.0, 34.9, 35.0)}
    assert trace == {
        5.0: [2, 2],
        29.9: [2, 2],
        30.0: [1, 1],
        30.9: [1, 1],
        31.0: [1, 0],
        34.9: [1, 0],
        35.0: [0, 0],
    }


def test_a_slot_is_as_long_as_its_share_of_the_window() -> None:
    tally = RollingCounter(SLOTS * 4.0, 1)
    tally.add(3.0, 0)
    tally.add(4.0, 0)
    assert {now: counted(tally, now) for now in (119.9, 120.0, 123.9, 124.0)} == {
        119.9: [2],
        120.0: [1],
        123.9: [1],
        124.0: [0],
    }


def test_k08_a_clock_that_steps_back_stands_still() -> None:
    tally = RollingCounter(float(SLOTS), 1)
    for now in (8.0, 10.0, 2.0):
        tally.add(now, 0)
    assert {now: counted(tally, now) for now in (37.9, 38.0, 39.9, 40.0)} == {
        37.9: [3],
        38.0: [2],
        39.9: [2],
        40.0: [0],
    }


def test_its_memory_is_bounded() -> None:
    tally = RollingCounter(float(SLOTS), 1)
    for moment in range(10_000):
        tally.add(moment / 100, 0)
    assert len(tally._slots) == SLOTS
    for moment in range(1000):
        tally.add(100.0 - moment % 3, 0)
    assert len(tally._slots) == SLOTS


def test_it_can_forget() -> None:
    tally = RollingCounter(float(SLOTS), 2)
    tally.add(10.0, 1)
    tally.clear()
    assert counted(tally, 10.0) == [0, 0]
    tally.add(10.0, 0)
    assert (counted(tally, 39.9), counted(tally, 40.0)) == ([1, 0], [0, 0])
