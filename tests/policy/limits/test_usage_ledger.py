"""What is lacking, by this ledger's own books and by what somebody says who sees more."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.policy.limits.admission_queue import AdmissionQueue, QueueEntry
from xenoglot.policy.limits.usage_ledger import (
    MOST_IDLE,
    Scope,
    ScopeReservation,
    ScopeUsage,
    Shortage,
    UsageLedger,
    Window,
)

SCOPE = Scope("upstream:x", requests=(Window(9, 60.0),), tokens=(Window(100, 30.0),), concurrency=3)


def lack(ledger: UsageLedger, tokens: int = 1, now: float = 0.0) -> tuple[str, float, bool] | None:
    """What a request lacks: why, until when, and whether it may come back earlier."""
    found = ledger.shortages([SCOPE], tokens, now)
    return None if not found else (found[0].reason, found[0].ends_at, found[0].may_end_early)


def test_where_nothing_is_used_nothing_is_lacking() -> None:
    assert (lack(UsageLedger(), 100), lack(UsageLedger(), 101)) == (None, ("never", inf, False))


def test_tokens_come_back_as_long_as_anybody_is_under_way() -> None:
    ledger = UsageLedger()
    taken = ledger.reserve([SCOPE], 90, 0.0)
    assert lack(ledger, 11, 10.0) == ("window", 30.0, True)
    ledger.release(taken, None, 10.0)
    assert (lack(ledger, 11, 10.0), lack(ledger, 10, 10.0)) == (("window", 30.0, False), None)


def test_requests_do_not_come_back() -> None:
    ledger = UsageLedger()
    for _ in range(9):
        ledger.reserve([SCOPE], 0, 0.0)
    assert (lack(ledger, 0, 1.0), lack(ledger, 0, 60.0)) == (("window", 60.0, False), ("places", inf, False))


def test_all_windows_hold_together() -> None:
    ledger, scope = (
        UsageLedger(),
        Scope("key:a", requests=(Window(1, 2.0), Window(2, 10.0)), tokens=(Window(9, 1.0),) * 2),
    )
    found = []
    for now in (0.0, 1.0, 2.0, 4.0, 10.0):
        lacks = ledger.shortages([scope], 9, now)
        found.append(lacks[0].ends_at if lacks else now)
        if not lacks:
            ledger.release(ledger.reserve([scope], 9, now), 0, now)
    assert found == [0.0, 2.0, 2.0, 10.0, 10.0]


def test_all_windows_of_tokens_hold_together() -> None:
    ledger, scope = UsageLedger(), Scope("key:a", tokens=(Window(5, 2.0), Window(8, 10.0), Window(9, 1.0)))
    ledger.reserve([scope], 5, 0.0)
    assert [lack.ends_at for lack in ledger.shortages([scope], 4, 0.0)] == [10.0]


def test_places_come_back_when_somebody_leaves() -> None:
    ledger = UsageLedger()
    taken = [ledger.reserve([SCOPE], 1, 0.0) for _ in range(3)]
    assert lack(ledger) == ("places", inf, False)
    assert (ledger.release(taken[0], 0, 1.0), ledger.release(taken[0], 0, 1.0)) == (True, False)
    assert (lack(ledger), ledger.scopes["upstream:x"].slots_used) == (None, 2)


@pytest.mark.parametrize(
    ("shut", "shut_for"),
    [
        pytest.param(Shortage(SCOPE, "window", 5.0), [(1, 0.0), (1, 4.0), (9, 0.0), (9, 4.0)], id="until"),
        pytest.param(Shortage(SCOPE, "places", check_at=3.0), [(1, 0.0), (9, 0.0)], id="until-somebody-looks-again"),
        pytest.param(Shortage(SCOPE, "window", 5.0, tokens=9), [(9, 0.0), (9, 4.0)], id="for-the-larger"),
        pytest.param(Shortage(SCOPE, "window", 4.0), [(1, 0.0), (9, 0.0)], id="not-at-its-end"),
    ],
)
def test_a_scope_that_somebody_shut(shut: Shortage, shut_for: list[tuple[int, float]]) -> None:
    ledger = UsageLedger()
    ledger.close_scope(shut)
    assert [(n, now) for n in (1, 9) for now in (0.0, 4.0) if lack(ledger, n, now)] == shut_for
    assert lack(ledger, 9, 0.0) == (shut.reason, shut.ends_at, False)


def test_a_scope_is_looked_at_anew_when_somebody_leaves() -> None:
    ledger = UsageLedger()
    taken = ledger.reserve([SCOPE], 1, 0.0)
    ledger.close_scope(Shortage(SCOPE, "places", check_at=99.0))
    ledger.release(taken, 1, 1.0)
    assert lack(ledger) is None


def test_who_is_sent_back_for_a_window_that_opens_too_late_is_refused_at_once() -> None:
    room, one = AdmissionQueue(), QueueEntry(scopes=(SCOPE,), owner="a", tokens=5, deadline=30.0)
    room.submit(one, 0.0)
    assert one.reservation is not None
    room.requeue(one, [Shortage(SCOPE, "window", 40.0)], 0.0)
    assert one.failure is not None
    assert (one.failure.kind, one.failure.retry_after, one.reservation is None) == ("rate_limit", 40.0, True)
    assert room.ledger.scopes["upstream:x"].slots_used == 0


def test_how_long_places_are_held_is_a_mean_that_follows() -> None:
    ledger = UsageLedger()
    for seconds in (11.0, 0.0):
        ledger.release(ledger.reserve([SCOPE], 0, 0.0), 0, seconds, asked=False)
    assert ledger.scopes["upstream:x"].mean_slot_seconds == pytest.approx((1.0 * 0.8 + 11.0 * 0.2) * 0.8)


def test_only_what_is_idle_is_forgotten() -> None:
    ledger = UsageLedger()
    ledger.reserve([SCOPE], 1, 0.0)
    for number in range(MOST_IDLE - 1):
        ledger.shortages([Scope(f"key:{number}", concurrency=1)], 0, 0.0)
    assert len(ledger.scopes) == 1024
    ledger.reserve([Scope("key:new", concurrency=1)], 1, 100.0)
    assert [*ledger.scopes] == ["upstream:x", "key:new"]


def test_other_limits_under_the_same_name_know_the_longest_window() -> None:
    ledger = UsageLedger()
    before = Scope("key:a", requests=(Window(5, 10.0), Window(9, 60.0)))
    after = Scope("key:a", requests=(Window(2, 50.0),), tokens=(Window(9, 9.0),))
    ledger.reserve([before], 1, 0.0)
    ledger.reserve([before], 1, 20.0)
    assert [lack.ends_at for lack in ledger.shortages([after], 1, 30.0)] == [50.0]
    assert ledger.scopes["key:a"].slots_used == 2


STEPS = st.lists(st.tuples(st.sampled_from(["reserve", "release", "wait", "close"]), st.integers(0, 60)), max_size=20)


@given(STEPS, st.sampled_from([SCOPE, Scope("key:none"), Scope("key:shut", concurrency=0)]), st.integers(0, 110))
def test_what_fits_lacks_nothing(steps: list[tuple[str, int]], scope: Scope, tokens: int) -> None:
    ledger, now = UsageLedger(), 0.0
    taken: list[ScopeReservation] = []
    for step, number in steps:
        if step == "reserve":
            taken.append(ledger.reserve([scope], number, now))
        elif step == "release" and taken:
            ledger.release(taken.pop(0), number, now)
        elif step == "close":
            ledger.close_scope(Shortage(scope, "places", tokens=number))
        else:
            now += number
    room = ledger.scopes.get(scope.name, ScopeUsage(scope))
    fits, lacks = room.fits(tokens, now), room.shortage(tokens, now) is not None
    assert not (fits and lacks)
    assert fits or lacks or room.closed is not None
