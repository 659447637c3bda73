"""How those who answer are doing: what the dispatcher remembers of each, from one request to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.policy.target_health import Breaker, KeyPool, Retry, RetryBudget
from xenoglot.policy.target_order import TargetLoad, averaged

if TYPE_CHECKING:
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.routing.router import Route, RoutePlan

ONCE = Retry(attempts=1)
"""How often a backend of this process is asked: what it refuses it refuses on purpose, and it restarts itself."""


class TargetMetrics(Struct, frozen=True, kw_only=True):
    """How a target is doing; `model` is empty where any name goes through. `latency` is in seconds to a first byte."""

    backend: str
    model: str
    tries: Mapping[str, int]
    running: int
    latency: float | None
    open: bool


class TargetHealth:
    """How one target is doing; a target is a model of a backend, or all that it has where any name goes through."""

    __slots__ = ("breaker", "busy", "keys", "latency", "retry", "running", "tries")

    def __init__(self, retry: Retry, keys: int, breaker: Breaker | None) -> None:
        self.retry = retry
        self.breaker = breaker
        self.keys = KeyPool(max(1, keys))
        self.busy = [0] * max(1, keys)
        """Requests under way with each key."""
        self.running = 0
        self.latency: float | None = None
        self.tries: Counter[str] = Counter()
        """What came of asking it: `answered`, or the kind of the failure."""

    @property
    def load(self) -> TargetLoad:
        """What the choice of a target goes by."""
        return TargetLoad(self.running, self.latency)

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
            found = TargetHealth(upstream.retry, keys, Breaker(upstream.breaker))
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
        """Return how each target is doing that was asked since the start."""
        return [_measures(place, found, now) for place, found in self._health.items()]


def _measures(place: tuple[str, str], health: TargetHealth, now: float) -> TargetMetrics:
    backend, model = place
    return TargetMetrics(
        backend=backend,
        model=model,
        tries=health.tries,
        running=health.running,
        latency=health.latency,
        open=health.breaker is not None and health.breaker.state(now) == "open",
    )
