"""K06-K11: a machine of requests that come, leave, give up and are sent back, beside a model of what they use."""

from __future__ import annotations

from copy import deepcopy
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from xenoglot.policy.limits.admission_queue import (
    LONGEST_RETRY,
    MOST_OVERTAKEN,
    NEVER,
    SHORTEST_RETRY,
    AdmissionQueue,
    QueueEntry,
)
from xenoglot.policy.limits.usage_ledger import Scope, Shortage, Window

SCOPES = (
    Scope("key:a", requests=(Window(5, 8.0),), concurrency=3, queue=4),
    Scope("key:b", tokens=(Window(15, 4.0), Window(25, 16.0)), queue=4),
    Scope("upstream:x", requests=(Window(2, 2.0), Window(3, 10.0)), tokens=(Window(20, 8.0),), concurrency=2, queue=6),
    Scope("upstream:y", concurrency=1, queue=3),
)
USED = st.one_of(st.none(), st.integers(0, 30))


class Use:
    """What one request was let in with, and what was used in the end."""

    def __init__(self, one: QueueEntry, at: float) -> None:
        self.one = one
        self.at = at
        self.requests = 1
        self.tokens = one.tokens
        self.is_under_way = True


def under_way(uses: list[Use], scope: Scope) -> int:
    """How many hold a place in a scope."""
    return sum(use.is_under_way for use in uses if scope in use.one.scopes)


def most(uses: list[tuple[float, int]], window: Window) -> int:
    """The most in any stretch of the window's length: one that begins with a use has the most."""
    return max((sum(n for at, n in uses if start <= at < start + window.seconds) for start, _ in uses), default=0)


class Crowd(RuleBasedStateMachine):
    """Requests of three owners into four scopes."""

    def __init__(self) -> None:
        super().__init__()
        self.room = AdmissionQueue()
        self.now = 0.0
        self.waiting: list[QueueEntry] = []
        self.uses: list[Use] = []

    def hear(self, decided: list[QueueEntry]) -> None:
        """Believe what the room says: whoever it decided about was waiting, and is in or refused."""
        for one in decided:
            assert one.is_decided
            if one.reservation is not None:
                assert one in self.waiting
                self.uses.append(Use(one, self.now))
            self.waiting = [other for other in self.waiting if other is not one]

    @rule(
        scopes=st.sets(st.sampled_from(SCOPES), min_size=1).map(tuple),
        owner=st.sampled_from("aab"),
        tokens=st.integers(0, 22),
        patience=st.sampled_from([0.0, 1.0, 30.0, 30.0]),
    )
    def come(self, scopes: tuple[Scope, ...], owner: str, tokens: int, patience: float) -> None:
        one = QueueEntry(scopes=scopes, owner=owner, tokens=tokens, deadline=self.now + patience)
        at_once = deepcopy(self.room).try_acquire(scopes, tokens, self.now)
        self.waiting.append(one)
        self.hear(self.room.submit(one, self.now))
        lanes = [set(other.lane) for other in self.waiting if other is not one]
        alone = all(lane.isdisjoint(one.lane) for lane in lanes)
        assert (at_once is not None) == (one.reservation is not None and alone)
        if one.failure is not None:
            self.waiting = [other for other in self.waiting if other is not one]
        impossible = any(tokens > window.amount for scope in scopes for window in scope.tokens)
        assert (one.failure is not None and one.failure.code == NEVER) == impossible
        assert patience > 0 or one.is_decided

    @precondition(lambda self: any(use.is_under_way for use in self.uses))
    @rule(data=st.data(), used=USED, asked=st.booleans())
    def leave(self, data: st.DataObject, used: int | None, asked: bool) -> None:  # noqa: FBT001  drawn
        use = data.draw(st.sampled_from([use for use in self.uses if use.is_under_way]))
        assert use.one.reservation is not None
        use.is_under_way = False
        use.requests = int(asked)
        use.tokens = use.tokens if used is None else min(use.tokens, used)  # debts are looked at below
        spent = None if used is None else use.tokens
        self.hear(self.room.release(use.one.reservation, spent, self.now, asked=asked))
        assert self.room.release(use.one.reservation, 0, self.now, asked=False) == []

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.waiting))
        self.waiting = [other for other in self.waiting if other is not one]
        self.hear(self.room.cancel(one, self.now))
        assert not one.is_decided

    @precondition(lambda self: any(use.is_under_way for use in self.uses))
    @rule(data=st.data(), scope=st.sampled_from(SCOPES), seconds=st.sampled_from([0.5, 3.0]))
    def send_back(self, data: st.DataObject, scope: Scope, seconds: float) -> None:
        use = data.draw(st.sampled_from([use for use in self.uses if use.is_under_way]))
        self.uses.remove(use)
        self.waiting.append(use.one)
        lacks = [Shortage(scope, "places", check_at=self.now + seconds)]
        self.hear(self.room.requeue(use.one, lacks, self.now))
        self.waiting = [other for other in self.waiting if other.failure is None]

    @rule(seconds=st.integers(1, 24).map(lambda eighths: eighths / 8))
    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while (soonest := self.room.next_at(self.now)) is not None and soonest <= until:
            assert soonest > self.now
            self.now = soonest
            self.hear(self.room.advance(self.now))
        self.now = until
        for one in [one for one in self.waiting if one.deadline <= until]:
            self.hear(self.room.expire(one, self.now))
            if one.failure is not None:
                self.waiting = [other for other in self.waiting if other is not one]
                assert one.failure.retry_after is not None
                assert one.failure.retry_after > 0

    @invariant()
    def no_window_ever_holds_more(self) -> None:
        for scope in SCOPES:
            mine = [use for use in self.uses if scope in use.one.scopes]
            for window in scope.requests:
                assert most([(use.at, use.requests) for use in mine], window) <= window.amount
            for window in scope.tokens:
                assert most([(use.at, use.tokens) for use in mine], window) <= window.amount

    @invariant()
    def no_more_are_under_way_than_places(self) -> None:
        for scope in SCOPES:
            assert under_way(self.uses, scope) <= (inf if scope.concurrency is None else scope.concurrency)
            room = self.room.ledger.scopes.get(scope.name)
            assert room is None or room.slots_used == under_way(self.uses, scope)

    @invariant()
    def who_waits_is_waited_for(self) -> None:
        assert sorted(one.number for one in self.room) == sorted(one.number for one in self.waiting)
        for scope in SCOPES:
            assert sum(scope.name in one.short_of for one in self.waiting) <= scope.queue

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """Who could come in is in, unless somebody of its lane, or who was passed too often, is before it."""
        held_up = any(one.overtaken >= MOST_OVERTAKEN for one in self.waiting)
        for one in self.waiting:
            first = not any(o.number < one.number for o in self.waiting if (o.owner, o.lane) == (one.owner, one.lane))
            fits = not self.room.ledger.shortages(one.scopes, one.tokens, self.now)
            window = self.room.next_at(self.now)
            assert held_up or not first or not fits or (window is not None and window <= self.now)

    def teardown(self) -> None:
        """When all have left, and time has passed, nothing is used of anything."""
        for one in list(self.waiting):
            self.hear(self.room.cancel(one, self.now))
            self.waiting = [other for other in self.waiting if other is not one]
        for use in self.uses:
            assert use.one.reservation is not None
            self.room.release(use.one.reservation, None, self.now)
        assert len(self.room) == 0
        assert all(room.is_idle(self.now + 100.0) for room in self.room.ledger.scopes.values())


Crowd.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
test_k06_to_k11_a_crowd = pytest.mark.filterwarnings("default")(Crowd.TestCase)


def applicant(owner: str, *scopes: Scope, tokens: int = 0, until: float = 30.0) -> QueueEntry:
    return QueueEntry(scopes=scopes, owner=owner, tokens=tokens, deadline=until)


def come(room: AdmissionQueue, *people: QueueEntry, now: float = 0.0) -> list[bool]:
    """Let people come; who is in?"""
    for one in people:
        room.submit(one, now)
    return [one.reservation is not None for one in people]


def test_k06_a_flood_delays_another_by_one_turn() -> None:
    room, place = AdmissionQueue(), Scope("upstream:x", concurrency=1)
    flood = [applicant("flood", place) for _ in range(20)]
    other = applicant("other", place)
    come(room, *flood, other)
    assert flood[0].reservation is not None
    assert room.release(flood[0].reservation, None, 1.0) == [flood[1]]
    assert flood[1].reservation is not None
    assert room.release(flood[1].reservation, None, 2.0) == [other]


def test_k06_a_full_queue_has_room_for_another_owner() -> None:
    room, place = AdmissionQueue(), Scope("upstream:x", concurrency=1, queue=3)
    flood = [applicant("flood", place) for _ in range(5)]
    assert come(room, *flood) == [True, False, False, False, False]
    assert [one.failure.kind for one in flood if one.failure] == ["overloaded"]
    others = [applicant("other", place), applicant("other", place)]
    come(room, *others)
    assert [one.failure is None for one in (*flood, *others)] == [True, True, True, False, False, True, False]


def test_who_comes_in_at_once_holds_what_others_hold() -> None:
    room, scope = (
        AdmissionQueue(),
        Scope("key:a", requests=(Window(9, 60.0),), tokens=(Window(9, 60.0),), concurrency=2),
    )
    first = room.try_acquire((scope,), 4, 0.0)
    second = applicant("a", scope, tokens=5)
    third = applicant("a", scope, tokens=1)
    assert first is not None
    assert (come(room, second, third, now=0.0), room.try_acquire((scope,), 0, 0.0)) == ([True, False], None)
    assert room.release(first, 3, 1.0) == [third]
    assert room.release(first, 3, 1.0) == []


def test_k11_who_waits_for_one_upstream_is_in_nobodys_way_at_another() -> None:
    slow, fast, key = Scope("upstream:slow", concurrency=1), Scope("upstream:fast", concurrency=1), Scope("key:a")
    room = AdmissionQueue()
    people = [applicant("a", key, slow), applicant("a", key, slow), applicant("a", key, fast)]
    assert come(room, *people) == [True, False, True]


def test_who_waits_holds_nothing() -> None:
    x, y = Scope("upstream:x", concurrency=1), Scope("upstream:y", concurrency=1)
    room = AdmissionQueue()
    first, both, second = applicant("a", x), applicant("b", x, y), applicant("c", y)
    assert come(room, first, both, second) == [True, False, True]
    assert first.reservation is not None
    assert second.reservation is not None
    assert room.release(first.reservation, None, 1.0) == []
    assert room.release(second.reservation, None, 1.0) == [both]


def test_k06_small_ones_do_not_keep_a_large_one_out_for_ever() -> None:
    room, scope = AdmissionQueue(), Scope("upstream:x", tokens=(Window(10, 1.0),))
    come(room, applicant("small", scope, tokens=1))
    large = applicant("large", scope, tokens=10, until=1_000.0)
    come(room, large, now=0.125)
    now, passed = 0.25, 0
    while large.reservation is None and now < 100.0:
        small = applicant("small", scope, tokens=1, until=now)
        passed += come(room, small, now=now)[0]
        room.advance(now)
        now += 0.25
    assert (large.reservation is not None, passed) == (True, 64)


@pytest.mark.parametrize(
    ("scope", "tokens"),
    [
        pytest.param(Scope("key:a", tokens=(Window(10, 60.0),)), 11, id="more-than-the-window"),
        pytest.param(Scope("key:a", requests=(Window(0, 60.0),)), 1, id="K08-no-requests"),
        pytest.param(Scope("key:a", tokens=(Window(0, 60.0),)), 1, id="K08-no-tokens"),
        pytest.param(Scope("key:a", concurrency=0), 1, id="K08-no-places"),
    ],
)
def test_what_can_never_be_is_refused_at_once(scope: Scope, tokens: int) -> None:
    one = applicant("a", scope, tokens=tokens)
    come(AdmissionQueue(), one)
    assert one.failure is not None
    assert (one.failure.kind, one.failure.code, one.failure.non_retryable) == ("invalid_request", NEVER, True)
    assert (one.failure.retry_after, "this API key" in one.failure.message) == (None, True)


def test_a_window_that_opens_too_late_is_not_waited_for() -> None:
    room, scope = AdmissionQueue(), Scope("key:a", requests=(Window(1, 60.0),))
    late = applicant("a", scope, until=50.0)
    come(room, applicant("a", scope))
    come(room, late, now=20.0)
    assert late.failure is not None
    assert (late.failure.kind, late.failure.retry_after, late.rejected_by) == ("rate_limit", 40.0, "key")


def test_tokens_that_may_come_back_are_waited_for() -> None:
    room, scope = AdmissionQueue(), Scope("key:a", tokens=(Window(100, 60.0),))
    first, second = applicant("a", scope, tokens=90), applicant("a", scope, tokens=50)
    assert come(room, first, second) == [True, False]
    assert first.reservation is not None
    assert room.release(first.reservation, 20, 1.0) == [second]
    assert room.ledger.scopes["key:a"].tokens[0].used(2.0) == 70


def test_k07_more_than_reserved_is_owed() -> None:
    room, scope = AdmissionQueue(), Scope("key:a", tokens=(Window(100, 60.0),))
    first = applicant("a", scope, tokens=50)
    come(room, first)
    assert first.reservation is not None
    room.release(first.reservation, 130, 10.0)
    assert [room.ledger.scopes["key:a"].tokens[0].free_at(10.0, n) for n in (1, 20, 21)] == [60.0, 60.0, 70.0]


@pytest.mark.parametrize(("held", "expected"), [(0.001, SHORTEST_RETRY), (12.0, None), (1e6, LONGEST_RETRY)])
def test_who_is_refused_for_want_of_a_place_is_told_when(held: float, expected: float | None) -> None:
    room, scope = AdmissionQueue(), Scope("upstream:x", concurrency=1)
    now = 0.0
    for _ in range(20):
        come(room, first := applicant("a", scope), now=now)
        assert first.reservation is not None
        now += held
        room.release(first.reservation, None, now)
    first, second, third = (applicant("a", scope, until=now + 30.0) for _ in range(3))
    third.deadline = now
    come(room, first, second, third, now=now)
    assert third.failure is not None
    assert third.failure.kind == "overloaded"
    told = third.failure.retry_after
    assert told is not None
    assert told == expected if expected is not None else 20.0 < told < 24.0


def test_a_request_that_was_sent_counts_also_when_it_is_over() -> None:
    room, scope = AdmissionQueue(), Scope("key:a", requests=(Window(1, 60.0),))
    first, second, third = (applicant("a", scope, until=9.0) for _ in range(3))
    come(room, first)
    assert first.reservation is not None
    room.release(first.reservation, 0, 1.0)
    assert come(room, second, now=1.0) == [False]
    room.ledger.release(room.ledger.reserve([scope], 0, 100.0), 0, 100.0, asked=False)
    assert come(room, third, now=100.0) == [True]


@pytest.mark.parametrize("way", ["C04-gone", "sent-back"])
def test_k07_who_was_let_in_for_nothing_gives_back_all(way: str) -> None:
    room, scope = (
        AdmissionQueue(),
        Scope("key:a", requests=(Window(9, 60.0),), tokens=(Window(9, 60.0),), concurrency=1),
    )
    one, other = applicant("a", scope, tokens=9), applicant("b", scope, tokens=9)
    assert come(room, one, other) == [True, False]
    if way == "sent-back":
        decided = room.requeue(one, [Shortage(scope, "places", check_at=5.0)], 0.0)
        assert (decided, room.next_at(0.0)) == ([], 5.0)
    else:
        assert room.cancel(one, 0.0) == [other]
        assert other.reservation is not None
        room.release(other.reservation, 0, 0.0, asked=False)
    books = room.ledger.scopes["key:a"]
    assert (books.slots_used, books.requests[0].used(1.0), books.tokens[0].used(1.0)) == (0, 0, 0)
    assert room.advance(5.0) == ([one] if way == "sent-back" else [])


def test_limits_that_change_remember_what_was_used() -> None:
    room = AdmissionQueue()
    before, after = Scope("key:a", requests=(Window(5, 60.0),)), Scope("key:a", requests=(Window(2, 30.0),))
    come(room, applicant("a", before), applicant("a", before))
    late = applicant("a", after, until=5.0)
    come(room, late, now=1.0)
    assert late.failure is not None
    assert late.failure.retry_after == 29.0


def test_scopes_of_which_nothing_is_used_are_forgotten() -> None:
    room = AdmissionQueue()
    for number in range(5_000):
        one = applicant("a", Scope(f"key:{number}", requests=(Window(1, 1.0),)))
        come(room, one, now=float(number))
        assert one.reservation is not None
        room.release(one.reservation, None, float(number))
    assert len(room.ledger.scopes) <= 1025
