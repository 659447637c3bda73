"""The text format of Prometheus: families of counters, gauges and histograms.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Value: TypeAlias = "float | int | None"
Sample: TypeAlias = "tuple[dict[str, str], Value]"


class Histogram:
    """Counts of values per bucket. `bounds` are the upper bounds of the buckets, in ascending order."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield the lines of one metric; a value of None has no line."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        if value is not None:
            pairs = _pairs(labels)
            yield f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def histogram_family(name: str, text: str, samples: Iterable[tuple[dict[str, str], Histogram]]) -> Iterator[str]:
    """Yield the lines of a histogram; one without values has no line."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} histogram"
    for labels, histogram in samples:
        pairs = _pairs(labels)
        count = 0
        lines = []
        for bound, number in zip((*histogram.bounds, "+Inf"), histogram.counts, strict=True):
            count += number
            lines.append(f'{name}_bucket{{{pairs},le="{bound}"}} {count}')
        if count:
            yield from lines
            yield f"{name}_sum{{{pairs}}} {histogram.total}"
            yield f"{name}_count{{{pairs}}} {count}"


def _pairs(labels: dict[str, str]) -> str:
    return ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
