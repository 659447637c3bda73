"""Queue of the requests that wait for a limit, fair between clients.

Theory of operation. A waiting request reserves nothing: it is admitted when all its scopes have capacity at once.
Turns are fair by owner (`FairQueue`). A request that lacks capacity does not block others that do not; but
small requests must not starve a large one, so once others have passed it `MOST_OVERTAKEN` times, later requests are not
admitted to the scopes that it lacks until it is admitted or gone. The queue is bounded per scope; if it is full, the
owner with the most places loses the latest of them to an owner with fewer.

A lane holds the entries of one owner that wait for the same scopes. A new owner joins after all waiting owners, and an
owner that was served goes to the end again: so each other owner is served at most once before an owner's turn, however
many entries it has.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from xenoglot.model.failure import Failure
from xenoglot.policy.limits.usage_ledger import Scope, ScopeReservation, Shortage, UsageLedger

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence


class QueuedItem(Protocol):
    """A waiting entry; its `number` is unique, and larger than those of all earlier entries."""

    @property
    def owner(self) -> str:
        """Whose it is."""
        ...

    @property
    def lane(self) -> Hashable:
        """What it waits for."""
        ...

    @property
    def number(self) -> int:
        """When it came."""
        ...


W = TypeVar("W", bound=QueuedItem)


class FairQueue(Generic[W]):
    """Those who wait, in the order of their turns."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[Hashable, dict[int, W]]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[W]:
        for lanes in self._owners.values():
            for lane in lanes.values():
                yield from lane.values()

    def heads(self) -> list[W]:
        """Return those whose turn it could be, in the order in which to ask them."""
        return [next(iter(lane.values())) for lanes in self._owners.values() for lane in lanes.values()]

    def add(self, waiting: W) -> None:
        """Wait after all others."""
        self._owners.setdefault(waiting.owner, {}).setdefault(waiting.lane, {})[waiting.number] = waiting
        self._length += 1

    def requeue(self, waiting: W) -> None:
        """Add an entry again, as if not served: before all owners, after the earlier entries of its lane."""
        self.add(waiting)
        lanes = self._owners.pop(waiting.owner)
        lane = lanes.pop(waiting.lane)
        self._owners = {waiting.owner: {waiting.lane: dict(sorted(lane.items())), **lanes}, **self._owners}

    def serve(self, waiting: W) -> None:
        """Have had one's turn."""
        self.remove(waiting)
        lanes = self._owners.pop(waiting.owner, None)
        if lanes is not None:
            self._owners[waiting.owner] = lanes
            if (lane := lanes.pop(waiting.lane, None)) is not None:
                lanes[waiting.lane] = lane

    def remove(self, waiting: W) -> None:
        """Wait no more, whether or not there was a turn."""
        lanes = self._owners[waiting.owner]
        lane = lanes[waiting.lane]
        del lane[waiting.number]
        self._length -= 1
        if not lane:
            del lanes[waiting.lane]
        if not lanes:
            del self._owners[waiting.owner]

    def longest(self, among: list[W]) -> W | None:
        """Return the latest of the owner who has the most places `among` those who wait."""
        counts: dict[str, int] = {}
        for one in among:
            counts[one.owner] = counts.get(one.owner, 0) + 1
        if not counts:
            return None
        owner = max(counts, key=counts.__getitem__)
        return max((one for one in among if one.owner == owner), key=lambda one: one.number)


MOST_OVERTAKEN: Final = 64
SHORTEST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 60.0
"""Most seconds to report as the wait for a slot; waits for a window are reported unchanged."""

NEVER: Final = "limit_exceeded"
"""The `code` of a failure that no waiting will help."""


class QueueEntry(Struct, eq=False, kw_only=True):
    """A request that wants in before `deadline`; then it has `reservation` something, or there was a `failure`."""

    scopes: tuple[Scope, ...]
    owner: str
    tokens: int
    deadline: float
    number: int = 0
    overtaken: int = 0
    short_of: frozenset[str] = frozenset()
    reservation: ScopeReservation | None = None
    failure: Failure | None = None
    rejected_by: str = ""

    @property
    def lane(self) -> tuple[str, ...]:
        """The scopes it wants into, by name."""
        return tuple(scope.name for scope in self.scopes)

    @property
    def is_decided(self) -> bool:
        """Whether it is in, or refused."""
        return self.reservation is not None or self.failure is not None


class AdmissionQueue:
    """Waiting requests. Methods return the entries that they decided, other than the one they were called for."""

    def __init__(self) -> None:
        self.ledger = UsageLedger()
        self._queue: FairQueue[QueueEntry] = FairQueue()
        self._number = 0

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._queue)

    def submit(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Come in, wait, or be refused: see its `is_decided`."""
        self._number += 1
        one.number = self._number
        self._queue.add(one)
        decided = self._admit(now, one.lane)
        return decided if one.is_decided else decided + self._enqueue(one, now)

    def try_acquire(self, scopes: Sequence[Scope], tokens: int, now: float) -> ScopeReservation | None:
        """Reserve if there is capacity and no request waits for one of `scopes`; otherwise change nothing."""
        if self._queue:
            names = {scope.name for scope in scopes}
            if any(not names.isdisjoint(other.lane) for other in self._queue.heads()):
                return None
        return self.ledger.try_reserve(scopes, tokens, now)

    def release(self, taken: ScopeReservation, used: int | None, now: float, *, asked: bool = True) -> list[QueueEntry]:
        """Release a reservation as `UsageLedger.release` does; return the entries that were admitted by that."""
        if not self.ledger.release(taken, used, now, asked=asked) or not self._queue:
            return []
        return self._admit(now, [room.scope.name for room in taken.rooms])

    def cancel(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Want in no more: what came in the meantime is given back."""
        if one.reservation is not None:
            return self.release(one.reservation, 0, now, asked=False)
        if one.failure is not None:
            return []
        self._queue.remove(one)
        return self._admit(now, one.lane)

    def expire(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Have waited too long: unless its turn came at the last moment, it is refused."""
        decided = self._admit(now, one.lane)
        if one.is_decided:
            return decided
        self._refuse(one, self.ledger.shortages(one.scopes, one.tokens, now), now)
        return decided + self._admit(now, one.lane)

    def requeue(self, one: QueueEntry, lacks: Sequence[Shortage], now: float) -> list[QueueEntry]:
        """Wait again, before the others: the shared limiter reported that there is no capacity."""
        if one.reservation is not None:
            self.ledger.release(one.reservation, 0, now, asked=False)
            one.reservation = None
        for lack in lacks:
            self.ledger.close_scope(lack)
        if one.deadline <= now:
            one.failure, one.rejected_by = self.refusal(lacks, now), lacks[0].scope.kind
            return self._admit(now, one.lane)
        self._queue.requeue(one)
        decided = self._admit(now, one.lane)
        return decided if one.is_decided else decided + self._enqueue(one, now)

    def advance(self, now: float) -> list[QueueEntry]:
        """Let in who can come in now."""
        return self._admit(now, None)

    def next_at(self, now: float) -> float | None:
        """Return when a request could be admitted although none ends."""
        times = [
            max(lack.check_at or lack.ends_at for lack in lacks)
            for one in self._queue.heads()
            if (lacks := self.ledger.shortages(one.scopes, one.tokens, now))
        ]
        soonest = min(times, default=inf)
        return None if soonest == inf else soonest

    def refusal(self, lacks: Sequence[Shortage], now: float) -> Failure:
        """Return the failure for a request that is rejected."""
        for lack in lacks:
            if lack.reason == "never":
                return _impossible(lack)
        windows = [lack for lack in lacks if lack.reason == "window"]
        if windows:
            last = max(windows, key=lambda lack: lack.ends_at)
            message = f"the rate limit of {_scope_label(last.scope)} is reached"
            return Failure(kind="rate_limit", message=message, retry_after=last.ends_at - now)
        where = f" of {_scope_label(lacks[0].scope)}" if lacks else ""
        message = f"overloaded: too many requests{where} are under way, and none of them made room in time"
        return Failure(kind="overloaded", message=message, retry_after=self._expected_wait(lacks))

    def _enqueue(self, one: QueueEntry, now: float) -> list[QueueEntry]:
        """Queue a request that was not admitted, or reject it; return the other entries that this decided."""
        lacks = self.ledger.shortages(one.scopes, one.tokens, now)
        if one.deadline <= now or any(_is_hopeless(lack, one) for lack in lacks):
            self._refuse(one, lacks, now)
            return self._admit(now, one.lane)
        one.short_of = frozenset(lack.scope.name for lack in lacks) or frozenset(one.lane)
        decided: list[QueueEntry] = []
        for scope in one.scopes:
            if scope.name in one.short_of and (crowded := self._evicted(one, scope)) is not None:
                self._refuse(crowded, [lack for lack in lacks if lack.scope.name == scope.name] or lacks, now)
                decided += [crowded, *self._admit(now, crowded.lane)]
            if one.is_decided:
                break
        return decided

    def _evicted(self, one: QueueEntry, scope: Scope) -> QueueEntry | None:
        """Return who has to go where too many wait in a scope: the newcomer, if its owner has as many as any."""
        waiting = [other for other in self._queue if scope.name in other.short_of]
        if len(waiting) <= scope.queue:
            return None
        latest = self._queue.longest(waiting)
        ours = sum(other.owner == one.owner for other in waiting)
        most = sum(other.owner == latest.owner for other in waiting) if latest is not None else 0
        return latest if most > ours else one

    def _refuse(self, one: QueueEntry, lacks: Sequence[Shortage], now: float) -> None:
        one.short_of = frozenset()
        one.failure = self.refusal(lacks, now)
        one.rejected_by = (lacks[0].scope if lacks else one.scopes[0]).kind
        self._queue.remove(one)

    def _admit(self, now: float, names: Iterable[str] | None) -> list[QueueEntry]:
        """Admit requests as long as possible; with `names`, only those for one of these scopes."""
        among = None if names is None else frozenset(names)
        called: list[QueueEntry] = []
        while self._queue and (round_ := self._admit_round(now, among)):
            called += round_
        return called

    def _admit_round(self, now: float, among: frozenset[str] | None) -> list[QueueEntry]:
        """Ask each head once, in the order of turns."""
        called: list[QueueEntry] = []
        closed: set[str] = set()
        stuck: list[tuple[QueueEntry, set[str]]] = []
        for one in self._queue.heads():
            if among is not None and among.isdisjoint(one.lane):
                continue
            lacking = {lack.scope.name for lack in self.ledger.shortages(one.scopes, one.tokens, now)}
            if lacking:
                stuck.append((one, lacking))
                closed |= lacking if one.overtaken >= MOST_OVERTAKEN else set()
            elif closed.isdisjoint(one.lane):
                one.reservation = self.ledger.reserve(one.scopes, one.tokens, now)
                self._queue.serve(one)
                called.append(one)
                for other, missing in stuck:
                    other.overtaken += not missing.isdisjoint(one.lane)
        return called

    def _expected_wait(self, lacks: Sequence[Shortage]) -> float:
        """Return the expected seconds until all current entries are admitted, at the recent rate."""
        seconds = SHORTEST_RETRY
        for lack in lacks:
            room = self.ledger.scopes[lack.scope.name]
            before = sum(lack.scope.name in other.short_of for other in self._queue)
            seconds = max(seconds, room.mean_slot_seconds * (before + 1) / max(1, room.scope.concurrency or 1))
        return min(LONGEST_RETRY, seconds)


def _is_hopeless(lack: Shortage, one: QueueEntry) -> bool:
    """Whether waiting does not help: what is missing cannot be there in time."""
    return lack.reason == "never" or (
        lack.reason == "window" and lack.ends_at > one.deadline and not lack.may_end_early
    )


def _impossible(lack: Shortage) -> Failure:
    scope = lack.scope
    most = min((window.amount for window in scope.tokens), default=0)
    closed = scope.concurrency == 0 or any(window.amount < 1 for window in scope.requests)
    reason = "nothing is let through" if closed else f"a request may have at most {most} tokens, its answer included"
    message = f"the limits of {_scope_label(scope)} forbid this request: {reason}"
    return Failure(kind="invalid_request", message=message, code=NEVER, non_retryable=True)


def _scope_label(scope: Scope) -> str:
    """Return the part of a scope's name that clients may see, without the digest of their key."""
    kind, _, name = scope.name.partition(":")
    return "this API key" if kind == "key" else f"the {kind} `{name}`"
