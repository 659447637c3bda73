"""Fair queue: round-robin over owners, then over the lanes of an owner; first in, first out in a lane. Pure.

A lane holds those of one owner who wait for the same things. Whoever comes joins behind all owners that wait already,
and whoever was served goes behind them again: so each of the others is served at most once before it is somebody's
turn, however many of theirs are waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator


class QueuedItem(Protocol):
    """Somebody who waits; a `number` is nobody else's, and larger than those of all who came before."""

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
        """Wait behind all others."""
        self._owners.setdefault(waiting.owner, {}).setdefault(waiting.lane, {})[waiting.number] = waiting
        self._length += 1

    def requeue(self, waiting: W) -> None:
        """Wait again, as if not served: in front of all owners, and behind those in its lane who came before."""
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
