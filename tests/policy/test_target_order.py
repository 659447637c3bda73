"""In which order targets are tried."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.policy.affinity import rendezvous
from xenoglot.policy.target_order import Strategy, TargetCandidate, TargetLoad, averaged, order

A = TargetCandidate(index=0, name="a")
B = TargetCandidate(index=1, name="b")
C = TargetCandidate(index=2, name="c")
THREE = (A, B, C)
SETTLED = 0.5
"""A chance by which nothing is explored."""


def at_home(key: str, *candidates: TargetCandidate) -> tuple[int, ...]:
    """Where rendezvous would send a group."""
    indexes = {candidate.name: candidate.index for candidate in candidates}
    weights = {candidate.name: candidate.weight for candidate in candidates}
    return tuple(indexes[name] for name in rendezvous(key, weights))


def group_of(home: TargetCandidate, *candidates: TargetCandidate) -> str:
    """A group whose home is that one."""
    return next(key for key in map(str, range(1000)) if at_home(key, *candidates)[0] == home.index)


candidates = st.lists(
    st.builds(
        TargetCandidate,
        index=st.integers(0, 50),
        name=st.sampled_from("abcd"),
        weight=st.sampled_from([0.0, 0.5, 1.0, 10.0]),
        tier=st.integers(0, 2),
    ),
    max_size=6,
    unique_by=lambda candidate: candidate.index,
)
loads = st.dictionaries(
    st.integers(0, 50), st.builds(TargetLoad, st.integers(0, 9), st.none() | st.floats(0.0, 100.0)), max_size=6
)


@given(candidates, st.sampled_from(get_args(Strategy)), loads, st.floats(0, 1, exclude_max=True), st.none() | st.text())
def test_every_target_comes_once_and_lower_tiers_first(
    given_ones: list[TargetCandidate],
    strategy: Strategy,
    states: dict[int, TargetLoad],
    chance: float,
    affinity: str | None,
) -> None:
    found = order(given_ones, strategy, states, chance, affinity)
    tiers = {candidate.index: candidate.tier for candidate in given_ones}
    assert sorted(found) == sorted(tiers)
    assert [tiers[index] for index in found] == sorted(tiers.values())
    assert order(given_ones, strategy, states, chance, affinity) == found


@pytest.mark.parametrize("strategy", ["weighted", "least_busy", "fastest"])
def test_a_target_of_weight_nothing_is_only_fallen_back_on(strategy: Strategy) -> None:
    spare = TargetCandidate(index=9, name="spare", weight=0.0)
    busy = {candidate.index: TargetLoad(99, 99.0) for candidate in THREE}
    found = {order((spare, *THREE), strategy, busy, part / 40, part % 2 * "x" or None)[-1] for part in range(40)}
    assert found == {9}


def test_what_is_not_said_of_a_target() -> None:
    assert TargetCandidate(index=0) == TargetCandidate(index=0, name="", weight=1.0, tier=0)


def test_ordered_is_as_configured_by_tier() -> None:
    late = TargetCandidate(index=7, name="late", tier=1)
    assert order((late, C, A, B), "ordered", {2: TargetLoad(99, 99.0)}, 0.3, "group") == (2, 0, 1, 7)


def test_weighted_draws_by_weight() -> None:
    heavy = TargetCandidate(index=3, name="heavy", weight=3.0)
    firsts = Counter(order((A, heavy), "weighted", {}, part / 4000)[0] for part in range(4000))
    assert firsts[3] / 4000 == pytest.approx(0.75, abs=0.03)


def test_weighted_stays_at_home() -> None:
    found = {order(THREE, "weighted", {0: TargetLoad(99)}, part / 50, "group") for part in range(50)}
    assert found == {at_home("group", *THREE)}


def test_home_does_not_move_with_the_place_in_the_configuration() -> None:
    moved = [TargetCandidate(index=index, name=name) for index, name in enumerate("xcba")]
    for key in map(str, range(50)):
        names = [moved[index].name for index in order(moved, "weighted", {}, 0.0, key) if index]
        assert names == [THREE[index].name for index in order(THREE, "weighted", {}, 0.0, key)]


def test_two_targets_of_one_name_both_get_their_share() -> None:
    twins = (A, TargetCandidate(index=4, name="a"))
    assert Counter(order(twins, "weighted", {}, part / 400)[0] > 0 for part in range(400))[True] in range(150, 250)


def test_least_busy_counts_by_weight() -> None:
    heavy = TargetCandidate(index=3, name="heavy", weight=4.0)
    states = {0: TargetLoad(2), 1: TargetLoad(3), 2: TargetLoad(1), 3: TargetLoad(3)}
    assert order((A, B, C, heavy), "least_busy", states, SETTLED) == (3, 2, 0, 1)


def test_k02_least_busy_leaves_equals_to_chance() -> None:
    firsts = Counter(order(THREE, "least_busy", {}, part / 600)[0] for part in range(600))
    assert all(count in range(150, 250) for count in firsts.values())
    assert sorted(firsts) == [0, 1, 2]


@pytest.mark.parametrize(
    ("running", "stays"),
    [
        pytest.param((0, 0, 0), True, id="K11-idle"),
        pytest.param((1, 0, 0), True, id="K11-one-more"),
        pytest.param((3, 2, 2), True, id="K11-a-bit-more"),
        pytest.param((13, 8, 8), True, id="K11-within-the-bound"),
        pytest.param((6, 3, 3), True, id="K11-at-the-bound"),
        pytest.param((7, 3, 3), False, id="K11-just-beyond-the-bound"),
        pytest.param((15, 8, 8), False, id="K11-beyond-the-bound"),
        pytest.param((3, 0, 0), False, id="K11-crowded"),
    ],
)
def test_least_busy_stays_at_home_until_it_is_crowded(running: tuple[int, int, int], stays: bool) -> None:  # noqa: FBT001 (a case)
    bound = 1.25 * sum(running) / 3 + 1
    assert (running[0] <= bound) is stays
    states = {index: TargetLoad(count) for index, count in enumerate(running)}
    assert (order(THREE, "least_busy", states, SETTLED, group_of(A, *THREE))[0] == 0) is stays


def test_a_heavy_home_is_crowded_by_its_weight() -> None:
    heavy = TargetCandidate(index=0, name="a", weight=4.0)
    key = group_of(heavy, heavy, B)
    found = [order((heavy, B), "least_busy", {0: TargetLoad(running)}, SETTLED, key)[0] for running in range(5)]
    assert found == [0, 0, 0, 1, 1]


def test_fastest_takes_the_shortest_wait() -> None:
    states = {0: TargetLoad(0, 0.5), 1: TargetLoad(0, 0.2), 2: TargetLoad(0, 0.9)}
    assert order(THREE, "fastest", states, SETTLED) == (1, 0, 2)


def test_fastest_considers_the_queue_and_the_weight() -> None:
    heavy = TargetCandidate(index=2, name="c", weight=10.0)
    states = {0: TargetLoad(0, 0.5), 1: TargetLoad(3, 0.2), 2: TargetLoad(3, 0.2)}
    assert order((A, B, heavy), "fastest", states, SETTLED) == (2, 0, 1)


def test_fastest_tries_what_it_does_not_know_but_not_with_everybody() -> None:
    states = {0: TargetLoad(0, 0.4), 1: TargetLoad(0, 0.6)}
    assert order(THREE, "fastest", states, SETTLED) == (2, 0, 1)
    assert order(THREE, "fastest", states | {2: TargetLoad(3)}, SETTLED) == (0, 1, 2)
    assert order(THREE, "fastest", {0: TargetLoad(0, 0.4), 1: TargetLoad(0, 0.9), 2: TargetLoad(2)}, SETTLED) == (
        0,
        2,
        1,
    )
    assert order(THREE, "fastest", {0: TargetLoad(2), 1: TargetLoad(0), 2: TargetLoad(1)}, SETTLED) == (1, 2, 0)


def test_fastest_looks_now_and_then_how_fast_the_others_are() -> None:
    states = {0: TargetLoad(0, 0.1), 1: TargetLoad(0, 5.0), 2: TargetLoad(0, 5.0)}
    below = {order(THREE, "fastest", states, 0.05 * part / 100)[0] for part in range(100)}
    above = {order(THREE, "fastest", states, 0.05 + part / 1000)[0] for part in range(100)}
    brim = {order(THREE, "fastest", states, 0.049 + part / 100_000)[0] for part in range(90)}
    assert brim == {0, 1, 2}
    assert (below, above) == ({0, 1, 2}, {0})
    group = group_of(B, *THREE)
    assert [order(THREE, "fastest", states, chance, group)[0] for chance in (0.0, SETTLED)] == [1, 0]


@pytest.mark.parametrize(("latency", "first"), [(0.1, 0), (0.1 * 2.0, 0), (0.1 * 2.0 + 0.01, 1)])
def test_fastest_stays_at_home_until_it_is_late(latency: float, first: int) -> None:
    states = {0: TargetLoad(0, latency), 1: TargetLoad(0, 0.1), 2: TargetLoad(0, 0.15)}
    assert order(THREE, "fastest", states, SETTLED, group_of(A, *THREE))[0] == first


def test_who_leaves_home_finds_the_others_by_their_worth() -> None:
    states = {0: TargetLoad(9), 1: TargetLoad(2), 2: TargetLoad(0)}
    assert order(THREE, "least_busy", states, SETTLED, group_of(A, *THREE)) == (2, 1, 0)


def test_an_average_of_latencies() -> None:
    assert averaged(None, 0.7) == 0.7
    assert averaged(1.0, 3.0) == 1.0 + 0.3 * 2.0
    assert averaged(3.0, 1.0) == 3.0 - 0.3 * 2.0


def test_nobody_to_choose_from() -> None:
    assert [order((), strategy, {}, 0.0) for strategy in get_args(Strategy)] == [()] * 4
