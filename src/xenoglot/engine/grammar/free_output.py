"""Grammars without a schema: text up to a marker, reasoning of limited length, and limited JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from xenoglot.engine.grammar.gbnf import ANYTHING, LAST, literal, one_of, repeat, without
from xenoglot.engine.grammar.numbers import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.engine.grammar.gbnf import GrammarRules, Ranges
    from xenoglot.model.json import JSON


Place: TypeAlias = Literal["anywhere", "sentence", "line", "start"]
"""Where a marker counts: anywhere in the words (`sentence` is no narrower here), at the start of a
line, or before all words."""

LINE_LENGTH: Final = 400
SHORTEST_LINE: Final = 20
"""Characters of a line of bounded reasoning: a quarter of it, within these."""
MOST_LINES: Final = 1000

SURROGATES: Final = (0xD800, 0xDFFF)

BLANKS: Final = repeat(one_of([(0x0A, 0x0A), (0x20, 0x20)]), 0, 2)
"""What a model may write between two markers."""

NOTHING: Final = '""'


def words_until(rules: GrammarRules, marker: str, then: str, place: Place = "anywhere") -> str:
    """Return the rule for words that end anywhere; or in `marker`, and then `then` has to follow.

    `place` is where the marker counts. The states are the beginnings of the marker, as in the automaton of Knuth,
    Morris and Pratt: what is no marker yet may still become one.
    """
    if place == "start":
        return _words_until_at_start(rules, marker, then)
    if place == "line":  # the marker with the end of the line before it; at the start, the line before has just ended
        return _states(rules, f"\n{marker}", then)[1]
    return _states(rules, marker, then)[0]


def _states(rules: GrammarRules, marker: str, then: str) -> list[str]:
    names = [rules.reserve() for _ in marker]
    for state, name in enumerate(names):
        ways = {character: _next(marker, marker[:state] + character) for character in dict.fromkeys(marker)}
        on = {character: then if to == len(marker) else names[to] for character, to in ways.items() if to}
        known = [f"{literal(character)} {way}" for character, way in on.items()]
        rules.define(name, " | ".join([f"{one_of(all_but(on))} {names[0]}", *known, NOTHING]))
    return names


def _words_until_at_start(rules: GrammarRules, marker: str, then: str) -> str:
    """Return the rule for text with a marker only at its start, after white space."""
    names, anything = [rules.reserve() for _ in marker], _anything(rules)
    for state, (name, character) in enumerate(zip(names, marker, strict=True)):
        on = [f"{literal(character)} {names[state + 1] if state + 1 < len(marker) else then}"]
        blanks = "" if state else "".join({" ", "\n"} - {character})
        on += [f"{one_of([(ord(blank), ord(blank))])} {name}" for blank in sorted(blanks)]
        rules.define(name, " | ".join([f"{one_of(all_but({character, *blanks}))} {anything}", *on, NOTHING]))
    return names[0]


def _anything(rules: GrammarRules) -> str:
    """Return the rule for any words."""
    return rules.shared("anything", f"{one_of(all_but(''))} anything | {NOTHING}")


def words_not_from(rules: GrammarRules, characters: Iterable[str]) -> str:
    """Return the expression for any text that does not begin with one of `characters`, or with white space."""
    return f"({one_of(all_but({*characters, ' ', chr(10)}))} {_anything(rules)} | {NOTHING})"


def thought(rules: GrammarRules, opened: str, close: str, longest: int) -> str:
    """Return the expression for reasoning of about `longest` characters at most: `opened`, its lines, `close`.

    A model that repeats itself would never reach its answer. So that the bound needs no
    look-ahead, the reasoning cannot contain the first two characters of its end.
    """
    first, second = close[0], close[1]
    character = rules.shared(
        "thinking", f"{one_of(all_but({first, chr(10)}))} | {literal(first)} {one_of(all_but({second, chr(10)}))}"
    )
    length = min(LINE_LENGTH, max(SHORTEST_LINE, longest // 4))
    line = rules.shared("line", f'{repeat(character, 0, length)} "\\x0A"')
    lines = repeat(line, 0, min(MOST_LINES, longest // length))
    return f"{literal(opened)} {lines} {repeat(character, 0, length)} {literal(close)} {BLANKS}"


def all_but(characters: Iterable[str]) -> Ranges:
    """Return the code points of all characters but these."""
    return without([(1, LAST)], [SURROGATES, *((ord(character), ord(character)) for character in characters)])


def _next(marker: str, text: str) -> int:
    """Return how much of `marker` the longest end of `text` is the beginning of."""
    return next(size for size in range(len(text), -1, -1) if text.endswith(marker[:size]) and size <= len(marker))


STRING_LENGTH: Final = 512
"""Characters of a string without a bound."""
ITEMS: Final = 32
"""Items of an array, or members of an object, without a bound."""
DEPTH: Final = 4
"""Nesting of a value without a schema."""


def written(value: JSON) -> str:
    """Return `value` as JSON with spaces after `:` and `,`: small models read and write it best that way."""
    return json.dumps(value, ensure_ascii=False)


def character(rules: GrammarRules) -> str:
    """Return the rule for one character of a JSON string."""
    return rules.shared("character", ANYTHING)


def free_text(rules: GrammarRules) -> str:
    """Return the rule for any string."""
    return rules.shared("text", f'"\\"" {repeat(character(rules), 0, STRING_LENGTH)} "\\""')


def free_value(rules: GrammarRules, depth: int = DEPTH) -> str:
    """Return the rule for any value, nested up to `depth` deep."""
    plain = f'{free_text(rules)} | ({NUMBER}) | "true" | "false" | "null"'
    if not depth:
        return rules.shared("value0", plain)
    return rules.shared(f"value{depth}", f"{plain} | {free_object(rules, depth)} | {_free_array(rules, depth)}")


def free_object(rules: GrammarRules, depth: int = DEPTH) -> str:
    """Return the rule for any object, nested up to `depth` deep."""
    member = rules.shared(f"member{depth}", f'{free_text(rules)} ": " {free_value(rules, depth - 1)}')
    return rules.shared(f"object{depth}", f'"{{" {series([], member, 0, ITEMS)} "}}"')


def _free_array(rules: GrammarRules, depth: int) -> str:
    return rules.shared(f"array{depth}", f'"[" {series([], free_value(rules, depth - 1), 0, ITEMS)} "]"')


def series(heads: list[str], item: str, least: int, most: int) -> str:
    """Return the expression for `heads`, then more of `item`, `least` to `most` in all, with commas between."""
    if not most:
        return '""'
    if not heads:
        more = repeat(f'(", " {item})', max(0, least - 1), most - 1)
        return f"{item} {more}" if least else f"({item} {more})?"
    more = repeat(f'(", " {item})', max(0, least - len(heads)), most - len(heads))
    return " ".join((' ", " '.join(heads), more))
