"""The breaker, step by step, and beside a model of it that remembers everything."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from xenoglot.policy.target_health import SLOTS, Breaker, BreakerSettings

SETTINGS = BreakerSettings(failures=3, window=30.0, share=0.5, open_seconds=10.0, max_open_seconds=40.0, probes=1)


def opened(now: float = 0.0, settings: BreakerSettings = SETTINGS) -> Breaker:
    breaker = Breaker(settings)
    for _ in range(settings.failures):
        breaker.failed(now, breaker.allows(now))
    return breaker


def probe(breaker: Breaker, now: float, *, good: bool) -> None:
    ticket = breaker.allows(now)
    assert ticket
    if good:
        breaker.succeeded(now, ticket)
    else:
        breaker.failed(now, ticket)


def test_the_defaults() -> None:
    assert BreakerSettings() == BreakerSettings(
        failures=5, window=30.0, share=0.5, open_seconds=10.0, max_open_seconds=120.0, probes=1
    )


@pytest.mark.parametrize(
    ("field", "allowed", "refused"),
    [
        pytest.param("failures", (1, 10**9), (0,), id="failures"),
        pytest.param("window", (0.1, 3600), (0, 3600.1), id="window"),
        pytest.param("share", (0, 1), (-0.1, 1.1), id="share"),
        pytest.param("open_seconds", (0.1, 3600), (0, 3600.1), id="open_seconds"),
        pytest.param("max_open_seconds", (0.1, 86_400), (0, 86_400.1), id="max_open_seconds"),
        pytest.param("probes", (1, 10**9), (0,), id="probes"),
    ],
)
def test_r50_every_setting_has_a_range(field: str, allowed: tuple[float, ...], refused: tuple[float, ...]) -> None:
    for value in allowed:
        assert getattr(msgspec.convert({field: value}, BreakerSettings), field) == value
    for value in refused:
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({field: value}, BreakerSettings)


def test_k03_it_opens_is_half_open_and_closes() -> None:
    breaker = Breaker(SETTINGS)
    trace = []
    for now in (0.0, 1.0, 2.0):
        trace.append((breaker.state(now), bool(breaker.allows(now))))
        breaker.failed(now, breaker.allows(now))
    trace += [(breaker.state(now), bool(breaker.allows(now))) for now in (2.0, 11.9, 12.0, 12.1)]
    assert trace == [
        ("closed", True),
        ("closed", True),
        ("closed", True),
        ("open", False),
        ("open", False),
        ("half_open", True),
        ("half_open", False),
    ]


def test_k03_the_probe_decides() -> None:
    breaker = opened()
    probe(breaker, 10.0, good=True)
    assert (breaker.state(10.0), bool(breaker.allows(10.0)), bool(breaker.allows(10.0))) == ("closed", True, True)
    breaker = opened()
    probe(breaker, 10.0, good=False)
    assert breaker.state(10.0) == "open"


def test_k03_failures_that_are_few_among_many_do_not_open_it() -> None:
    breaker = Breaker(SETTINGS)
    for _ in range(4):
        breaker.succeeded(0.0, breaker.allows(0.0))
    states = []
    for _ in range(4):
        breaker.failed(0.0, breaker.allows(0.0))
        states.append(breaker.state(0.0))
    assert states == ["closed", "closed", "closed", "open"]


def test_k03_failures_of_long_ago_do_not_count() -> None:
    breaker = Breaker(SETTINGS)
    for now in (0.0, 1.0, 31.0):
        breaker.failed(now, breaker.allows(now))
    assert breaker.state(31.0) == "closed"


def test_k03_a_flapping_target_stays_out_longer_each_time() -> None:
    breaker = opened()
    now, waits = 0.0, []
    for _ in range(4):
        waits.append(breaker.next_at(now) - now)
        now = breaker.next_at(now)
        probe(breaker, now, good=False)
    assert waits == [10.0, 20.0, 40.0, 40.0]


def test_k03_who_fails_soon_after_an_outage_flaps_too() -> None:
    breaker = opened()
    probe(breaker, 10.0, good=True)
    for _ in range(3):
        breaker.failed(39.0, breaker.allows(39.0))
    assert breaker.next_at(39.0) == 39.0 + 20.0
    breaker = opened()
    probe(breaker, 10.0, good=True)
    for _ in range(3):
        breaker.failed(40.0, breaker.allows(40.0))
    assert breaker.next_at(40.0) == 40.0 + 10.0


def test_k03_a_long_outage_is_remembered_as_long() -> None:
    long = BreakerSettings(failures=1, window=1.0, open_seconds=10.0, max_open_seconds=40.0)
    breaker = opened(settings=long)
    probe(breaker, 10.0, good=True)
    breaker.failed(19.9, breaker.allows(19.9))
    assert breaker.next_at(19.9) == pytest.approx(19.9 + 20.0)


def test_k03_the_longest_time_bounds_the_first() -> None:
    breaker = opened(settings=BreakerSettings(failures=1, open_seconds=10.0, max_open_seconds=5.0))
    assert breaker.next_at(0.0) == 5.0


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 10.0), (0.5, 11.25), (1.0, 12.5)])
def test_k02_chance_spreads_the_end_of_an_outage(chance: float, wait: float) -> None:
    breaker = Breaker(SETTINGS)
    for _ in range(3):
        breaker.failed(0.0, breaker.allows(0.0), chance)
    assert breaker.next_at(0.0) == wait


def test_k02_no_more_probes_than_places() -> None:
    breaker = opened(settings=BreakerSettings(failures=3, probes=2))
    assert [bool(breaker.allows(10.0)) for _ in range(4)] == [True, True, False, False]


def test_k03_a_probe_that_was_cancelled_gives_its_place_back() -> None:
    breaker = opened()
    ticket = breaker.allows(10.0)
    assert (breaker.allows(10.0), breaker.next_at(10.0)) == (0, 20.0)
    breaker.released(10.0, ticket)
    breaker.released(10.0, ticket)
    assert breaker.next_at(10.0) == 10.0
    assert [bool(breaker.allows(10.0)) for _ in range(2)] == [True, False]


def test_k03_a_probe_that_stays_silent_gives_its_place_up() -> None:
    breaker = opened()
    assert breaker.allows(10.0)
    assert [bool(breaker.allows(now)) for now in (19.9, 20.0, 20.1)] == [False, True, False]


def test_k03_the_time_at_which_a_silent_probe_is_given_up_never_lies_in_the_past() -> None:
    breaker = opened()
    assert breaker.allows(10.0)
    assert breaker.next_at(50.0) == 50.0


def test_k03_the_place_of_the_earliest_probe_is_free_first() -> None:
    breaker = opened(settings=BreakerSettings(failures=3, probes=2))
    assert [bool(breaker.allows(now)) for now in (10.0, 13.0)] == [True, True]
    assert breaker.next_at(14.0) == 20.0
    assert [bool(breaker.allows(now)) for now in (19.9, 20.0, 22.9, 23.0)] == [False, True, False, True]


def test_k03_what_was_begun_before_an_outage_says_nothing_of_its_end() -> None:
    breaker = Breaker(SETTINGS)
    early = breaker.allows(0.0)
    for _ in range(3):
        breaker.failed(0.0, breaker.allows(0.0))
    breaker.succeeded(5.0, early)
    assert breaker.state(5.0) == "open"
    breaker.failed(9.0, early)
    assert breaker.next_at(9.0) == 10.0
    assert breaker.allows(10.0)
    breaker.released(10.0, early)
    assert breaker.allows(10.0) == 0
    breaker.succeeded(10.0, early)
    assert breaker.state(10.0) == "half_open"


def test_k03_release_of_what_is_no_probe_changes_nothing() -> None:
    breaker = Breaker(SETTINGS)
    breaker.released(0.0, breaker.allows(0.0))
    assert (breaker.state(0.0), breaker.next_at(0.0)) == ("closed", 0.0)


class BreakerModel(RuleBasedStateMachine):
    """K03: every step against a model that is told in other words: lists of all outcomes of an era, and no counters."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(SETTINGS)
        self.now = 1000.0
        self.state, self.era = "closed", 0
        self.outcomes: list[tuple[int, bool]] = []
        self.period, self.reopens_at, self.soon_until = 0.0, 0.0, 0.0
        self.probes: list[float] = []

    def enter(self, state: str) -> None:
        self.state, self.era = state, self.era + 1
        self.outcomes, self.probes = [], []

    def look(self) -> None:
        if self.state == "open" and self.now >= self.reopens_at:
            self.enter("half_open")

    def open(self) -> None:
        again = self.state == "half_open" or self.now < self.soon_until
        self.period = min(40.0, self.period * 2) if again else 10.0
        self.reopens_at = self.now + self.period
        self.enter("open")

    @rule(seconds=st.sampled_from([0.0, 0.5, 3.0, 9.5, 10.0, 25.0, 30.0, 45.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=tickets)
    def asks(self) -> tuple[int, int]:
        self.look()
        self.probes = [at for at in self.probes if self.now - at < self.period]
        allowed = self.state == "closed" or (self.state == "half_open" and len(self.probes) < 1)
        if allowed and self.state == "half_open":
            self.probes.append(self.now)
        ticket = self.breaker.allows(self.now)
        assert bool(ticket) is allowed
        return ticket, self.era if allowed else -1

    @rule(ticket=consumes(tickets), good=st.booleans())
    def ends(self, ticket: tuple[int, int], good: bool) -> None:  # noqa: FBT001 (drawn)
        if good:
            self.breaker.succeeded(self.now, ticket[0])
        else:
            self.breaker.failed(self.now, ticket[0])
        if ticket[1] != self.era:
            return
        if self.state == "half_open":
            if not good:
                self.open()
                return
            self.enter("closed")
            self.soon_until = self.now + max(30.0, self.period)
        slot = int(self.now // (30.0 / SLOTS))
        self.outcomes.append((slot, good))
        lately = [fine for at, fine in self.outcomes if at > slot - SLOTS]
        if not good and lately.count(False) >= 3 and lately.count(False) >= lately.count(True):
            self.open()

    @rule(ticket=consumes(tickets))
    def is_cancelled(self, ticket: tuple[int, int]) -> None:
        self.breaker.released(self.now, ticket[0])
        if ticket[1] == self.era and self.state == "half_open" and self.probes:
            self.probes.pop()

    @invariant()
    def agrees(self) -> None:
        self.look()
        assert self.breaker.state(self.now) == self.state

    @invariant()
    def lets_somebody_in_at_the_time_it_names(self) -> None:
        at = self.breaker.next_at(self.now)
        assert self.now <= at <= self.now + 40.0


TestBreaker = BreakerModel.TestCase
