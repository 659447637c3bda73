"""Health of a target: circuit breaker, retry budget, and API keys that are cooling down.

    closed ---- too many failures ----> open ---- its time is over ----> half_open
      ^                                   ^                                  |
      |                                   +------ a probe failed ------------+
      +---------------------- a probe succeeded -----------------------------+

Every change of state begins a new era. A request that is let through gets the number of the era as a ticket and returns
it with the outcome. Outcomes of past eras do not count: a request from before an outage does not show its end.
A target that fails again soon after it was let in again stays out twice as long, and so on up to a limit.
"""

from __future__ import annotations

import math
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from xenoglot.policy.affinity import rendezvous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.failure import Failure


SLOTS = 30
"""Into how many slots a window is cut: what it holds is between (SLOTS - 1) / SLOTS of it and the whole."""


class RollingCounter:
    """Counts of `kinds` kinds of things in the last `seconds`; a clock that steps back stands still here."""

    __slots__ = ("_first", "_length", "_next", "_slot", "_slots", "totals")

    def __init__(self, seconds: float, kinds: int) -> None:
        self.totals = [0] * kinds
        """What the window holds since `roll` was last called."""
        self._length = seconds / SLOTS
        self._slots: deque[tuple[int, list[int]]] = deque()
        self._slot: list[int] = []
        """The counts of the last slot."""
        self._first = self._next = 0.0
        """Start of the last slot and of the next one; until then no slot expires."""

    def add(self, now: float, kind: int) -> None:
        """Count one thing of `kind` at `now`, in seconds of any clock."""
        if not self._first <= now < self._next:
            self._begin_slot(now)
        self._slot[kind] += 1
        self.totals[kind] += 1

    def _begin_slot(self, now: float) -> None:
        """Have a slot for what is counted at `now`, and let go of what is too long ago."""
        slot = self.roll(now)
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append((slot, [0] * len(self.totals)))
        self._slot = self._slots[-1][1]
        self._first, self._next = slot * self._length, (slot + 1) * self._length

    def roll(self, now: float) -> int:
        """Let go of what is too long ago; return the number of the slot that `now` is in."""
        slot = math.floor(now / self._length)
        if self._slots:
            slot = max(slot, self._slots[-1][0])
        while self._slots and self._slots[0][0] <= slot - SLOTS:
            for kind, count in enumerate(self._slots.popleft()[1]):
                self.totals[kind] -= count
        if not self._slots:
            self._first = self._next = 0.0
        return slot

    def clear(self) -> None:
        """Forget everything."""
        self._slots.clear()
        self._first = self._next = 0.0
        self.totals = [0] * len(self.totals)


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
        """Start times of the probes in progress; a probe without an outcome for a whole period loses its slot."""

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
        """A request that was let through ended without an outcome, for example because it was cancelled."""
        if ticket == self._era and self.state(now) == "half_open" and self._probes:
            self._probes.pop()

    def next_at(self, now: float) -> float:
        """Return when it may let one through: `now`, unless it is open or all probes are in progress."""
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


Seconds = Annotated[float, Meta(ge=0, le=3_600)]

_FIRST, _FURTHER = range(2)
_MOST_DOUBLINGS = 60


class Retry(Struct, frozen=True, kw_only=True):
    """How often one target is attempted, and how long to wait between attempts; times in seconds.

    Args:
        attempts: Attempts of one target, the first included, 1 to 100. Default: `2`.
        base: The longest delay before the second attempt. It doubles with each further attempt. Default: `0.5`.
        cap: The longest delay before any attempt. Default: `8.0`.
        wait_limit: The longest wait that a server may request; after a longer one there is no retry. Default: `20.0`.
        budget: Retries per request over the last minute, so that retries do not overload a failing server.
            Default: `0.2`.
        budget_floor: Retries that are allowed in addition. Default: `10`.
        resend: Whether to send a request again if the connection broke while the server may already have been working
            on it. Default: `True`.
        timeouts: Whether to retry a target that exceeded a deadline. Default: `False`.

    Example:
        >>> import xenoglot
        >>> client = xenoglot.Client("http://localhost:8000/v1", model="m", retry=xenoglot.Retry(attempts=5, cap=30))
    """

    attempts: Annotated[int, Meta(ge=1, le=100)] = 2
    """Tries of one target, the first included."""
    base: Seconds = 0.5
    """The longest wait before the second try; it doubles with every further one ..."""
    cap: Seconds = 8.0
    """... up to this."""
    wait_limit: Seconds = 20.0
    """A server that asks for a longer wait than this is not waited for."""
    budget: Annotated[float, Meta(ge=0, le=100)] = 0.2
    """Further tries for each request, over a minute of them ..."""
    budget_floor: Annotated[int, Meta(ge=0)] = 10
    """... beside as many as these."""
    resend: bool = True
    """Whether a request that a server may have begun to work on is sent again when the connection to it breaks."""
    timeouts: bool = False
    """Whether to retry a target that exceeded a deadline, and not only the others."""


def delay(retry: Retry, attempt: int, retry_after: float | None, chance: float) -> float | None:
    """Return the seconds to wait before a target is retried, or `None` if the wait would be too long.

    `attempt` is how many tries of it have failed, `retry_after` the wait that it asks for: no less is waited. On top
    comes full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): `chance`, from 0 to
    1, picks from nothing to the whole of a wait that doubles with every try. So clients who were turned away together
    do not come again together (K02).
    """
    asked = 0.0 if retry_after is None else max(0.0, retry_after)
    if asked > retry.wait_limit:
        return None
    doublings = min(max(attempt - 1, 0), _MOST_DOUBLINGS)
    return asked + chance * min(retry.cap, retry.base * 2.0**doublings)


class RetryBudget:
    """Limit of retries: `ratio` of the requests in the last `seconds`, plus `floor`.

    While everything fails, a server gets at most (1 + `ratio`) times the requests, and no retry storm (K01); while
    little fails, the limit has no effect. The window is counted in slots (`policy.target_health`).
    """

    __slots__ = ("_floor", "_ratio", "_tally")

    def __init__(self, ratio: float, floor: int, seconds: float = 60.0) -> None:
        self._ratio = ratio
        self._floor = floor
        self._tally = RollingCounter(seconds, 2)

    def earn(self, now: float) -> None:
        """A request has come."""
        self._tally.add(now, _FIRST)

    def affords(self, now: float) -> bool:
        """Return whether one more try, beyond the first, could be paid."""
        self._tally.roll(now)
        requests, further = self._tally.totals
        return further + 1 <= requests * self._ratio + self._floor

    def spend(self, now: float) -> bool:
        """Return whether one more try, beyond the first, can be afforded; if so it is paid."""
        if not self.affords(now):
            return False
        self._tally.add(now, _FURTHER)
        return True


FIRST_COOLDOWN = 10.0
"""Seconds for which a refused key rests; twice as long each time it is refused again ..."""
LONGEST_COOLDOWN = 600.0
"""... up to this, so that a key that was paid for, or put right, is found again."""
DEFAULT_RATE_LIMIT_COOLDOWN = 1.0
"""Seconds of cooling down for a key without quota, if the upstream sends none; it doubles likewise ..."""
LONGEST_RATE_LIMIT_COOLDOWN = 60.0
"""... up to this."""

_MOST_COOLDOWN_DOUBLINGS = 30


class _Key:
    __slots__ = ("cool_until", "doubtful", "picked", "refused_until", "strikes")

    def __init__(self) -> None:
        self.cool_until = -inf
        self.refused_until = -inf
        self.doubtful = False
        self.strikes = 0
        self.picked = 0

    @property
    def usable_at(self) -> float:
        """When it may be used again."""
        return max(self.cool_until, self.refused_until)

    @property
    def last_resort(self) -> float:
        """When it may be used if no other key is left; a doubtful refusal does not block it."""
        return self.cool_until if self.doubtful or self.refused_until == -inf else self.usable_at


class KeyPool:
    """The keys of one target, by their places; `now` is in seconds of a monotonic clock."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"expected a key at least, found {size}")
        self._keys = [_Key() for _ in range(size)]
        self._picks = 0

    def pick(self, now: float, *, affinity: str | None = None, busy: Sequence[int] = ()) -> int | None:
        """Return the place of the key to use, or `None` while all rest.

        With `affinity` that is the same one for the same text as long as it can be used, for prompts are cached by
        account; else the one with the fewest requests in progress (`busy`, by place), of these the one used longest
        ago.
        """
        if len(self._keys) == 1:
            return 0 if now >= self._keys[0].last_resort else None
        usable = [index for index, key in enumerate(self._keys) if now >= key.usable_at]
        if not usable:
            usable = [index for index, key in enumerate(self._keys) if now >= key.last_resort]
        if not usable:
            return None
        index = self._preferred(usable, affinity) if affinity is not None else self._least_recent(usable, busy)
        self._picks += 1
        self._keys[index].picked = self._picks
        return index

    def _preferred(self, usable: Sequence[int], affinity: str) -> int:
        return int(rendezvous(affinity, {str(index): 1.0 for index in usable})[0])

    def _least_recent(self, usable: Sequence[int], busy: Sequence[int]) -> int:
        return min(usable, key=lambda index: (busy[index] if index < len(busy) else 0, self._keys[index].picked))

    def on_failure(self, index: int, failure: Failure, now: float) -> None:
        """Let a key rest for a failure that was its own (`FailureAction.blame`), as long as such a failure takes."""
        if failure.kind == "rate_limit":
            key = self._keys[index]
            asked = failure.retry_after
            wait = (
                _doubled(DEFAULT_RATE_LIMIT_COOLDOWN, key.strikes, LONGEST_RATE_LIMIT_COOLDOWN)
                if asked is None
                else min(asked, LONGEST_COOLDOWN)
            )
            self.cool(index, now + wait)
            key.strikes += 1
        else:
            self.disable(index, now, sure=failure.cause != "forbidden" and failure.kind != "permission")

    def cool(self, index: int, until: float) -> None:
        """Its quota is used up: let it cool down until then, or longer if already set."""
        key = self._keys[index]
        key.cool_until = max(key.cool_until, until)

    def disable(self, index: int, now: float, *, sure: bool = True) -> None:
        """It was refused: let it rest, longer each time.

        Where it is not `sure` that the key is at fault (403: the request may be the reason), it is used all the same
        while no other is left: else one client could lock all others out.
        """
        key = self._keys[index]
        key.refused_until = now + _doubled(FIRST_COOLDOWN, key.strikes, LONGEST_COOLDOWN)
        key.doubtful = not sure
        key.strikes += 1

    def on_success(self, index: int) -> None:
        """It was taken: what was held against it is forgotten, but for a quota that is used up."""
        key = self._keys[index]
        key.strikes = 0
        key.refused_until = -inf

    def resting(self, now: float) -> int:
        """Return how many keys are cooling down."""
        return sum(now < key.usable_at for key in self._keys)

    def clear_at(self, now: float, *, but: int | None = None) -> float:
        """Return when nothing is held against some key other than `but`: `now`, if there is one; `inf`, if none."""
        others = (key.usable_at for index, key in enumerate(self._keys) if index != but)
        return max(now, min(others, default=inf))

    def earliest_index(self) -> int:
        """Return the index of the key whose cooling down ends first, for a target that must be used."""
        return min(range(len(self._keys)), key=lambda index: self._keys[index].last_resort)

    def next_at(self, now: float) -> float:
        """Return when a key can be used: `now`, if one can be."""
        return max(now, min(key.last_resort for key in self._keys))


def _doubled(seconds: float, times: int, longest: float) -> float:
    return min(longest, seconds * 2.0 ** min(times, _MOST_COOLDOWN_DOUBLINGS))
