"""Limits on requests: which ones concern a request, what waits or is refused, and what is given back at the end.

Time is `time.monotonic`: a wall clock that is set back or forth changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from xenoglot.errors import FailureError
from xenoglot.gateway.config.limits import OUTPUT_TOKENS, LimitSettings, window
from xenoglot.policy.limits.admission_queue import AdmissionQueue, QueueEntry
from xenoglot.policy.limits.usage_ledger import Scope, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from xenoglot.gateway.auth.keys import Principal
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.request import Request
    from xenoglot.policy.limits.usage_ledger import ScopeReservation, Shortage, UsageLedger


__all__ = ["Lease", "Limiter", "MemoryLimiter", "Scope", "Window"]

SHORTEST_TIMER = 0.001
"""Seconds; event loops count no shorter time, and would fire again and again."""


class Lease(Protocol):
    """What a request holds while it is in progress. It is released once, however often `leave` is called."""

    async def leave(self, used: int | None, *, asked: bool = True) -> None:
        """Give it back: `used` tokens were used, `None` if unknown; `asked` is false if nothing was ever sent."""
        ...

    def drop(self, used: int | None = None, *, asked: bool = True) -> None:
        """Do the same without waiting for it, where one is being cancelled."""
        ...


class Limiter(Protocol):
    """Lets requests in."""

    async def enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int, patience: float | None = None) -> Lease:
        """Wait fairly, by owner, for a place in all of `scopes`; nothing is held while waiting.

        The wait is at most `patience` seconds, and at most the shortest `queue_seconds`. `tokens` are reserved.

        Raises:
            FailureError: `rate_limit` where a window is full, `overloaded` where too many are in progress, both with
                `retry_after`; `invalid_request` with the code `limit_exceeded` where no wait would help.
        """
        ...

    def try_enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int) -> Lease | None:
        """Let a request in if that can be decided now; `None`, and nothing happened, where `enter` has to be called."""
        ...

    def measures(self) -> LimiterMetrics:
        """Return its metrics."""
        ...

    async def aclose(self) -> None:
        """Let go of everything."""
        ...


class LimiterMetrics:
    """What limiters count, by the kind of scope (`key`, `upstream`, `model`)."""

    __slots__ = ("refused", "waiting")

    def __init__(self, waiting: Mapping[str, int], refused: Mapping[tuple[str, str], int]) -> None:
        self.waiting = waiting
        self.refused = refused


class Unlimited:
    """The lease of a request that nothing limits."""

    async def leave(self, used: int | None, *, asked: bool = True) -> None:
        """Do nothing."""

    def drop(self, used: int | None = None, *, asked: bool = True) -> None:
        """Do nothing."""


UNLIMITED = Unlimited()


class MemoryLease:
    """What a request holds in this process."""

    __slots__ = ("_limiter", "_taken")

    def __init__(self, limiter: MemoryLimiter, taken: ScopeReservation) -> None:
        self._limiter = limiter
        self._taken = taken

    async def leave(self, used: int | None, *, asked: bool = True) -> None:
        """Give it back."""
        self._limiter.give_back(self._taken, used, asked=asked)

    def drop(self, used: int | None = None, *, asked: bool = True) -> None:
        """Give it back."""
        self._limiter.give_back(self._taken, used, asked=asked)


class MemoryLimiter:
    """Limits within one process. `clock` gives seconds, and never goes back."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._room = AdmissionQueue()
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._refused: Counter[tuple[str, str]] = Counter()

    @property
    def usage(self) -> UsageLedger:
        """What is used of each scope."""
        return self._room.ledger

    async def enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int, patience: float | None = None) -> Lease:
        """Let a request in: see `Limiter`."""
        if not scopes:
            return UNLIMITED
        taken = self._room.try_acquire(scopes, tokens, self.clock())
        if taken is None:
            taken = await self.admit(self.applicant(scopes, owner, tokens, patience))
        return MemoryLease(self, taken)

    def try_enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int) -> Lease | None:  # noqa: ARG002  turns are
        """Admit a request if the limits allow it and no other waits: see `Limiter`."""
        if not scopes:
            return UNLIMITED
        taken = self._room.try_acquire(scopes, tokens, self.clock())
        return None if taken is None else MemoryLease(self, taken)

    def applicant(self, scopes: Sequence[Scope], owner: str, tokens: int, patience: float | None) -> QueueEntry:
        """Return a new queue entry, which waits from now on."""
        waits = [scope.queue_seconds for scope in scopes]
        seconds = min(waits if patience is None else [*waits, patience])
        return QueueEntry(scopes=tuple(scopes), owner=owner, tokens=tokens, deadline=self.clock() + seconds)

    async def admit(self, one: QueueEntry) -> ScopeReservation:
        """Admit a queue entry.

        Raises:
            FailureError: it is refused.
        """
        self._tell(self._room.submit(one, self.clock()))
        return await self._decided(one)

    async def admit_again(self, one: QueueEntry, lacks: Sequence[Shortage]) -> ScopeReservation:
        """Admit an entry again that was admitted here and rejected by a shared limit.

        Raises:
            FailureError: it is refused.
        """
        self._tell(self._room.requeue(one, lacks, self.clock()))
        return await self._decided(one)

    def give_back(self, taken: ScopeReservation, used: int | None, *, asked: bool) -> None:
        """Give back what a request held, once."""
        decided = self._room.release(taken, used, self.clock(), asked=asked)
        if decided or self._futures or self._timer is not None:
            self._tell(decided)

    def measures(self) -> LimiterMetrics:
        """Return who waits, and who was refused."""
        waiting = Counter(kind for one in self._room for kind in {name.partition(":")[0] for name in one.short_of})
        return LimiterMetrics(waiting, self._refused)

    async def aclose(self) -> None:
        """Wake no entry any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _decided(self, one: QueueEntry) -> ScopeReservation:
        if not one.is_decided:
            await self._wait(one)
        if one.reservation is not None:
            return one.reservation
        failure = one.failure
        assert failure is not None  # noqa: S101  it is decided
        self._refused[one.rejected_by, failure.kind] += 1
        raise FailureError(failure)

    async def _wait(self, one: QueueEntry) -> None:
        turn = self._futures[one.number] = asyncio.get_running_loop().create_future()
        self._arm()
        try:
            async with asyncio.timeout(one.deadline - self.clock()):
                await turn
        except TimeoutError:
            self._tell(self._room.expire(one, self.clock()))
        except asyncio.CancelledError:
            self._tell(self._room.cancel(one, self.clock()))
            raise
        finally:
            del self._futures[one.number]

    def _tell(self, decided: Iterable[QueueEntry]) -> None:
        """Wake those whose fate is decided, and see when to look again."""
        for one in decided:
            turn = self._futures.get(one.number)
            if turn is not None and not turn.done():
                turn.set_result(None)
        if self._futures or self._timer is not None:
            self._arm()

    def _arm(self) -> None:
        """Set the timer for the time when the next window opens."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self.clock()
        soonest = self._room.next_at(now)
        if soonest is not None:
            delay = max(SHORTEST_TIMER, soonest - now)
            self._timer = asyncio.get_running_loop().call_later(delay, self._advance)

    def _advance(self) -> None:
        self._timer = None
        self._tell(self._room.advance(self.clock()))
        self._arm()


class Scopes:
    """The limits of a configuration."""

    __slots__ = ("_models", "_owner", "_tenants", "_upstreams", "output_tokens")

    def __init__(self, config: Config) -> None:
        self._owner = config.keys.limits
        self._tenants = {
            name: scoped(f"tenant:{name}", one.limits) for name, one in config.tenants.items() if one.limits
        }
        self._models = {one.name: scoped(f"model:{one.name}", one.limits) for one in config.models if one.limits}
        self._upstreams = {
            name: (scoped(f"upstream:{name}", one.limits),) for name, one in config.upstreams.items() if one.limits
        }
        self.output_tokens = config.limits.output_tokens

    def of_request(self, alias: str, client: Principal) -> tuple[Scope, ...]:
        """Return the limits of a request by `client` for the model of the row `alias`, the client's own first.

        Limits of a tenant stand in place of the usual ones of clients. Those of a key hold in addition.
        """
        model, tenant = self._models.get(alias), client.tenant
        own: tuple[Scope, ...] = ()
        if tenant is not None and tenant in self._tenants:
            own = (self._tenants[tenant],)
        elif self._owner is not None:
            own = (scoped(f"key:{client.owner}", self._owner),)
        if client.limits is not None:
            own = (scoped(f"key:{client.key}", client.limits), *own)
        return own if model is None else (*own, model)

    def of_upstream(self, upstream: str) -> tuple[Scope, ...]:
        """Return the limits of an upstream."""
        return self._upstreams.get(upstream, ())


def expected_tokens(request: Request, prompt: int, output: int = OUTPUT_TOKENS) -> int:
    """Return what a request is expected to cost before it is answered, so much being reserved for it.

    That is the prompt, and for each answer the most that it may have, as far as the request specifies it; else
    `output`. It rather is too much than too little: what is not used comes back when the answer is over.
    """
    sampling = request.sampling
    most = output if sampling.max_tokens is None else sampling.max_tokens
    return prompt + most * (sampling.n or 1)


@lru_cache(maxsize=4096)
def scoped(name: str, limits: LimitSettings) -> Scope:
    """Return limits as those of `name`."""
    return Scope(
        name,
        requests=_windows(limits.requests),
        tokens=_windows(limits.tokens),
        concurrency=limits.concurrency,
        queue=limits.queue,
        queue_seconds=limits.queue_seconds,
    )


def _windows(texts: tuple[str, ...]) -> tuple[Window, ...]:
    return tuple(found for text in texts if (found := window(text)) is not None)
