"""Resources reserved for a request at a target (slot, tokens, API key, breaker probe), and the state of targets."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.limits.limiter import Limiter, Scopes
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.routing.router import RoutePlan
from xenoglot.model.failure import Failure
from xenoglot.policy.target_health import Breaker, KeyPool, Retry, RetryBudget, State
from xenoglot.policy.target_order import TargetLoad, averaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.limits.limiter import Lease, Scope
    from xenoglot.gateway.routing.router import Route
    from xenoglot.policy.failure_policy import FailureAction


ONCE = Retry(attempts=1)
"""One attempt for a backend of this process: what it refuses it refuses on purpose, and it restarts itself."""


class TargetMetrics(Struct, frozen=True, kw_only=True):
    """How a target is doing; `model` is empty where any name goes through. `latency` is in seconds to a first byte.

    `keys_resting` are API keys that are cooling down.
    """

    backend: str
    model: str
    tries: Mapping[str, int]
    running: int
    latency: float | None
    open: bool
    state: State = "closed"
    keys: int = 1
    keys_resting: int = 0


class TargetHealth:
    """How one target is doing; a target is a model of a backend, or all that it has where any name goes through."""

    __slots__ = ("breaker", "busy", "clients_key", "keys", "latency", "others", "retry", "running", "tries")

    def __init__(self, retry: Retry, keys: int, breaker: Breaker | None, *, clients_key: bool = False) -> None:
        self.clients_key = clients_key
        """Whether requests have the keys of their clients."""
        self.retry = retry
        self.breaker = breaker
        self.keys = KeyPool(max(1, keys))
        self.busy = [0] * max(1, keys)
        """Requests in progress with each key."""
        self.running = 0
        self.others = 0
        """Requests of other clients at the server, as far as it reports them."""
        self.latency: float | None = None
        self.tries: Counter[str] = Counter()
        """What came of asking it: `answered`, or the kind of the failure."""

    @property
    def load(self) -> TargetLoad:
        """What the choice of a target goes by."""
        return TargetLoad(self.running + self.others, self.latency)

    def began(self, seconds: float) -> None:
        """Note how long a first byte took."""
        self.latency = averaged(self.latency, seconds)
        self.tries["answered"] += 1


class TargetRegistry:
    """The health of all targets. What belongs to an unchanged setting outlives a change of the others (`inherit`)."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._health: dict[tuple[str, str], TargetHealth] = {}
        """By backend and model; by backend alone where any name goes through."""
        self._budgets: dict[str, RetryBudget] = {}
        self._others: dict[str, int] = {}

    def report(self, backend: str, requests: int | None) -> None:
        """Note how many requests a server has, those of this gateway included; `None` is unknown."""
        own = [found for (name, _), found in self._health.items() if name == backend]
        others = 0 if requests is None else max(0, requests - sum(found.running for found in own))
        self._others[backend] = others
        for found in own:
            found.others = others

    def of(self, route: Route) -> TargetHealth:
        """Return the health of the target of `route`."""
        place = (route.backend, "" if route.named else route.model)
        return self._health.get(place) or self._begun(place)

    def _begun(self, place: tuple[str, str]) -> TargetHealth:
        backend, _ = place
        upstream = self._config.upstreams.get(backend)
        if upstream is None:
            found = TargetHealth(ONCE, 1, None)
        else:
            keys = len(self._config.upstream_keys(upstream))
            found = TargetHealth(upstream.retry, keys, Breaker(upstream.breaker), clients_key=upstream.auth == "client")
        found.others = self._others.get(backend, 0)
        self._health[place] = found
        return found

    def budget(self, plan: RoutePlan) -> RetryBudget:
        """Return what further tries of requests by `plan` may cost."""
        found = self._budgets.get(plan.name)
        if found is None:
            retry = self.of(plan.route).retry
            found = self._budgets[plan.name] = RetryBudget(retry.budget, retry.budget_floor)
        return found

    def inherit(self, other: TargetRegistry) -> None:
        """Take over what `other` remembers of upstreams whose settings and keys are still the same."""
        same = {
            name
            for name, upstream in self._config.upstreams.items()
            if upstream == other._config.upstreams.get(name)
            and self._config.upstream_keys(upstream) == other._config.upstream_keys(upstream)
        }
        self._health |= {place: found for place, found in other._health.items() if place[0] in same}

    def measures(self, now: float) -> list[TargetMetrics]:
        """Return the metrics of each target that was called since the start."""
        return [_measures(place, found, now) for place, found in self._health.items()]


def _measures(place: tuple[str, str], health: TargetHealth, now: float) -> TargetMetrics:
    backend, model = place
    state: State = "closed" if health.breaker is None else health.breaker.state(now)
    return TargetMetrics(
        backend=backend,
        model=model,
        tries=health.tries,
        running=health.running,
        latency=health.latency,
        open=state == "open",
        state=state,
        keys=len(health.busy),
        keys_resting=health.keys.resting(now),
    )


_logger = logging.getLogger("xenoglot.gateway")

LONGEST_WAIT = 60.0
"""The longest wait in seconds that a client is given."""

_THEIRS = frozenset({"upstream", "internal", "timeout", "overloaded", "rate_limit"})
"""Failures in the middle of an answer that are the target's."""


class Dispatcher(Struct, kw_only=True):
    """Targets and limits that requests share. `clock` gives monotonic seconds, `chance` numbers from 0 to 1."""

    ward: TargetRegistry
    limiter: Limiter
    scopes: Scopes
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


class Demand(Struct):
    """One request as limits and targets see it.

    `tokens` gives what it is expected to cost; `group` keeps requests together at one target and key.
    """

    plan: RoutePlan
    record: RequestLog
    tokens: Callable[[], int] = int
    group: str | None = None

    @property
    def owner(self) -> str:
        """The client's; places are shared fairly among owners."""
        return self.record.client.owner


class Reservation:
    """What one request holds: of its own limits from the first to the last, of a target's while it is called."""

    __slots__ = (
        "_before",
        "_dispatcher",
        "_health",
        "_lease",
        "_mine",
        "_record",
        "_ticket",
        "asked",
        "key",
        "target",
    )

    def __init__(self, dispatcher: Dispatcher, record: RequestLog) -> None:
        self.asked = False
        """Whether the target has been called."""
        self.key = 0
        self.target: TargetHealth | None = None
        """The target chosen last."""
        self._dispatcher = dispatcher
        self._record = record
        self._mine: Lease | None = None
        self._lease: Lease | None = None
        self._health: TargetHealth | None = None
        self._ticket = 0
        self._before = 0
        """Tokens that were used at targets before this one."""

    async def enter(self, scopes: Sequence[Scope], owner: str, tokens: int) -> None:
        """Get a place within the limits of the request itself.

        Raises:
            FailureError: there is none.
        """
        self._mine = await self._dispatcher.limiter.enter(scopes, owner=owner, tokens=tokens)

    def enter_at_once(self, scopes: Sequence[Scope], owner: str, tokens: int) -> bool:
        """Get a place within the limits of the request itself, if there is one now; return whether there is."""
        self._mine = self._dispatcher.limiter.try_enter(scopes, owner=owner, tokens=tokens)
        return self._mine is not None

    def enter_target_at_once(self, scopes: Sequence[Scope], owner: str, tokens: int) -> bool:
        """Get a place within the limits of the target, if there is one now; return whether there is."""
        self._lease = self._dispatcher.limiter.try_enter(scopes, owner=owner, tokens=tokens)
        return self._lease is not None

    def take(self, route: Route, now: float, group: str | None, *, last: bool) -> None:
        """Take a target's key, and its breaker's permission. At the `last` target a key that rests is better than none.

        Raises:
            FailureError: it has none to give at this time.
        """
        health = self._dispatcher.ward.of(route)
        self.asked, self.target = False, health
        key = health.keys.pick(now, affinity=group, busy=health.busy)
        if key is None and not last:
            raise _not_now("all API keys for the upstream are cooling down", health.keys.next_at(now) - now)
        ticket = 0 if health.breaker is None else health.breaker.allows(now)
        if health.breaker is not None and not ticket:
            raise _not_now("circuit breaker open for the upstream", health.breaker.next_at(now) - now)
        self._health, self._ticket = health, ticket
        self.key = health.keys.earliest_index() if key is None else key
        health.running += 1
        health.busy[self.key] += 1

    async def enter_target(self, scopes: Sequence[Scope], owner: str, tokens: int, patience: float | None) -> None:
        """Get a place within the limits of the target.

        Raises:
            FailureError: there is none, or not within `patience` seconds.
        """
        limiter = self._dispatcher.limiter
        self._lease = await limiter.enter(scopes, owner=owner, tokens=tokens, patience=patience)

    def began(self, seconds: float) -> None:
        """Note that the target has begun to answer, after so many seconds."""
        if self._health is not None:
            self._health.began(seconds)
            self._health.keys.on_success(self.key)

    @property
    def rest(self) -> float:
        """How many seconds it takes until nothing is held against a key of the target."""
        now = self._dispatcher.clock()
        return 0.0 if self.target is None else self.target.keys.clear_at(now) - now

    @property
    def has_other_key(self) -> bool:
        """Whether the target can be called with another key at once."""
        now = self._dispatcher.clock()
        return self.target is not None and self.target.keys.clear_at(now, but=self.key) <= now

    @property
    def retry(self) -> Retry:
        """How the target is tried."""
        return ONCE if self.target is None else self.target.retry

    @property
    def used(self) -> int:
        """The tokens that were used so far, as far as that was reported."""
        return _used(self._record) or 0

    def failed(self, failure: Failure, verdict: FailureAction, used: int = 0) -> None:
        """Note how the target failed, and give back what it had; `used` tokens were used there all the same."""
        health = self._health
        if verdict.blame == "key" and health is not None and health.breaker is not None:
            health.keys.on_failure(self.key, failure, self._dispatcher.clock())
        if health is not None and self.asked:
            health.tries[failure.kind] += 1
            if failure.cause == "credentials" and not failure.not_sent:  # U40: the operator has to act
                _logger.error("upstream `%s` refuses the gateway's key", self._record.backend)
        self._settle(bad=verdict.blame == "target")
        self.release(used, asked=not failure.not_sent)
        self._before += used

    def release(self, used: int | None, *, asked: bool = True) -> None:
        """Give back what is held of the target; `used` tokens were used there."""
        health, lease = self._health, self._lease
        self._health = self._lease = None
        if health is not None:
            health.running -= 1
            health.busy[self.key] -= 1
            if self._ticket and health.breaker is not None:
                health.breaker.released(self._dispatcher.clock(), self._ticket)
                self._ticket = 0
        if lease is not None:
            lease.drop(used, asked=asked and self.asked)

    def over(self, *, whole: bool = False) -> None:
        """The answer is over: it came whole, or else, as the record shows, broken off or dropped by its reader."""
        failure, used = self._record.failure, _used(self._record)
        if failure in _THEIRS or self._record.finish is not None or whole:
            self._settle(bad=failure in _THEIRS)
        self.release(None if used is None else max(0, used - self._before))
        self._leave(used)

    def drop(self) -> None:
        """No target answers, or the client no longer waits for the answer."""
        self.release(0)
        self._leave(0)

    def _leave(self, used: int | None) -> None:
        mine, self._mine = self._mine, None
        if mine is not None:
            mine.drop(used, asked=self._record.tries > 0)

    def _settle(self, *, bad: bool) -> None:
        """Report the outcome to the breaker."""
        breaker = None if self._health is None else self._health.breaker
        if breaker is None or not self._ticket:
            return
        now, ticket = self._dispatcher.clock(), self._ticket
        self._ticket = 0
        if bad:
            breaker.failed(now, ticket, self._dispatcher.chance())
        elif self.asked:
            breaker.succeeded(now, ticket)
        else:
            breaker.released(now, ticket)


def _used(record: RequestLog) -> int | None:
    """Return the tokens that were used, as far as that was reported."""
    usage = record.usage
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _not_now(message: str, wait: float) -> FailureError:
    return FailureError(Failure(kind="overloaded", message=message, retry_after=min(max(wait, 0.0), LONGEST_WAIT)))
