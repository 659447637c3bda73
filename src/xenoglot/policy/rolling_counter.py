"""Rolling counter: counts events of the last seconds in time slots, in bounded memory."""

from __future__ import annotations

import math
from collections import deque

SLOTS = 30
"""Into how many slots a window is cut: what it holds is between (SLOTS - 1) / SLOTS of it and the whole."""


class RollingCounter:
    """Counts of `kinds` kinds of things in the last `seconds`; a clock that steps back stands still here."""

    __slots__ = ("_first", "_length", "_next", "_slots", "totals")

    def __init__(self, seconds: float, kinds: int) -> None:
        self.totals = [0] * kinds
        """What the window holds since `roll` was last called."""
        self._length = seconds / SLOTS
        self._slots: deque[tuple[int, list[int]]] = deque()
        self._first = self._next = 0.0
        """When the last slot begins, and the one behind it: for as long there is nothing to let go of."""

    def add(self, now: float, kind: int) -> None:
        """Count one thing of `kind` at `now`, in seconds of any clock."""
        if not self._slots or not self._first <= now < self._next:
            self._begin_slot(now)
        self._slots[-1][1][kind] += 1
        self.totals[kind] += 1

    def _begin_slot(self, now: float) -> None:
        """Have a slot for what is counted at `now`, and let go of what is too long ago."""
        slot = self.roll(now)
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append((slot, [0] * len(self.totals)))
        self._first, self._next = slot * self._length, (slot + 1) * self._length

    def roll(self, now: float) -> int:
        """Let go of what is too long ago; return the number of the slot that `now` is in."""
        slot = math.floor(now / self._length)
        if self._slots:
            slot = max(slot, self._slots[-1][0])
        while self._slots and self._slots[0][0] <= slot - SLOTS:
            for kind, count in enumerate(self._slots.popleft()[1]):
                self.totals[kind] -= count
        return slot

    def clear(self) -> None:
        """Forget everything."""
        self._slots.clear()
        self._first = self._next = 0.0
        self.totals = [0] * len(self.totals)
