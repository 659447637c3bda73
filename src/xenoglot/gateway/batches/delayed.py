"""Requests of a batch that are sent later, each after its model's back-off; other models are not delayed.

Times are seconds of a clock that only goes forward, and always arguments.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush, heapreplace


class DelayedRequests:
    """Requests, by their numbers, that wait for their models."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        """When the rest of a model ends."""
        self._numbers: dict[str, deque[int]] = {}
        self._turns: list[tuple[float, str]] = []
        """A heap of the models that something waits for: each with the time of its turn, which is never too late."""

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._turns)

    def rest(self, model: str, until: float) -> None:
        """Have a model rest; no less than it was to."""
        self._until[model] = max(until, self._until.get(model, until))

    def rests(self, model: str, now: float) -> bool:
        """Return whether a model is backing off now."""
        return self._until.get(model, now) > now

    def put(self, number: int, model: str) -> None:
        """Have a request wait for a model."""
        if model not in self._numbers:
            self._numbers[model] = deque()
            heappush(self._turns, (self._until.get(model, 0.0), model))
        self._numbers[model].append(number)

    def take(self, now: float) -> int | None:
        """Return a request whose model is not backing off, if there is one; the models take turns."""
        while self._turns and self._turns[0][0] <= now:
            model = self._turns[0][1]
            until = self._until.get(model, 0.0)
            if until > now:
                heapreplace(self._turns, (until, model))
                continue
            number = self._numbers[model].popleft()
            if self._numbers[model]:
                heapreplace(self._turns, (now, model))
            else:
                heappop(self._turns)
                del self._numbers[model]
            return number
        return None

    def seconds(self, now: float) -> float | None:
        """Return how long nothing can be taken, as far as is known; `None` where nothing waits."""
        return max(0.0, self._turns[0][0] - now) if self._turns else None
