"""Sliding window limit: at most an amount in any period of that length, as a log of usage. Pure.

Theory of operation. What is used at `t` counts until `t + seconds`, where it stops: two uses exactly that far apart are
in no common window. A log of every use is exact, and grows with the amount. So the log of a larger amount than
`MOST_ENTRIES` joins uses that are closer than a `MOST_ENTRIES`th of the window, and counts them from the latest: what
is joined comes free late, by at most that much, and never early. The law holds either way.

Time is an argument, in seconds of a clock that only goes forward. Where it is given backwards, it stands still.
"""

from __future__ import annotations

from collections import deque
from math import inf

from msgspec import Struct

MOST_ENTRIES = 1024
"""Up to this amount a window is exact to the single use."""


class Window(Struct, frozen=True):
    """At most `amount` in any `seconds`."""

    amount: int
    seconds: float


class WindowEntry(Struct, eq=False):
    """What was used between `since` and `at`; it counts from `at` on, and is 0 once it does not count any more."""

    since: float
    at: float
    amount: int


class WindowUsage:
    """What was used of one window."""

    __slots__ = ("_entries", "_grain", "_latest", "_seconds", "_used", "window")

    def __init__(self, window: Window) -> None:
        self.window = window
        self._seconds = window.seconds
        self._entries: deque[WindowEntry] = deque()
        self._used = 0
        self._latest = -inf
        self._grain = 0.0 if window.amount <= MOST_ENTRIES else window.seconds / MOST_ENTRIES

    def __len__(self) -> int:
        return len(self._entries)

    def used(self, now: float) -> int:
        """Return what counts now; more than the amount where more was used than had been asked for."""
        self._expire(now)
        return self._used

    def free_at(self, now: float, amount: int) -> float:
        """Return when `amount` fits if nothing else happens: `now` or later, `inf` if never."""
        most = self.window.amount
        if amount > most:
            return inf
        self._expire(now)
        surplus = self._used + amount - most
        if surplus <= 0:
            return now
        for entry in self._entries:
            surplus -= entry.amount
            if surplus <= 0:
                return entry.at + self.window.seconds
        return inf  # out of reach: with all entries gone, `amount` fits

    def add(self, now: float, amount: int) -> WindowEntry:
        """Note a use, whether it fits or not; what is returned takes some of it back."""
        self._expire(now)
        latest, entries = self._latest, self._entries
        self._used += amount
        if self._grain and entries and latest - entries[-1].since < self._grain:
            last = entries[-1]
            last.at = latest
            last.amount += amount
            return last
        last = WindowEntry(latest, latest, amount)
        if amount:
            entries.append(last)
        return last

    def take_back(self, entry: WindowEntry, amount: int) -> None:
        """Take back what was not used after all; of what does not count any more, nothing."""
        returned = min(amount, entry.amount)
        entry.amount -= returned
        self._used -= returned
        if returned and not entry.amount and not self._grain:
            self._entries.remove(entry)  # or as many could be left of those that came to nothing

    def copy_history(self, older: WindowUsage) -> None:
        """Take over what another log of the same things knows."""
        for entry in older._entries:
            self.add(entry.at, entry.amount)

    def _expire(self, now: float) -> None:
        if now > self._latest:  # noqa: PLR1730  `max` costs as much as the rest of this
            self._latest = now
        entries = self._entries
        while entries and entries[0].at + self._seconds <= self._latest:
            entry = entries.popleft()
            self._used -= entry.amount
            entry.amount = 0
