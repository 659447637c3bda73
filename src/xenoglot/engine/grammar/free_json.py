"""Grammar for JSON without a schema; limited, so that a model that repeats itself ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from xenoglot.engine.grammar.characters import ANYTHING
from xenoglot.engine.grammar.gbnf import repeat
from xenoglot.engine.grammar.numbers import NUMBER

if TYPE_CHECKING:
    from xenoglot.engine.grammar.gbnf import GrammarRules
    from xenoglot.model.json import JSON

STRING_LENGTH: Final = 512
"""Characters of a string without a bound."""
ITEMS: Final = 32
"""Items of an array, or members of an object, without a bound."""
DEPTH: Final = 4
"""How deep a value is nested of which the schema says nothing."""


def written(value: JSON) -> str:
    """Return `value` as JSON with blanks after `:` and `,`: small models read and write it best that way."""
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
