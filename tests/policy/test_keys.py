"""Which key is taken, which rest, and for how long."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from xenoglot.model.failure import Failure
from xenoglot.policy.affinity import rendezvous
from xenoglot.policy.target_health import KeyPool

LIMITED = Failure(kind="rate_limit", message="")
REFUSED = Failure(kind="upstream", message="", cause="credentials")
FORBIDDEN = Failure(kind="upstream", message="", cause="forbidden")
UNPAID = Failure(kind="billing", message="")


def picks(pool: KeyPool, *moments: float) -> list[int | None]:
    return [pool.pick(now) for now in moments]


def rest(pool: KeyPool, now: float) -> float:
    return pool.next_at(now) - now


def test_a_pool_has_a_key() -> None:
    with pytest.raises(ValueError, match="found 0"):
        KeyPool(0)
    assert picks(KeyPool(1), 0.0, 0.0) == [0, 0]


def test_without_anything_else_they_take_turns() -> None:
    assert picks(KeyPool(3), *[0.0] * 7) == [0, 1, 2, 0, 1, 2, 0]


def test_the_idlest_is_taken() -> None:
    pool = KeyPool(3)
    assert [pool.pick(0.0, busy=busy) for busy in ((2, 0, 1), (0, 1, 1), (5, 5, 4), (1, 1, 1), (1,))] == [1, 0, 2, 1, 2]


def test_a_key_of_which_nothing_is_said_is_idle() -> None:
    assert KeyPool(3).pick(0.0, busy=(0,)) == 0


@given(st.text(), st.integers(1, 6), st.integers(0, 5))
def test_affinity_keeps_a_key_until_it_rests(text: str, size: int, gone: int) -> None:
    pool = KeyPool(size)
    names = rendezvous(text, {str(index): 1.0 for index in range(size)})
    home = pool.pick(0.0, affinity=text)
    assert [home, pool.pick(0.0, affinity=text, busy=[9] * size)] == [int(names[0])] * 2
    pool.cool(gone % size, 1.0)
    others = [int(name) for name in names if int(name) != gone % size]
    assert pool.pick(0.0, affinity=text) == (others[0] if others else None)
    assert pool.pick(1.0, affinity=text) == home


def test_u37_a_key_cools_down() -> None:
    pool = KeyPool(2)
    pool.cool(0, 10.0)
    assert picks(pool, 0.0, 0.0, 9.9, 10.0) == [1, 1, 1, 0]


def test_u37_a_longer_wait_that_was_asked_for_holds() -> None:
    pool = KeyPool(1)
    pool.cool(0, 10.0)
    pool.cool(0, 5.0)
    assert pool.next_at(0.0) == 10.0


def test_u37_when_all_rest_there_is_none() -> None:
    pool = KeyPool(2)
    pool.cool(0, 10.0)
    pool.cool(1, 7.0)
    assert (picks(pool, 0.0, 7.0), pool.next_at(0.0), pool.next_at(8.0)) == ([None, 1], 7.0, 8.0)


@pytest.mark.parametrize(
    ("failure", "rests"),
    [
        pytest.param(LIMITED, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0], id="U37-unsaid"),
        pytest.param(Failure(kind="rate_limit", message="", retry_after=7.0), [7.0, 7.0], id="U37-said"),
        pytest.param(Failure(kind="rate_limit", message="", retry_after=0.0), [0.0, 0.0], id="U37-past-date"),
        pytest.param(Failure(kind="rate_limit", message="", retry_after=1e9), [600.0], id="U37-1e9"),
        pytest.param(REFUSED, [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 600.0, 600.0], id="U40-401"),
        pytest.param(UNPAID, [10.0, 20.0, 40.0], id="U40-402"),
        pytest.param(Failure(kind="authentication", message=""), [10.0], id="U40-authentication"),
        pytest.param(FORBIDDEN, [0.0, 0.0], id="U40-403-of-the-only-key"),
        pytest.param(Failure(kind="permission", message=""), [0.0], id="U40-permission-of-the-only-key"),
    ],
)
def test_u40_it_rests_for_what_was_its_fault(failure: Failure, rests: list[float]) -> None:
    pool = KeyPool(1)
    now, found = 0.0, []
    for _ in rests:
        pool.on_failure(0, failure, now)
        found.append(rest(pool, now))
        now = pool.next_at(now)
    assert found == rests


def test_u40_no_strike_is_too_many() -> None:
    pool = KeyPool(1)
    for _ in range(2000):
        pool.on_failure(0, REFUSED, 0.0)
    assert pool.next_at(0.0) == 600.0


def test_u40_a_success_forgives() -> None:
    pool = KeyPool(1)
    pool.on_failure(0, REFUSED, 0.0)
    pool.on_failure(0, REFUSED, 0.0)
    pool.on_success(0)
    assert picks(pool, 0.0) == [0]
    pool.on_failure(0, REFUSED, 0.0)
    assert pool.next_at(0.0) == 10.0


def test_u37_a_success_refills_no_quota() -> None:
    pool = KeyPool(1)
    pool.cool(0, 10.0)
    pool.on_success(0)
    assert pool.next_at(0.0) == 10.0


def test_u40_a_forbidden_key_rests_while_there_is_another() -> None:
    pool = KeyPool(2)
    pool.on_failure(0, FORBIDDEN, 0.0)
    assert picks(pool, 0.0, 0.0, 9.9, 10.0) == [1, 1, 1, 0]


def test_u40_no_client_can_forbid_all_keys() -> None:
    pool = KeyPool(2)
    pool.on_failure(0, FORBIDDEN, 0.0)
    pool.on_failure(1, REFUSED, 0.0)
    assert (picks(pool, 0.0, 0.0), pool.next_at(0.0)) == ([0, 0], 0.0)
    pool.cool(0, 5.0)
    assert (picks(pool, 0.0, 5.0), pool.next_at(0.0)) == ([None, 0], 5.0)


def test_u40_a_key_in_doubt_is_no_reason_to_try_again_at_once() -> None:
    pool = KeyPool(1)
    pool.on_failure(0, FORBIDDEN, 0.0)
    assert [pool.clear_at(now) for now in (0.0, 10.0, 11.0)] == [10.0, 10.0, 11.0]
    assert pool.clear_at(0.0, but=0) == inf
    pair = KeyPool(2)
    pair.on_failure(0, REFUSED, 0.0)
    assert (pair.clear_at(0.0), pair.clear_at(0.0, but=0), pair.clear_at(0.0, but=1)) == (0.0, 0.0, 10.0)


def test_u40_a_refusal_is_taken_for_sure() -> None:
    pool = KeyPool(1)
    pool.disable(0, 0.0)
    assert pool.next_at(0.0) == 10.0


def test_u40_what_is_sure_takes_the_place_of_a_doubt() -> None:
    pool = KeyPool(1)
    pool.on_failure(0, FORBIDDEN, 0.0)
    pool.on_failure(0, REFUSED, 0.0)
    assert (picks(pool, 0.0), pool.next_at(0.0)) == ([None], 20.0)


class KeyPoolModel(RuleBasedStateMachine):
    """A pool beside what was said of each key: none is handed out that rests, unless it is in doubt and the last."""

    SIZE = 3

    def __init__(self) -> None:
        super().__init__()
        self.pool = KeyPool(self.SIZE)
        self.now = 0.0
        self.cool = [0.0] * self.SIZE
        self.refused = [0.0] * self.SIZE
        self.doubtful = [False] * self.SIZE
        self.strikes = [0] * self.SIZE

    def usable(self) -> set[int]:
        fresh = {key for key in range(self.SIZE) if self.now >= max(self.cool[key], self.refused[key])}
        doubted = {key for key in range(self.SIZE) if self.doubtful[key] and self.now >= self.cool[key]}
        return fresh or doubted

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0, 10.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(key=st.integers(0, 2), seconds=st.sampled_from([None, 0.0, 3.0, 60.0]))
    def is_limited(self, key: int, seconds: float | None) -> None:
        self.pool.on_failure(key, Failure(kind="rate_limit", message="", retry_after=seconds), self.now)
        wait = min(60.0, 1.0 * 2 ** self.strikes[key]) if seconds is None else seconds
        self.cool[key] = max(self.cool[key], self.now + wait)
        self.strikes[key] += 1

    @rule(key=st.integers(0, 2), sure=st.booleans())
    def is_refused(self, key: int, sure: bool) -> None:  # noqa: FBT001 (drawn)
        self.pool.disable(key, self.now, sure=sure)
        self.refused[key] = self.now + min(600.0, 10.0 * 2 ** self.strikes[key])
        self.doubtful[key] = not sure
        self.strikes[key] += 1

    @rule(key=st.integers(0, 2))
    def is_taken(self, key: int) -> None:
        self.pool.on_success(key)
        self.refused[key], self.strikes[key] = 0.0, 0

    @rule(affinity=st.none() | st.sampled_from("abc"))
    def is_asked(self, affinity: str | None) -> None:
        picked = self.pool.pick(self.now, affinity=affinity)
        assert picked in self.usable() if self.usable() else picked is None

    @invariant()
    def names_the_time_of_the_next(self) -> None:
        at = self.pool.next_at(self.now)
        assert (at == self.now) is bool(self.usable())
        self.now, before = at, self.now
        assert self.usable()
        self.now = before


TestKeyPool = KeyPoolModel.TestCase
