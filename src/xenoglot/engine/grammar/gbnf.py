"""Builds grammars in GBNF, the runtime's notation: expressions as text, and the rules that contain them.

Notation: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_RULES: Final = 4000
LONGEST_TEXT: Final = 256 * 1024
"""A grammar is read anew for each request; one of this size takes the runtime a few milliseconds."""

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
        """Write the rule `name` unless it is there; return the name."""
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
