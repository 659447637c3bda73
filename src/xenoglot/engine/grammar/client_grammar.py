"""Parses a client's GBNF grammar and rewrites it in our own form, within limits.

The runtime parses grammars in its own process, where one that is too large or too ambiguous stops all requests. The
client's text is therefore never sent to it: it is parsed here, its rules are renamed, its repetitions are counted, and
a left-recursive rule is rejected.

Notation: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from xenoglot.engine.grammar.gbnf import LAST, MOST_REPEATED, literal, one_of, repeat, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.engine.grammar.gbnf import GrammarRules

LONGEST: Final = 64 * 1024
DEEPEST: Final = 32
MOST_RULES: Final = 1000
MOST_TIMES: Final = 4 * MOST_REPEATED
"""The sum of all repetitions with a bound: the runtime writes each of them out."""

MOST_STACKED: Final = 4
"""Repetitions right after each other, `a?*`: each is one level of nesting."""

_TOKEN: Final = re.compile(
    r"""(?:[ \t\r\n]|\#[^\n]*)*(?:
    (?P<head>[A-Za-z0-9_-]+)[ \t]*::=
    | (?P<name>[A-Za-z0-9_-]+)
    | "(?P<text>(?:[^"\\\n]|\\.)*)"
    | \[(?P<negated>\^)?(?P<chars>(?:[^\]\\]|\\.)*)\]
    | \{(?P<least>\d{1,6})(?P<open>,(?P<most>\d{1,6})?)?\}
    | (?P<mark>[()|?*+.])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_CHARACTER: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([nrt\"\\\[\]]))|([^\\])")
_SURROGATES: Final = [(0xD800, 0xDFFF)]
_DASH: Final = -1
_ESCAPES: Final = {"n": 0x0A, "r": 0x0D, "t": 0x09}


class ClientGrammarError(ValueError):
    """The grammar is invalid or too large; the message has the place."""


class _Leaf(Struct, frozen=True):
    """An expression in our form that refers to no rule; `empty` if it matches nothing at all."""

    text: str
    empty: bool = False


class _Name(Struct, frozen=True):
    """A rule."""

    name: str


class _Row(Struct, frozen=True):
    """A sequence of items."""

    items: tuple[_Node, ...]


class _Either(Struct, frozen=True):
    """A choice between items."""

    ways: tuple[_Node, ...]


class _Times(Struct, frozen=True):
    """An item with its minimum and maximum (`most`) number of repetitions; no `most`: unlimited."""

    item: _Node
    least: int
    most: int | None


_Node: TypeAlias = "_Leaf | _Name | _Row | _Either | _Times"


def translated(rules: GrammarRules, text: str) -> str:
    """Return the rule in `rules` that `root` of the grammar in `text` became.

    Raises:
        ClientGrammarError: the grammar is wrong, or cannot be had within the bounds.
        GrammarTooLargeError: it has too many rules.
    """
    if len(text) > LONGEST:
        raise ClientGrammarError(f"it is longer than {LONGEST} characters")
    bodies = _Parser(text).rules()
    if "root" not in bodies:
        raise ClientGrammarError("it has no rule `root`")
    empty = _EmptyRules(bodies).found
    _check_beginnings(bodies, empty)
    names = {name: rules.reserve() for name in bodies}
    for name, body in bodies.items():
        rules.define(names[name], _written(body, names, empty, rules))
    return names["root"]


class _Parser:
    """Recursive descent over one grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._times = 0
        self._named: set[str] = set()
        self._token = self._next(0)

    def rules(self) -> dict[str, _Node]:
        """Return the expressions of the rules, by their names."""
        found: dict[str, _Node] = {}
        while self._token.lastgroup != "end":
            name = self._token["head"]
            if name is None or name in found:
                raise self._odd("expected a new rule, `name ::= ...`")
            if len(found) == MOST_RULES:
                raise self._odd(f"expected no more than {MOST_RULES} rules")
            self._step()
            found[name] = self._alternatives()
        for name in self._named - found.keys():
            raise ClientGrammarError(f"the rule `{name[:64]}` does not exist")
        return found

    def _next(self, at: int) -> re.Match[str]:
        found = _TOKEN.match(self._text, at)
        if found is None:
            raise ClientGrammarError(f"it cannot be read in line {self._line(at)}")
        return found

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    def _odd(self, problem: str) -> ClientGrammarError:
        return ClientGrammarError(f"line {self._line(self._token.end())}: {problem}")

    def _step(self) -> re.Match[str]:
        before, self._token = self._token, self._next(self._token.end())
        return before

    def _skip(self, mark: str) -> bool:
        found = self._token["mark"] == mark
        if found:
            self._step()
        return found

    def _alternatives(self) -> _Node:
        ways = [self._row()]
        while self._skip("|"):
            ways.append(self._row())
        return ways[0] if len(ways) == 1 else _Either(tuple(ways))

    def _row(self) -> _Node:
        items: list[_Node] = []
        while (atom := self._atom()) is not None:
            items.append(self._repeated(atom))
        return items[0] if len(items) == 1 else _Row(tuple(items))

    def _atom(self) -> _Node | None:
        token = self._token
        if token.lastgroup == "name":
            self._named.add(token["name"])
            return _Name(self._step()["name"])
        if token.lastgroup == "text":
            text = "".join(map(chr, _codes(self._step()["text"])))
            return _Leaf(literal(text), empty=not text)
        if token.lastgroup == "chars":
            return self._class(self._step())
        if token["mark"] == ".":
            self._step()
            return _Leaf(one_of(without([(0, LAST)], _SURROGATES)))
        return self._group() if token["mark"] == "(" else None

    def _group(self) -> _Node:
        self._step()
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._odd(f"groups are nested more than {DEEPEST} deep")
        inside = self._alternatives()
        if not self._skip(")"):
            raise self._odd("a group is not closed")
        self._depth -= 1
        return inside

    def _class(self, token: re.Match[str]) -> _Node:
        codes, ranges, at = _codes(token["chars"], dashes=True), [], 0
        while at < len(codes):
            first, last = codes[at], codes[at]
            if codes[at + 1 : at + 2] == [_DASH] and at + 2 < len(codes):
                last, at = codes[at + 2], at + 2
            if _DASH in {first, last}:
                first, last = (ord("-") if code == _DASH else code for code in (first, last))
            if first > last:
                raise self._odd("a range of characters ends before it begins")
            ranges.append((first, last))
            at += 1
        left = without(
            [(0, LAST)] if token["negated"] else ranges, [*_SURROGATES, *(ranges if token["negated"] else ())]
        )
        if not left:
            raise self._odd("a class of characters matches nothing")
        return _Leaf(one_of(left))

    def _repeated(self, item: _Node) -> _Node:
        stacked = 0
        while (bounds := self._bounds()) is not None:
            least, most = bounds
            stacked += 1
            if stacked > MOST_STACKED:
                raise self._odd(f"more than {MOST_STACKED} repetitions of one another")
            self._times += most or least
            if self._times > MOST_TIMES or (most or least) > MOST_REPEATED or (most is not None and most < least):
                raise self._odd(f"repetitions are wrong, or more than {MOST_TIMES} in all, {MOST_REPEATED} at once")
            item = _Times(item, least, most)
        return item

    def _bounds(self) -> tuple[int, int | None] | None:
        token = self._token
        if token["least"] is not None:
            self._step()
            least = int(token["least"])
            most = least if token["open"] is None else None if token["most"] is None else int(token["most"])
            return least, most
        usual: dict[str | None, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        found = usual.get(token["mark"])
        if found is not None:
            self._step()
        return found


def _codes(text: str, *, dashes: bool = False) -> list[int]:
    """Return the characters of a text or class; with `dashes` one that is not escaped is `_DASH`."""
    found, at = [], 0
    while at < len(text):
        one = _CHARACTER.match(text, at)
        if one is None:
            raise ClientGrammarError(f"`{text[at : at + 2]}` is no escape")
        digits, letter, plain = one[1] or one[2] or one[3], one[4], one[5]
        code = int(digits, 16) if digits else _ESCAPES.get(letter, ord(letter)) if letter else ord(plain)
        if code > LAST:
            raise ClientGrammarError(f"`{one[0]}` is no character")
        found.append(_DASH if dashes and plain == "-" else code)
        at = one.end()
    return found


class _Waiting(Struct):
    """A row or a choice that is empty once `missing` of its parts are; `above` is what then is one part emptier."""

    missing: int
    above: _Waiting | str


class _EmptyRules:
    """The rules that match nothing at all, among other texts: each part of a grammar is looked at once.

    Rules that wait for a rule are visited once it is found to be empty, so the order of the rules costs nothing.
    """

    def __init__(self, bodies: Mapping[str, _Node]) -> None:
        self.found: set[str] = set()
        self._waiting: dict[str, list[_Waiting | str]] = {name: [] for name in bodies}
        self._told: list[_Waiting | str] = []
        for name, body in bodies.items():
            self._watch(body, name)
        while self._told:
            self._tell(self._told.pop())

    def _watch(self, node: _Node, above: _Waiting | str) -> None:
        match node:
            case _Leaf(empty=True) | _Row(items=()) | _Times(least=0):
                self._told.append(above)
            case _Name(name=name):
                self._waiting[name].append(above)
            case _Row(items=parts):
                row = _Waiting(len(parts), above)
                for part in parts:
                    self._watch(part, row)
            case _Either(ways=parts):
                choice = _Waiting(1, above)
                for part in parts:
                    self._watch(part, choice)
            case _Times(item=item):
                self._watch(item, above)
            case _:
                pass

    def _tell(self, above: _Waiting | str) -> None:
        if isinstance(above, str):
            if above not in self.found:
                self.found.add(above)
                self._told += self._waiting[above]
            return
        above.missing -= 1
        if above.missing == 0:
            self._told.append(above.above)


def _is_empty(node: _Node, empty: set[str]) -> bool:
    match node:
        case _Leaf():
            return node.empty
        case _Name(name=name):
            return name in empty
        case _Row(items=items):
            return all(_is_empty(item, empty) for item in items)
        case _Either(ways=ways):
            return any(_is_empty(way, empty) for way in ways)
        case _Times(item=item, least=least):
            return least == 0 or _is_empty(item, empty)


def _check_beginnings(bodies: Mapping[str, _Node], empty: set[str]) -> None:
    """Refuse a rule that can begin with itself: the runtime would follow it for ever."""
    order = TopologicalSorter({name: set(_beginnings(body, empty)) for name, body in bodies.items()})
    try:
        order.prepare()
    except CycleError as error:
        raise ClientGrammarError(f"the rule `{error.args[1][0][:64]}` can begin with itself") from None


def _beginnings(node: _Node, empty: set[str]) -> Iterator[str]:
    match node:
        case _Leaf():
            return
        case _Name(name=name):
            yield name
        case _Row(items=items):
            for item in items:
                yield from _beginnings(item, empty)
                if not _is_empty(item, empty):
                    return
        case _Either(ways=ways):
            for way in ways:
                yield from _beginnings(way, empty)
        case _Times(item=item):
            yield from _beginnings(item, empty)


def _written(node: _Node, names: Mapping[str, str], empty: set[str], rules: GrammarRules) -> str:
    match node:
        case _Leaf(text=text):
            return text
        case _Name(name=name):
            return names[name]
        case _Row(items=items):
            return " ".join(_written(item, names, empty, rules) for item in items) or '""'
        case _Either(ways=ways):
            return f"({' | '.join(_written(way, names, empty, rules) for way in ways)})"
        case _Times(item=item, least=least, most=most):
            one = _written(item, names, empty, rules)
            if most is not None:
                return repeat(f"({one})", least, most)
            if _is_empty(item, empty):
                raise ClientGrammarError("it repeats without a bound what may be empty")
            more = rules.reserve()
            rules.define(more, f"(({one}) {more})?")
            return f"{repeat(f'({one})', least, least)} {more}" if least else more
