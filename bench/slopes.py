"""Does a cost grow linearly? The slope of its logarithm over that of the size, in the last decade of sizes. Pure.

What a call costs at any size makes the first decades flat. A step, as where memory begins to be had from the system
for each call anew, makes one of them steep. What grows by more than its size does so to the last.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LINEAR = 1.15
"""The slope above which growth is not called linear: 1.15 makes of ten times the size 14 times the cost."""

DECADE = 10.0


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the exponent of growth through `points` (size, cost), by least squares of the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    x_mean = sum(x for x, _ in logs) / len(logs)
    y_mean = sum(y for _, y in logs) / len(logs)
    over = sum((x - x_mean) ** 2 for x, _ in logs)
    return sum((x - x_mean) * (y - y_mean) for x, y in logs) / over


def last_decade(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return those of `points` (by growing size) that span the last decade of sizes; all, where there is none."""
    largest = points[-1][0]
    begin = max((place for place, (size, _) in enumerate(points) if size * DECADE <= largest * 1.01), default=0)
    return points[begin:]


def sizes(first: int, last: int, per_decade: int = 4) -> tuple[int, ...]:
    """Return whole numbers from `first` to `last`, evenly spaced on a logarithmic scale."""
    steps = round(math.log10(last / first) * per_decade)
    return tuple(dict.fromkeys(round(first * 10 ** (step / per_decade)) for step in range(steps + 1)))
