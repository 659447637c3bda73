"""Grammar expressions for the characters allowed inside a JSON string, with their escapes."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.engine.grammar.gbnf import either, literal, one_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Ranges: TypeAlias = list[tuple[int, int]]
"""Code points, both ends included."""

LAST: Final = 0x10FFFF
UNWRITTEN: Final = ((0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x7F), (0xD800, 0xDFFF))
"""Control characters and halves of surrogate pairs: never written, though an expression may allow them."""

ESCAPES: Final = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
"""What JSON does not take as it is (RFC 8259 section 7), and how it is written."""


def characters(ranges: Ranges) -> str | None:
    """Return the expression for one character of `ranges`; `None` if none of them may be written."""
    plain = without(ranges, (*UNWRITTEN, *((code, code) for code in ESCAPES)))
    escaped = [literal(text) for code, text in ESCAPES.items() if any(low <= code <= high for low, high in ranges)]
    expressions = ([one_of(plain)] if plain else []) + escaped
    return either(expressions) if expressions else None


def plain_characters(ranges: Ranges) -> str | None:
    """Return the expression for one character of `ranges` in a text that is no JSON; `None` if none may be written."""
    plain = without(ranges, UNWRITTEN)
    return one_of(plain) if plain else None


def without(ranges: Ranges, removed: Iterable[tuple[int, int]]) -> Ranges:
    """Return the characters of `ranges` that are not in `removed`, in their order."""
    holes = _merged(removed)
    ends = [last for _, last in holes]
    left: list[tuple[int, int]] = []
    for first, last in sorted(set(ranges)):
        start = first
        for place in range(bisect_left(ends, first), len(holes)):
            low, high = holes[place]
            if low > last:
                break
            if start < low:
                left.append((start, low - 1))
            start = high + 1
        if start <= last:
            left.append((start, last))
    return sorted(set(left))


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same characters in ranges that do not touch, in their order."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


ANYTHING: Final = characters([(0, LAST)]) or ""
"""One character of a string, whatever it is."""
