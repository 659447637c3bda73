"""Finds how much of a text its continuation repeats."""

from __future__ import annotations

from typing import Final

LONGEST_OVERLAP: Final = 256
"""Characters at the end of the words so far that the continuation may repeat."""
SHORTEST_OVERLAP: Final = 8
"""Characters; fewer that are the same are taken for chance."""


def overlap(before: str, after: str) -> int:
    """Return how many characters at the beginning of `after` repeat the end of `before`."""
    for length in range(min(len(before), len(after)), SHORTEST_OVERLAP - 1, -1):
        if before.endswith(after[:length]):
            return length
    return 0
