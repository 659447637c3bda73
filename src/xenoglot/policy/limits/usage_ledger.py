"""Usage of limits: scopes, sliding windows, and the ledger of what is reserved and used.

Theory of operation. What is used at `t` counts until `t + seconds`, where it stops: two uses exactly that far apart are
in no common window. A log of every use is exact, and grows with the amount. So the log of a larger amount than
`MOST_ENTRIES` joins uses that are closer than a `MOST_ENTRIES`th of the window, and counts them from the latest: what
is joined comes free late, by at most that much, and never early. The law holds either way.

Time is an argument, in seconds of a clock that only goes forward. Where it is given backwards, it stands still.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Literal, TypeAlias

from msgspec import Struct

MOST_ENTRIES = 1024
"""Up to this amount a window is exact to the single use."""

UNBOUNDED = 2**62
"""The amount of a window whose limit is not known yet."""


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
        """Return what counts now; more than the amount if more was used than reserved."""
        self._expire(now)
        return self._used

    def fits(self, now: float, amount: int) -> bool:
        """Return whether `amount` fits now."""
        if now > self._latest:  # noqa: PLR1730  `max` costs as much as the rest of this
            self._latest = now
        entries = self._entries
        if entries and entries[0].at + self._seconds <= self._latest:
            self._expire(now)
        return self._used + amount <= self.window.amount

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
        if now > self._latest:  # or what does not count any more is forgotten already
            self._expire(now)
        latest, entries = self._latest, self._entries
        self._used += amount
        if self._grain and entries:
            last = entries[-1]
            if latest - last.since < self._grain:
                last.at = latest
                last.amount += amount
                return last
        last = WindowEntry(latest, latest, amount)
        if amount:
            entries.append(last)
        return last

    def take_back(self, entry: WindowEntry, amount: int) -> None:
        """Return what was not used; expired usage is not returned."""
        returned = min(amount, entry.amount)
        entry.amount -= returned
        self._used -= returned
        if returned and not entry.amount and not self._grain:
            self._entries.remove(entry)  # or as many could be left of those that came to nothing

    def copy_history(self, older: WindowUsage) -> None:
        """Take over what another log of the same things knows."""
        for entry in older._entries:
            self.add(entry.at, entry.amount)

    def mark(self) -> tuple[int, float]:
        """Return what changes with every use."""
        return self._used, self._entries[-1].at if self._entries else -inf

    def history(self, now: float, most: int) -> list[tuple[float, int]]:
        """Return what counts as ages and amounts, the oldest first; about `most` of them, joined as in a log."""
        self._expire(now)
        grain, found, since = self._seconds / most, list[tuple[float, int]](), -inf
        for entry in self._entries:
            if found and entry.at - since < grain:
                found[-1] = (now - entry.at, found[-1][1] + entry.amount)
            else:
                since = entry.since
                found.append((now - entry.at, entry.amount))
        return found

    def _expire(self, now: float) -> None:
        if now > self._latest:  # noqa: PLR1730  `max` costs as much as the rest of this
            self._latest = now
        entries = self._entries
        while entries and entries[0].at + self._seconds <= self._latest:
            entry = entries.popleft()
            self._used -= entry.amount
            entry.amount = 0


class WindowHistory(Struct, frozen=True):
    """What was used in a window of so many `seconds`: times and amounts, the oldest first."""

    seconds: float
    uses: Sequence[tuple[float, int]]


class ScopeHistory(Struct, frozen=True):
    """What was used of one scope in its longest windows."""

    requests: WindowHistory | None = None
    tokens: WindowHistory | None = None

    @property
    def seconds(self) -> float:
        """How long it may count."""
        return max((one.seconds for one in (self.requests, self.tokens) if one is not None), default=0.0)


class Scope(Struct, frozen=True):
    """The limits of one thing: a client's key, an upstream, a model.

    `name` is its kind and name (`key:OWNER`, `upstream:main`, `model:large`); requests with the same name share the
    limits. `queue` may wait for a place, each at most `queue_seconds`.
    """

    name: str
    requests: tuple[Window, ...] = ()
    tokens: tuple[Window, ...] = ()
    concurrency: int | None = None
    queue: int = 64
    queue_seconds: float = 30.0

    @property
    def kind(self) -> str:
        """What kind of thing it is: the word before the colon."""
        return self.name.partition(":")[0]


SMOOTHING = 0.2
"""How much the latest request counts in the mean of how long places are held."""

MOST_IDLE = 1024
"""Scopes that are remembered before those of which nothing is used are looked for, and forgotten."""

ShortageReason: TypeAlias = Literal["never", "window", "places"]


class Shortage(Struct, frozen=True):
    """What is missing in a scope, and when that ends if nothing else happens; `inf`: when a request ends.

    `may_end_early`: it may end earlier, because others may release what they reserved and did not use. `check_at` is
    when to check again, if its end is not reported. Requests for less than `tokens` may be admitted.
    """

    scope: Scope
    reason: ShortageReason
    ends_at: float = inf
    may_end_early: bool = False
    check_at: float | None = None
    tokens: int = 0

    def concerns(self, tokens: int, now: float) -> bool:
        """Whether it still is so, for a request of so many tokens."""
        return tokens >= self.tokens and now < (self.ends_at if self.check_at is None else self.check_at)


class ScopeReservation(Struct, eq=False):
    """What one request holds: a place in each scope, a use of each window of requests, `tokens` of each of tokens."""

    rooms: Sequence[ScopeUsage]
    tokens: int
    since: float
    uses: Sequence[tuple[WindowUsage, WindowEntry]]
    reserved: Sequence[tuple[WindowUsage, WindowEntry]]
    active: bool = True


class ScopeUsage:
    """What is used of one scope."""

    __slots__ = ("closed", "mean_slot_seconds", "requests", "scope", "slots_used", "tokens")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.requests = [WindowUsage(window) for window in scope.requests]
        self.tokens = [WindowUsage(window) for window in scope.tokens]
        self.slots_used = 0
        self.mean_slot_seconds = 1.0
        self.closed: Shortage | None = None

    def change_limits(self, scope: Scope) -> None:
        """Have other limits from now on; what was used counts for them, too."""
        self.requests = _with_history(self.requests, [WindowUsage(window) for window in scope.requests])
        self.tokens = _with_history(self.tokens, [WindowUsage(window) for window in scope.tokens])
        self.scope = scope

    def shortage(self, tokens: int, now: float) -> Shortage | None:
        """Return what is missing for one more request."""
        scope = self.scope
        if not scope.requests and not scope.tokens and scope.concurrency is None:
            return None
        requested = _free_at(self.requests, now, 1)
        reserved = _free_at(self.tokens, now, tokens)
        if inf in (requested, reserved) or scope.concurrency == 0:
            return Shortage(scope, "never")
        if requested > now or reserved > now:
            returnable = requested <= now and self.slots_used > 0
            return Shortage(scope, "window", max(requested, reserved), returnable)
        if scope.concurrency is not None and self.slots_used >= scope.concurrency:
            return Shortage(scope, "places")
        return self.closed if self.closed is not None and self.closed.concerns(tokens, now) else None

    def fits(self, tokens: int, now: float) -> bool:
        """Return whether one more request fits; if not, `shortage` decides, which alone knows of a closed scope."""
        for log in self.requests:
            if not log.fits(now, 1):
                return False
        for log in self.tokens:
            if not log.fits(now, tokens):
                return False
        most = self.scope.concurrency
        return self.closed is None and (most is None or self.slots_used < most)

    def mark(self) -> tuple[tuple[int, float], ...]:
        """Return what changes with every use."""
        return tuple(log.mark() for log in (_longest(self.requests), _longest(self.tokens)) if log is not None)

    def history(self, now: float, most: int) -> ScopeHistory:
        """Return what was used, as ages; each window has about `most` uses."""
        found = [
            None if log is None else WindowHistory(log.window.seconds, log.history(now, most))
            for log in (_longest(self.requests), _longest(self.tokens))
        ]
        return ScopeHistory(*found)

    def is_idle(self, now: float) -> bool:
        """Whether nothing would be lost with it."""
        return not self.slots_used and not any(log.used(now) for log in (*self.requests, *self.tokens))


class UsageLedger:
    """All scopes that were named, and their usage."""

    def __init__(self) -> None:
        self._scopes: dict[str, ScopeUsage] = {}
        self._sweep_at = MOST_IDLE

    @property
    def scopes(self) -> dict[str, ScopeUsage]:
        """The scopes by their names."""
        return self._scopes

    def restore(self, name: str, history: ScopeHistory, now: float) -> None:
        """Have a scope that was not used yet begin with a history, whose times are ages.

        It has no limits until a request comes with them.
        """
        if name in self._scopes:
            return
        scope = Scope(name, requests=_unbounded(history.requests), tokens=_unbounded(history.tokens))
        room = self._scopes[name] = ScopeUsage(scope)
        for logs, past in ((room.requests, history.requests), (room.tokens, history.tokens)):
            for log in logs:
                for age, amount in () if past is None else past.uses:
                    log.add(now - max(0.0, age), amount)

    def shortages(self, scopes: Sequence[Scope], tokens: int, now: float) -> list[Shortage]:
        """Return what is missing for a request of so many tokens; nothing: it may come in."""
        return [lack for scope in scopes if (lack := self._usage(scope).shortage(tokens, now)) is not None]

    def try_reserve(self, scopes: Sequence[Scope], tokens: int, now: float) -> ScopeReservation | None:
        """Reserve in all scopes, if all have capacity."""
        rooms = [self._usage(scope) for scope in scopes]
        for room in rooms:
            if not room.fits(tokens, now) and room.shortage(tokens, now) is not None:
                return None
        return self._reserve(rooms, tokens, now)

    def reserve(self, scopes: Sequence[Scope], tokens: int, now: float) -> ScopeReservation:
        """Reserve in all scopes, even without capacity."""
        return self._reserve([self._usage(scope) for scope in scopes], tokens, now)

    def _reserve(self, rooms: Sequence[ScopeUsage], tokens: int, now: float) -> ScopeReservation:
        uses: list[tuple[WindowUsage, WindowEntry]] = []
        reserved: list[tuple[WindowUsage, WindowEntry]] = []
        for room in rooms:
            room.slots_used += 1
            for log in room.requests:
                uses.append((log, log.add(now, 1)))  # noqa: PERF401  mostly one: a comprehension costs as much again
            for log in room.tokens:
                reserved.append((log, log.add(now, tokens)))  # noqa: PERF401  as above
        if len(self._scopes) >= self._sweep_at:
            self._sweep(now)
        return ScopeReservation(rooms, tokens, now, uses, reserved)

    def release(self, taken: ScopeReservation, used: int | None, now: float, *, asked: bool = True) -> bool:
        """Release it, once: the tokens that were not `used`, and the request if no upstream was `asked`.

        Returns whether there was anything to give. More than was reserved is noted as used now.
        """
        if not taken.active:
            return False
        taken.active = False
        for room in taken.rooms:
            room.slots_used = max(0, room.slots_used - 1)
            room.mean_slot_seconds += SMOOTHING * (now - taken.since - room.mean_slot_seconds)
            room.closed = None  # whoever shut it may see it differently now
        if not asked:
            for log, entry in taken.uses:
                log.take_back(entry, 1)
        spent = taken.tokens if used is None else used
        for log, entry in taken.reserved:
            if spent < taken.tokens:
                log.take_back(entry, taken.tokens - spent)
            elif spent > taken.tokens:
                log.add(now, spent - taken.tokens)
        return True

    def close_scope(self, lack: Shortage) -> None:
        """Close a scope for a while, because the shared limiter reported a shortage."""
        self._usage(lack.scope).closed = lack

    def _usage(self, scope: Scope) -> ScopeUsage:
        room = self._scopes.get(scope.name)
        if room is None:
            room = self._scopes[scope.name] = ScopeUsage(scope)
        elif room.scope is not scope and room.scope != scope:
            room.change_limits(scope)
        return room

    def _sweep(self, now: float) -> None:
        self._scopes = {name: room for name, room in self._scopes.items() if not room.is_idle(now)}
        self._sweep_at = max(MOST_IDLE, 2 * len(self._scopes))


def _free_at(logs: Sequence[WindowUsage], now: float, amount: int) -> float:
    """Return when `amount` fits into all of `logs`: `now` or later."""
    latest = now
    for log in logs:
        at = log.free_at(now, amount)
        if at > latest:  # noqa: PLR1730  `max` costs as much as the rest of this
            latest = at
    return latest


def _unbounded(history: WindowHistory | None) -> tuple[Window, ...]:
    return () if history is None else (Window(UNBOUNDED, history.seconds),)


def _longest(logs: Sequence[WindowUsage]) -> WindowUsage | None:
    return max(logs, key=lambda log: log.window.seconds, default=None)


def _with_history(older: list[WindowUsage], newer: list[WindowUsage]) -> list[WindowUsage]:
    """Return `newer`, knowing what the longest window of the `older` knows."""
    longest = _longest(older)
    for log in newer:
        if longest is not None:
            log.copy_history(longest)
    return newer
