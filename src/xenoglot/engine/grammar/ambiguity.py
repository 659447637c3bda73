"""Estimates the ambiguity of a grammar: how many parse positions the runtime must track at each token.

A small schema can produce thousands of positions, by branches of `anyOf` with a common prefix or repetitions of
optional items. The runtime then serves no other request for minutes. The check searches greedily for a text that keeps
many positions open; a grammar written to evade the search can evade it.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHARACTERS: Final = 48
"""How long the text is that is looked for."""

MOST_PLACES: Final = 20_000
"""The sum of the places at each of its characters: of 400 places, one token takes the runtime a second, or more."""

_TOKEN: Final = re.compile(
    r"""\s*(?:
    "(?P<text>(?:[^"\\]|\\.)*)"
    | \[(?P<chars>(?:[^\]\\]|\\.)+)\]
    | \{(?P<times>\d+,\d+)\}
    | (?P<mark>[()|?])
    | (?P<name>[a-z][a-z0-9]*)
    )""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-F]{2})|U([0-9A-F]{8})|(.))")
_CODE: Final = r"\\x..|\\U.{8}|\\.|[^\\]"
_RANGE: Final = re.compile(rf"({_CODE})(?:-({_CODE}))?")


class _Text(Struct, frozen=True):
    """The characters of a text from `at` on."""

    text: str
    at: int = 0


class _Class(Struct, frozen=True, eq=False):
    """One character of these ranges."""

    ranges: tuple[tuple[int, int], ...]


class _Ways(Struct, frozen=True, eq=False):
    """One of these rows. Compared by identity, as is a class: a comparison by value would traverse its whole depth."""

    ways: tuple[_Row, ...]


class _Times(Struct, frozen=True, eq=False):
    """An item with its minimum and maximum number of repetitions."""

    item: _Item
    least: int
    most: int


_Item: TypeAlias = "_Text | _Class | _Ways | _Times | str"
"""A string is the name of a rule."""
_Row: TypeAlias = "tuple[_Item, ...]"


def too_ambiguous(rules: Mapping[str, str], root: str) -> bool:
    """Return whether a text of the expression `root` was found that is in too many places of `rules` at once."""
    return _Following(rules, root).crowded()


class _Following:
    """One grammar, parsed as far as needed."""

    def __init__(self, rules: Mapping[str, str], root: str) -> None:
        self._rules = rules
        self._read: dict[str, tuple[_Row, ...]] = {}
        self._times: dict[tuple[_Item, int, int], _Times] = {}
        self._left = MOST_PLACES
        self._places = self._ready({(_read(root),)})

    def crowded(self) -> bool:
        """Return whether there are too many places, on the text that keeps the most."""
        for _ in range(CHARACTERS):
            self._left -= len(self._places)
            if self._left < 0:
                return True
            code = _likeliest(self._places)
            if code is None:
                return False
            self._places = self._ready({left for row in self._places if (left := _after(row, code)) is not None})
        return False

    def _ready(self, rows: set[_Row]) -> set[_Row]:
        """Return what the rows come to before the next character; not all of them, if they are too many."""
        waiting, seen = list(rows), set(rows)
        while waiting and len(seen) <= MOST_PLACES:
            row = waiting.pop()
            fresh = {new for way in self._ways(row[0]) if (new := (*way, *row[1:])) and new not in seen} if row else ()
            seen.update(fresh)
            waiting += fresh
        if waiting:
            self._left = -1
        return {row for row in seen if row and isinstance(row[0], _Text | _Class)}

    def _ways(self, item: _Item) -> tuple[_Row, ...]:
        match item:
            case str():
                if item not in self._read:
                    self._read[item] = _read(self._rules[item]).ways
                return self._read[item]
            case _Ways(ways=ways):
                return ways
            case _Times(item=once, least=least, most=most):
                fewer = (once, max(0, least - 1), most - 1)
                again: _Row = (once, self._times.setdefault(fewer, _Times(*fewer)))
                return ((),) if not most else (again,) if least else ((), again)
            case _:
                return ()


def _likeliest(places: set[_Row]) -> int | None:
    """Return the character that continues the most rows."""
    changes: dict[int, int] = {}
    for row in places:
        for low, high in _ranges(row[0]):
            changes[low] = changes.get(low, 0) + 1
            changes[high + 1] = changes.get(high + 1, 0) - 1
    if not changes:
        return None
    codes = sorted(changes)
    counts = [*accumulate(changes[code] for code in codes)]
    return codes[counts.index(max(counts))]


def _ranges(item: _Item) -> tuple[tuple[int, int], ...]:
    match item:
        case _Text(text=text, at=at):
            return ((ord(text[at]), ord(text[at])),)
        case _Class(ranges=ranges):
            return ranges
        case _:
            return ()


def _after(row: _Row, code: int) -> _Row | None:
    """Return the rest of a row after a character; `None` if it does not continue with that."""
    if not any(low <= code <= high for low, high in _ranges(row[0])):
        return None
    first = row[0]
    if isinstance(first, _Text) and first.at + 1 < len(first.text):
        return (_Text(first.text, first.at + 1), *row[1:])
    return row[1:]


def _read(body: str) -> _Ways:
    return _either((match.lastgroup or "", match[match.lastgroup or 0]) for match in _TOKEN.finditer(body))


def _either(tokens: Iterator[tuple[str, str]]) -> _Ways:
    """Read up to the closing bracket, or the end."""
    ways: list[list[_Item]] = [[]]
    for kind, token in tokens:
        row = ways[-1]
        match kind, token:
            case "mark", ")":
                break
            case "mark", "|":
                ways.append([])
            case "mark", "(":
                row.append(_either(tokens))
            case "mark", _:
                row.append(_Times(row.pop(), 0, 1))
            case "times", _:
                least, most = map(int, token.split(","))
                row.append(_Times(row.pop(), least, most))
            case "text", _:
                row += [_Text(_plain(token))] if token else []
            case "chars", _:
                row.append(_Class(tuple((_code(low), _code(high or low)) for low, high in _RANGE.findall(token))))
            case _:
                row.append(token)
    return _Ways(tuple(map(tuple, ways)))


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: match[3] or chr(int(match[1] or match[2], 16)), text)


def _code(text: str) -> int:
    return ord(_plain(text))
