"""Retry settings, backoff delays, and the retry budget that all requests share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from xenoglot.policy.rolling_counter import RollingCounter

Seconds = Annotated[float, Meta(ge=0, le=3_600)]

_FIRST, _FURTHER = range(2)
_MOST_DOUBLINGS = 60


class Retry(Struct, frozen=True, kw_only=True):
    """How a target is tried, and tried again; times in seconds."""

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
    """Whether a request that a server may have begun to work on is sent once more when the connection to it breaks."""
    timeouts: bool = False
    """Whether a target that let the deadline pass is asked once more itself, and not only the others."""


def delay(retry: Retry, attempt: int, retry_after: float | None, chance: float) -> float | None:
    """Return the seconds to wait before a target is tried again, or `None` where that is not worth the wait.

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
    """What further tries may cost: `ratio` of the requests in the last `seconds`, and `floor` beside.

    While everything fails, a server so gets at most (1 + `ratio`) times the requests, and no storm (K01); while little
    fails, nobody notices. The window is counted in slots (`policy.rolling_counter`).
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
