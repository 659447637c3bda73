"""Builds grammars in GBNF, the runtime's notation: expressions as text, and the rules that contain them.

Notation: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md

Grammar expressions for the characters allowed inside a JSON string, with their escapes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MOST_RULES: Final = 4000
LONGEST_TEXT: Final = 256 * 1024
"""A grammar is parsed for each request; one of this size takes the runtime a few milliseconds."""

MOST_REPEATED: Final = 2000
"""The runtime refuses to repeat anything more often."""

PRINTABLE: Final = range(0x20, 0x7F)
IN_TEXT: Final = '"\\'
IN_CLASS: Final = "[]^-\\"
"""What has a meaning in a text, and in a class."""


class GrammarTooLargeError(Exception):
    """The grammar has more rules or more characters than the runtime should parse."""


def literal(text: str) -> str:
    """Return the expression for exactly `text`."""
    return '"' + "".join(_escape(character, IN_TEXT) for character in text) + '"'


def one_of(ranges: Iterable[tuple[int, int]]) -> str:
    """Return the expression for one character of `ranges`, which are code points, both ends included."""
    return "[" + "".join(_escaped_range(first, last) for first, last in ranges) + "]"


def either(expressions: Iterable[str]) -> str:
    """Return the expression for one of `expressions`."""
    distinct = list(dict.fromkeys(expressions))
    return distinct[0] if len(distinct) == 1 else "(" + " | ".join(distinct) + ")"


def repeat(expression: str, least: int, most: int) -> str:
    """Return the expression for `expression`, which must be a rule, a class or in brackets, `least` to `most` times."""
    if most == 0:
        return '""'
    return f"{expression}{{{least},{most}}}"


class GrammarRules:
    """The rules of one grammar, by name."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._size = 0
        self._number = 0

    def reserve(self) -> str:
        """Return a new name, for a rule that others refer to before it is written.

        Raises:
            GrammarTooLargeError: there are too many.
        """
        self._number += 1
        if self._number > MOST_RULES:
            raise GrammarTooLargeError
        return f"r{self._number}"

    def define(self, name: str, expression: str) -> str:
        """Write the rule `name`; return the name.

        Raises:
            GrammarTooLargeError: the text grows too long.
        """
        self._rules[name] = expression
        self._size += len(expression)
        if self._size > LONGEST_TEXT:
            raise GrammarTooLargeError
        return name

    def add(self, expression: str) -> str:
        """Write a rule of a new name, and return the name."""
        return self.define(self.reserve(), expression)

    def shared(self, name: str, expression: str) -> str:
        """Write the rule `name` unless it exists; return the name."""
        return name if name in self._rules else self.define(name, expression)

    @property
    def bodies(self) -> Mapping[str, str]:
        """The rules by their names."""
        return self._rules

    def text(self, root: str) -> str:
        """Return the grammar whose whole text is `root`."""
        return "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in self._rules.items()), ""])


def _escaped_range(first: int, last: int) -> str:
    start = _escape(chr(first), IN_CLASS)
    return start if first == last else f"{start}-{_escape(chr(last), IN_CLASS)}"


def _escape(character: str, special: str) -> str:
    code = ord(character)
    if code not in PRINTABLE or character in special:
        return f"\\x{code:02X}" if code <= 0xFF else f"\\U{code:08X}"  # noqa: PLR2004  two hexadecimal digits
    return character


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
