"""API keys of a target: which is used next, and which are cooling down after the target refused them."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from xenoglot.policy.affinity import rendezvous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.failure import Failure

FIRST_COOLDOWN = 10.0
"""Seconds for which a refused key rests; twice as long each time it is refused again ..."""
LONGEST_COOLDOWN = 600.0
"""... up to this, so that a key that was paid for, or put right, is found again."""
DEFAULT_RATE_LIMIT_COOLDOWN = 1.0
"""Seconds for which a key rests whose quota is used up, where nothing is said; it doubles likewise ..."""
LONGEST_RATE_LIMIT_COOLDOWN = 60.0
"""... up to this."""

_MOST_DOUBLINGS = 30


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
        """When it may be used if nothing else is left: a refusal that may be the request's own holds nobody up."""
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
        account; else the one with the fewest requests under way (`busy`, by place), of these the one used longest ago.
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
        """Its quota is used up: let it rest until then, or longer if that was said before."""
        key = self._keys[index]
        key.cool_until = max(key.cool_until, until)

    def disable(self, index: int, now: float, *, sure: bool = True) -> None:
        """It was refused: let it rest, longer each time.

        Where it is not `sure` that the key is at fault (403: it may be what was asked), it is used all the same while
        no other is left: else one client could lock all others out.
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

    def clear_at(self, now: float, *, but: int | None = None) -> float:
        """Return when nothing is held against some key other than `but`: `now`, if there is one; `inf`, if none."""
        others = (key.usable_at for index, key in enumerate(self._keys) if index != but)
        return max(now, min(others, default=inf))

    def earliest_index(self) -> int:
        """Return the place of the key that has rested longest of what it was to: for a target that must be asked."""
        return min(range(len(self._keys)), key=lambda index: self._keys[index].last_resort)

    def next_at(self, now: float) -> float:
        """Return when a key can be used: `now`, if one can be."""
        return max(now, min(key.last_resort for key in self._keys))


def _doubled(seconds: float, times: int, longest: float) -> float:
    return min(longest, seconds * 2.0 ** min(times, _MOST_DOUBLINGS))
