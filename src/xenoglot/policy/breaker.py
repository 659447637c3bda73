"""Circuit breaker: stops requests to a failing target, then probes it.

    closed ---- too many failures ----> open ---- its time is over ----> half_open
      ^                                   ^                                  |
      |                                   +------ a probe failed ------------+
      +---------------------- a probe succeeded -----------------------------+

Every change of state begins a new era. Whoever is let through gets the number of the era as a ticket and hands it back
with the outcome, and outcomes of past eras count no more: what was begun before an outage says nothing of its end.
A target that fails again soon after it was let in again stays out twice as long, and so on up to a limit.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from xenoglot.policy.rolling_counter import RollingCounter

State: TypeAlias = Literal["closed", "open", "half_open"]

SPREAD = 0.25
"""By up to how much of its time a breaker stays open longer, by chance: gateways do not all probe at once (K02)."""

_GOOD, _BAD = range(2)


class BreakerSettings(Struct, frozen=True, kw_only=True):
    """When a target is left alone, and for how long; times in seconds."""

    failures: Annotated[int, Meta(ge=1)] = 5
    """So many failures within the window open it ..."""
    window: Annotated[float, Meta(gt=0, le=3_600)] = 30.0
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """... if they are at least this share of all outcomes: much used, any server fails now and then."""
    open_seconds: Annotated[float, Meta(gt=0, le=3_600)] = 10.0
    """The first time it is open; every time that follows soon is twice as long ..."""
    max_open_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 120.0
    """... up to this."""
    probes: Annotated[int, Meta(ge=1)] = 1
    """Requests let through at once while it is half open."""


class Breaker:
    """One target's breaker; `now` is in seconds of a monotonic clock, the same in every call."""

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self._settings = settings or BreakerSettings()
        self._tally = RollingCounter(self._settings.window, 2)
        self._state: State = "closed"
        self._era = 1
        self._period = 0.0
        self._open_until = -inf
        """When it may be probed, while open; while closed, until when a failure comes soon after the last outage."""
        self._probes: list[float] = []
        """When those under way were let through; one that is silent for a whole period gives its place up."""

    def state(self, now: float) -> State:
        """Return how things stand; an open one whose time is over is half open from then on."""
        if self._state == "open" and now >= self._open_until:
            self._change("half_open")
        return self._state

    def allows(self, now: float) -> int:
        """Return a ticket for one request, or 0 if the target is to be left alone; a probe's place is taken by it."""
        state = self.state(now)
        if state == "half_open":
            self._probes = [at for at in self._probes if now < at + self._period]
            if len(self._probes) >= self._settings.probes:
                return 0
            self._probes.append(now)
        return 0 if state == "open" else self._era

    def succeeded(self, now: float, ticket: int) -> None:
        """The target answered one that was let through."""
        if ticket != self._era:
            return
        if self.state(now) == "half_open":
            self._change("closed")
            self._open_until = now + max(self._period, self._settings.window)
        self._tally.add(now, _GOOD)

    def failed(self, now: float, ticket: int, chance: float = 0.0) -> None:
        """The target failed one that was let through; `chance`, from 0 to 1, spreads the end of its time out."""
        if ticket != self._era:
            return
        if self.state(now) == "half_open":
            self._open(now, chance)
            return
        self._tally.add(now, _BAD)
        good, bad = self._tally.totals
        if bad >= self._settings.failures and bad >= self._settings.share * (good + bad):
            self._open(now, chance)

    def released(self, now: float, ticket: int) -> None:
        """One that was let through ended without saying anything of the target: it was cancelled, say."""
        if ticket == self._era and self.state(now) == "half_open" and self._probes:
            self._probes.pop()

    def next_at(self, now: float) -> float:
        """Return when it may let one through: `now`, unless it is open or all probes are under way."""
        state = self.state(now)
        if state == "half_open" and len(self._probes) >= self._settings.probes:
            return max(now, self._probes[0] + self._period)
        return self._open_until if state == "open" else now

    def _open(self, now: float, chance: float) -> None:
        first, longest = self._settings.open_seconds, self._settings.max_open_seconds
        soon = self._state == "half_open" or now < self._open_until
        self._period = min(max(2 * self._period, first) if soon else first, longest)
        self._open_until = now + self._period * (1 + SPREAD * chance)
        self._change("open")

    def _change(self, state: State) -> None:
        self._state = state
        self._era += 1
        self._probes.clear()
        self._tally.clear()
