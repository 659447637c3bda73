"""Compiles regular expressions of JSON Schema to grammars for the inside of a JSON string.

Supported: ECMA-262 section 22.2, without back-references and look-around. Open repetitions (`*`, `+`, `{2,}`) get a
limit. Without `^` and `$` any text may precede and follow the match, as JSON Schema requires:
https://json-schema.org/draft/2020-12/json-schema-validation#section-6.3.3
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

from msgspec import Struct

from xenoglot.engine.grammar.gbnf import (
    ANYTHING,
    LAST,
    MOST_REPEATED,
    Ranges,
    characters,
    plain_characters,
    repeat,
    without,
)

CLASSES: Final[dict[str, Ranges]] = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x2028, 0x2029)],
}
CONTROLS: Final = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D, "0": 0x00}
HEXADECIMAL: Final = {"x": 2, "u": 4}
_DIGITS: Final = {count: re.compile(f"([0-9a-fA-F]{{{count}}})") for count in HEXADECIMAL.values()}
_BRACED: Final = re.compile("([0-9a-fA-F]{1,6})}")
NOT_LINE_END: Final[Ranges] = [(0x00, 0x09), (0x0B, 0x0C), (0x0E, 0x2027), (0x202A, LAST)]
DEEPEST: Final = 32
LONGEST: Final = 1000


class PatternError(ValueError):
    """The expression is invalid, or has no equivalent grammar, as the message states."""


class Matched(Struct, frozen=True):
    """The grammar of the expression, and the fewest and most characters that it matches."""

    text: str
    least: int
    most: int


class Bounds(Struct, frozen=True):
    """Limits of an open repetition: `least` and `most` further repetitions."""

    least: int = 0
    most: int = 64


def fitted(pattern: str, least: int, most: int | None) -> Matched | None:
    """Return the grammar of `pattern` whose matches have `least` to `most` characters; `None` if that cannot be had.

    Raises:
        PatternError: the pattern itself cannot be had.
    """
    longest = Bounds().most
    while longest and most is not None and translate(pattern, Bounds(most=longest)).most > most:
        longest //= 2

    def stretched(shortest: int) -> Matched:
        return translate(pattern, Bounds(least=shortest, most=max(longest, shortest)))

    matched = stretched(bisect_left(range(least), least, key=lambda shortest: stretched(shortest).least))
    return matched if least <= matched.least and (most is None or matched.most <= most) else None


def translate(pattern: str, bounds: Bounds, *, plain: bool = False) -> Matched:
    """Return the grammar of `pattern` for the inside of a JSON string, or for a `plain` text that it wholly matches.

    Raises:
        PatternError: it cannot be had.
    """
    if len(pattern) > LONGEST:
        raise PatternError(f"it is longer than {LONGEST} characters")
    parser = _Parser(pattern, bounds, plain=plain)
    matched = parser.whole()
    if matched.most > MOST_REPEATED:
        raise PatternError(f"it matches more than {MOST_REPEATED} characters")
    return matched


class _Parser:
    """Recursive descent over one expression."""

    def __init__(self, pattern: str, bounds: Bounds, *, plain: bool) -> None:
        self._pattern = pattern
        self._plain = plain
        self._bounds = bounds
        self._at = 0
        self._depth = 0

    def whole(self) -> Matched:
        """Return the whole; each alternative at the top has anchors of its own."""
        branches = [self._anchored()]
        while self._skip("|"):
            branches.append(self._anchored())
        if self._at < len(self._pattern):
            raise PatternError(f"it has an unexpected `{self._pattern[self._at]}` at {self._at}")
        return _either(branches)

    def _anchored(self) -> Matched:
        anything = _repeated(Matched(ANYTHING, 1, 1), self._bounds.least, self._bounds.most)
        before = [] if self._skip("^") or self._plain else [anything]
        inside = self._sequence()
        after = [] if self._skip("$") or self._plain else [anything]
        return _joined([*before, inside, *after])

    def _skip(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise PatternError("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _sequence(self) -> Matched:
        items = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)$":
            items.append(self._quantified(self._atom()))
        return _joined(items)

    def _atom(self) -> Matched:
        match self._next():
            case "(":
                return self._group()
            case "[":
                ranges = self._class()
            case ".":
                ranges = NOT_LINE_END
            case "\\":
                ranges = self._escape()
            case "^" | "*" | "+" | "?" | "{" as odd:
                raise PatternError(f"`{odd}` at {self._at - 1} is not supported there")
            case character:
                ranges = [(ord(character), ord(character))]
        expression = plain_characters(ranges) if self._plain else characters(ranges)
        if expression is None:
            raise PatternError("it has a character class that nothing matches")
        return Matched(expression, 1, 1)

    def _group(self) -> Matched:
        self._depth += 1
        if self._depth > DEEPEST:
            raise PatternError(f"its groups are nested more than {DEEPEST} deep")
        if self._skip("?") and not self._skip(":"):
            if not self._skip("<") or self._pattern.startswith(("=", "!"), self._at):
                raise PatternError("looking around is not supported")
            self._at = self._pattern.find(">", self._at) + 1 or len(self._pattern)
        branches = [self._sequence()]
        while self._skip("|"):
            branches.append(self._sequence())
        if not self._skip(")"):
            raise PatternError("a group is not closed, or has an anchor inside")
        self._depth -= 1
        return _either(branches)

    def _quantified(self, atom: Matched) -> Matched:
        if self._skip("*"):
            least, most = self._bounds.least, self._bounds.most
        elif self._skip("+"):
            least, most = max(1, self._bounds.least), max(1, self._bounds.most)
        elif self._skip("?"):
            least, most = 0, 1
        elif self._skip("{"):
            least, most = self._counts()
        else:
            return atom
        self._skip("?")  # a lazy one matches the same texts
        if self._pattern.startswith(("*", "+", "?", "{"), self._at):
            raise PatternError("it repeats a repetition")
        return _repeated(atom, least, most)

    def _counts(self) -> tuple[int, int]:
        end = self._pattern.find("}", self._at)
        low, comma, high = self._pattern[self._at : end].partition(",")
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()) or len(low + high) > 8:  # noqa: PLR2004
            raise PatternError(f"a number of times is wrong at {self._at}")
        self._at = end + 1
        least = int(low)
        if not comma:
            return least, least
        most = int(high) if high else least + max(self._bounds.most, self._bounds.least)
        if most < least:
            raise PatternError("a number of times ends before it begins")
        return (least, most) if high else (least + self._bounds.least, most)

    def _class(self) -> Ranges:
        negated = self._skip("^")
        ranges: Ranges = []
        while not self._skip("]"):
            first = self._class_item()
            if self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at):
                self._at += 1
                last = self._class_item()
                if len(first) != 1 or len(last) != 1 or first[0][0] > last[0][1]:
                    raise PatternError("a range in a character class is wrong")
                ranges.append((first[0][0], last[0][1]))
            else:
                ranges += first
        return without([(0, LAST)], ranges) if negated else ranges

    def _class_item(self) -> Ranges:
        character = self._next()
        if character == "\\":
            return [(8, 8)] if self._skip("b") else self._escape()
        return [(ord(character), ord(character))]

    def _escape(self) -> Ranges:
        letter = self._next()
        if letter.lower() in CLASSES:
            ranges = CLASSES[letter.lower()]
            return ranges if letter.islower() else without([(0, LAST)], ranges)
        if letter in HEXADECIMAL:
            code = self._code(HEXADECIMAL[letter])
        elif letter in CONTROLS:
            code = CONTROLS[letter]
        elif letter.isalnum():
            raise PatternError(f"`\\{letter}` is not supported")
        else:
            code = ord(letter)
        return [(code, code)]

    def _code(self, digits: int) -> int:
        found = (_BRACED if self._skip("{") else _DIGITS[digits]).match(self._pattern, self._at)
        code = int(found[1], 16) if found else LAST + 1
        if found is None or code > LAST:
            raise PatternError("an escape has wrong digits")
        self._at = found.end()
        return code


def _joined(items: list[Matched]) -> Matched:
    text = " ".join(item.text for item in items if item.text != '""') or '""'
    return Matched(text, sum(item.least for item in items), sum(item.most for item in items))


def _either(branches: list[Matched]) -> Matched:
    text = f"({' | '.join(dict.fromkeys(branch.text for branch in branches))})"
    return Matched(text, min(branch.least for branch in branches), max(branch.most for branch in branches))


def _repeated(item: Matched, least: int, most: int) -> Matched:
    if most > MOST_REPEATED:
        raise PatternError(f"it repeats something more than {MOST_REPEATED} times")
    return Matched(repeat(f"({item.text})", least, most), item.least * least, item.most * most)
