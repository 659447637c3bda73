"""Order of the targets for a request: the first choice, then the fallbacks."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from xenoglot.policy.affinity import rendezvous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Strategy: TypeAlias = Literal["ordered", "weighted", "least_busy", "fastest"]

SMOOTHING = 0.3
"""How much one more time to the first byte counts against all before it."""
EXPLORED = 0.05
"""The share of requests by which `fastest` finds out how fast the others are by now."""
CROWDING = 1.25
"""How much busier than the average a home may be before its groups are sent elsewhere (and one request more) ..."""
TARDINESS = 2.0
"""... and how many times slower than the fastest."""


class TargetCandidate(Struct, frozen=True, kw_only=True):
    """One of the targets that could answer.

    `index` is its place in the configuration, `name` what every gateway calls it. A target of a higher `tier` is tried
    after all of the lower ones; `weight` is its share within the tier, and with 0 it is only fallen back on.
    """

    index: int
    name: str = ""
    weight: float = 1.0
    tier: int = 0


class TargetLoad(Struct, frozen=True):
    """Load of a target: requests in progress, and smoothed seconds to the first byte, if known."""

    running: int = 0
    latency: float | None = None


IDLE = TargetLoad()


def averaged(latency: float | None, seconds: float) -> float:
    """Return the smoothed time to the first byte after one more that took `seconds`."""
    return seconds if latency is None else latency + SMOOTHING * (seconds - latency)


def order(
    candidates: Sequence[TargetCandidate],
    strategy: Strategy,
    loads: Mapping[int, TargetLoad],
    chance: float,
    affinity: str | None = None,
) -> tuple[int, ...]:
    """Return the `index` of every candidate, in the order in which they are to be tried.

    `ordered` keeps the order of the configuration, whatever the affinity. `weighted` draws by weight. `least_busy`
    takes the one with the fewest requests in progress for its weight; `fastest` the one with the shortest wait for a
    first byte, its queue considered. With `affinity` (the text of a group) each of these begins at the group's target;
    the last two leave it where it is much worse than the others. `chance`, from 0 to 1 and not 1, decides what is
    left open. `loads` are by `index`.
    """
    if strategy == "ordered":
        return tuple(candidate.index for candidate in sorted(candidates, key=_tier))
    found: list[TargetCandidate] = []
    for _, tier in groupby(sorted(candidates, key=_tier), key=_tier):
        found += _ranked(list(tier), strategy, loads, chance, affinity)
    return tuple(candidate.index for candidate in found)


def _tier(candidate: TargetCandidate) -> int:
    return candidate.tier


def _ranked(
    tier: Sequence[TargetCandidate],
    strategy: Strategy,
    loads: Mapping[int, TargetLoad],
    chance: float,
    affinity: str | None,
) -> list[TargetCandidate]:
    drawn = _by_rendezvous(tier, f"{chance!r}" if affinity is None else affinity)
    if strategy == "weighted" or (strategy == "fastest" and chance < EXPLORED):
        return drawn
    given = [candidate for candidate in drawn if candidate.weight > 0]
    spare = [candidate for candidate in drawn if candidate.weight <= 0]
    costs = _load_costs(given, loads) if strategy == "least_busy" else _latency_costs(given, loads)
    best = sorted(given, key=lambda candidate: costs[candidate.index])  # of equals the first drawn stays first
    if affinity is not None and given and _within_margin(strategy, costs, given[0]):
        best.remove(given[0])
        best.insert(0, given[0])
    return best + spare


def _by_rendezvous(tier: Sequence[TargetCandidate], key: str) -> list[TargetCandidate]:
    """Return the candidates by rendezvous; the second of two with one name has its own hash."""
    named: dict[str, TargetCandidate] = {}
    for candidate in tier:
        name = candidate.name
        while name in named:
            name += "'"
        named[name] = candidate
    return [named[name] for name in rendezvous(key, {name: one.weight for name, one in named.items()})]


def _load_costs(tier: Sequence[TargetCandidate], loads: Mapping[int, TargetLoad]) -> dict[int, float]:
    return {one.index: loads.get(one.index, IDLE).running / one.weight for one in tier}


def _latency_costs(tier: Sequence[TargetCandidate], loads: Mapping[int, TargetLoad]) -> dict[int, float]:
    """Return the wait to expect at each; one of which nothing is known promises half of the shortest, to be tried."""
    known = [load.latency for one in tier if (load := loads.get(one.index, IDLE)).latency is not None]
    promised = min(known) / 2 if known else 1.0
    costs = {}
    for one in tier:
        load = loads.get(one.index, IDLE)
        latency = promised if load.latency is None else load.latency
        costs[one.index] = latency * (1 + load.running / one.weight)
    return costs


def _within_margin(strategy: Strategy, costs: Mapping[int, float], home: TargetCandidate) -> bool:
    """Return whether a group stays at its target: a cached prompt is worth some wait, but not any."""
    cost = costs[home.index]
    if strategy == "least_busy":
        return cost <= CROWDING * sum(costs.values()) / len(costs) + 1 / home.weight
    return cost <= TARDINESS * min(costs.values())
