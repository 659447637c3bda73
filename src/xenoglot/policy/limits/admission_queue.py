"""Admission queue for rate and concurrency limits: admit, queue or reject. Pure; time is an argument.

Theory of operation. Nobody holds anything while waiting: a request is let in when all its scopes have room at once.
Turns are fair by owner (`policy.limits.fair_queue`). Who lacks something stands in nobody's way who does not; but small
requests must not keep a large one out for ever, so once others have passed it `MOST_PASSED` times, nobody behind it
gets into the scopes that it lacks until it is in, or gone. The room is bounded, scope by scope; where it is full, the
owner with the most places loses the latest of them to an owner with fewer.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.model.failure import Failure
from xenoglot.policy.limits.fair_queue import FairQueue
from xenoglot.policy.limits.scope import Scope
from xenoglot.policy.limits.usage_ledger import ScopeReservation, Shortage, UsageLedger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_PASSED: Final = 64
SHORTEST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 60.0
"""Seconds that somebody is told to wait for a place; those of a window are told as they are."""

NEVER: Final = "limit_exceeded"
"""The `code` of a failure that no waiting will help."""


class QueueEntry(Struct, eq=False, kw_only=True):
    """A request that wants in before `until`; then it has `taken` something, or there was a `failure`."""

    scopes: tuple[Scope, ...]
    owner: str
    tokens: int
    until: float
    number: int = 0
    passed: int = 0
    lacking: frozenset[str] = frozenset()
    taken: ScopeReservation | None = None
    failure: Failure | None = None
    refused_by: str = ""

    @property
    def lane(self) -> tuple[str, ...]:
        """The scopes it wants into, by name."""
        return tuple(scope.name for scope in self.scopes)

    @property
    def is_decided(self) -> bool:
        """Whether it is in, or refused."""
        return self.taken is not None or self.failure is not None


class AdmissionQueue:
    """Those who want in. Methods return whose fate they decided beside that of whoever they were called for."""

    def __init__(self) -> None:
        self.ledger = UsageLedger()
        self._turns: FairQueue[QueueEntry] = FairQueue()
        self._number = 0

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._turns)

    def come(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Come in, wait, or be refused: see its `is_decided`."""
        self._number += 1
        one.number = self._number
        self._turns.join(one)
        decided = self._call(now, one.lane)
        return decided if one.is_decided else decided + self._seat(one, now)

    def come_at_once(self, scopes: Sequence[Scope], tokens: int, now: float) -> ScopeReservation | None:
        """Come in if there is room, and nobody waits who wants into one of `scopes`; else nothing happened."""
        if self._turns:
            names = {scope.name for scope in scopes}
            if any(not names.isdisjoint(other.lane) for other in self._turns.heads()):
                return None
        return self.ledger.take_at_once(scopes, tokens, now)

    def leave(self, taken: ScopeReservation, used: int | None, now: float, *, asked: bool = True) -> list[QueueEntry]:
        """Give back what was taken, as `UsageLedger.give` has it; who was let in by that is returned."""
        if not self.ledger.give(taken, used, now, asked=asked) or not self._turns:
            return []
        return self._call(now, [scope.name for scope in taken.scopes])

    def give_up(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Want in no more: what came in the meantime is given back."""
        if one.taken is not None:
            return self.leave(one.taken, 0, now, asked=False)
        if one.failure is not None:
            return []
        self._turns.leave(one)
        return self._call(now, one.lane)

    def expire(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Have waited too long: unless its turn came at the last moment, it is refused."""
        decided = self._call(now, one.lane)
        if one.is_decided:
            return decided
        self._refuse(one, self.ledger.lacks(one.scopes, one.tokens, now), now)
        return decided + self._call(now, one.lane)

    def send_back(self, one: QueueEntry, lacks: Sequence[Shortage], now: float) -> list[QueueEntry]:
        """Wait again, in front of the others: somebody who sees more said that there is no room."""
        if one.taken is not None:
            self.ledger.give(one.taken, 0, now, asked=False)
            one.taken = None
        for lack in lacks:
            self.ledger.shut(lack)
        if one.until <= now:
            one.failure, one.refused_by = self.refusal(lacks, now), lacks[0].scope.kind
            return self._call(now, one.lane)
        self._turns.rejoin(one)
        decided = self._call(now, one.lane)
        return decided if one.is_decided else decided + self._seat(one, now)

    def advance(self, now: float) -> list[QueueEntry]:
        """Let in who can come in now."""
        return self._call(now, None)

    def next_at(self, now: float) -> float | None:
        """Return when somebody could come in though nobody leaves."""
        times = [
            max(lack.again or lack.until for lack in lacks)
            for one in self._turns.heads()
            if (lacks := self.ledger.lacks(one.scopes, one.tokens, now))
        ]
        soonest = min(times, default=inf)
        return None if soonest == inf else soonest

    def refusal(self, lacks: Sequence[Shortage], now: float) -> Failure:
        """Return what to say to a request that has to go."""
        for lack in lacks:
            if lack.why == "never":
                return _impossible(lack)
        windows = [lack for lack in lacks if lack.why == "window"]
        if windows:
            last = max(windows, key=lambda lack: lack.until)
            message = f"the rate limit of {_called(last.scope)} is reached"
            return Failure(kind="rate_limit", message=message, retry_after=last.until - now)
        where = f" of {_called(lacks[0].scope)}" if lacks else ""
        message = f"overloaded: too many requests{where} are under way, and none of them made room in time"
        return Failure(kind="overloaded", message=message, retry_after=self._pace(lacks))

    def _seat(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Have somebody wait who could not come in, or refuse it; return whom else that decided."""
        lacks = self.ledger.lacks(one.scopes, one.tokens, now)
        if one.until <= now or any(_is_hopeless(lack, one) for lack in lacks):
            self._refuse(one, lacks, now)
            return self._call(now, one.lane)
        one.lacking = frozenset(lack.scope.name for lack in lacks) or frozenset(one.lane)
        decided: list[QueueEntry] = []
        for scope in one.scopes:
            if scope.name in one.lacking and (crowded := self._crowded_out(one, scope)) is not None:
                self._refuse(crowded, [lack for lack in lacks if lack.scope.name == scope.name] or lacks, now)
                decided += [crowded, *self._call(now, crowded.lane)]
            if one.is_decided:
                break
        return decided

    def _crowded_out(self, one: QueueEntry, scope: Scope) -> QueueEntry | None:
        """Return who has to go where too many wait in a scope: the newcomer, if its owner has as many as any."""
        waiting = [other for other in self._turns if scope.name in other.lacking]
        if len(waiting) <= scope.queue:
            return None
        latest = self._turns.longest(waiting)
        ours = sum(other.owner == one.owner for other in waiting)
        most = sum(other.owner == latest.owner for other in waiting) if latest is not None else 0
        return latest if most > ours else one

    def _refuse(self, one: QueueEntry, lacks: Sequence[Shortage], now: float) -> None:
        one.lacking = frozenset()
        one.failure = self.refusal(lacks, now)
        one.refused_by = (lacks[0].scope if lacks else one.scopes[0]).kind
        self._turns.leave(one)

    def _call(self, now: float, names: Iterable[str] | None) -> list[QueueEntry]:
        """Let in who can come in, as long as anybody can; if scopes are named, only who wants into one."""
        among = None if names is None else frozenset(names)
        called: list[QueueEntry] = []
        while self._turns and (round_ := self._round(now, among)):
            called += round_
        return called

    def _round(self, now: float, among: frozenset[str] | None) -> list[QueueEntry]:
        """Ask each head once, in the order of turns."""
        called: list[QueueEntry] = []
        closed: set[str] = set()
        stuck: list[tuple[QueueEntry, set[str]]] = []
        for one in self._turns.heads():
            if among is not None and among.isdisjoint(one.lane):
                continue
            lacking = {lack.scope.name for lack in self.ledger.lacks(one.scopes, one.tokens, now)}
            if lacking:
                stuck.append((one, lacking))
                closed |= lacking if one.passed >= MOST_PASSED else set()
            elif closed.isdisjoint(one.lane):
                one.taken = self.ledger.take(one.scopes, one.tokens, now)
                self._turns.serve(one)
                called.append(one)
                for other, missing in stuck:
                    other.passed += not missing.isdisjoint(one.lane)
        return called

    def _pace(self, lacks: Sequence[Shortage]) -> float:
        """Return the seconds after which whoever waits now has had its turn, if all goes on as it has lately."""
        seconds = SHORTEST_RETRY
        for lack in lacks:
            room = self.ledger.rooms[lack.scope.name]
            before = sum(lack.scope.name in other.lacking for other in self._turns)
            seconds = max(seconds, room.held_seconds * (before + 1) / max(1, room.scope.concurrency or 1))
        return min(LONGEST_RETRY, seconds)


def _is_hopeless(lack: Shortage, one: QueueEntry) -> bool:
    """Whether waiting does not help: what is missing cannot be there in time."""
    return lack.why == "never" or (lack.why == "window" and lack.until > one.until and not lack.returnable)


def _impossible(lack: Shortage) -> Failure:
    scope = lack.scope
    most = min((window.amount for window in scope.tokens), default=0)
    closed = scope.concurrency == 0 or any(window.amount < 1 for window in scope.requests)
    reason = "nothing is let through" if closed else f"a request may have at most {most} tokens, its answer included"
    message = f"the limits of {_called(scope)} forbid this request: {reason}"
    return Failure(kind="invalid_request", message=message, code=NEVER, futile=True)


def _called(scope: Scope) -> str:
    """Return what a client may read of a scope: its own key's name is a digest, which tells nobody anything."""
    kind, _, name = scope.name.partition(":")
    return "this API key" if kind == "key" else f"the {kind} `{name}`"
