"""Payload of a name followed by arguments of any form (Reframr, behaviour R3; Code World Model)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import WireError
from xenoglot.text.json.text import LONGEST_NAME
from xenoglot.text.parser.parser_input import LONGEST_BLANK, LONGEST_HELD, IncompleteInputError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading

FIELD: Final = "input"
"""The one argument that a value which is no object becomes, usually."""

_VALUES: Final = frozenset('"[-0123456789tfn')
"""What a JSON value that is no object begins with."""

_NAME = re.compile(r"[^\s<{\[\"']+")
_BLANK = re.compile(r"\s+")
_WORD = re.compile(r"[^\s<]+")


class FreeText(Struct, frozen=True, kw_only=True):
    """A name, a space, and a value or plain words, up to the end or to `another`, the marker of the next call.

    They become the argument `field`; with `values`, what is JSON counts as such, and not as a text.
    """

    another: str
    field: str = FIELD
    values: bool = True
    starts: str = ""

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call.

        Raises:
            MismatchError: there is no name, or an object follows it, which other forms read.
        """
        section.begin()
        name = yield from _name(section)
        if (yield from self._over(section)):
            section.name(name)
            section.arguments("{}")
        else:
            first = yield from section.peek()
            if first in "{<":
                raise MismatchError
            section.name(name)
            value = _Value(section, self.field, held=self.values and first in _VALUES)
            yield from self._words(section, value)
            if section.ended and not section.stopped and not section.rest:
                section.end()
                return
            value.close()
        section.complete()
        section.end()

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one text for each call."""
        return [f"{name} {arguments or '{}'}" for name, arguments in calls]

    def _over(self, section: ParserInput) -> Generator[None, None, bool]:
        """Return whether only whitespace follows the name."""
        try:
            yield from section.blank()
        except IncompleteInputError:
            return True
        return (yield from self._at_end(section))

    def _at_end(self, section: ParserInput) -> Generator[None, None, bool]:
        if (yield from section.peek()) != self.another[0]:
            return False
        if (yield from section.at_stop()):
            return True
        return (yield from section.ahead(len(self.another))) == self.another

    def _words(self, section: ParserInput, value: _Value) -> Reading:
        """Read words up to the end; whitespace before it is not part of them."""
        blanks = ""
        while True:
            try:
                char = yield from section.peek()
            except IncompleteInputError:
                return
            if char.isspace() and len(blanks) < LONGEST_BLANK:
                blanks += section.run(_BLANK)
                continue
            if (yield from self._at_end(section)):
                return
            value.add(blanks + (section.run(_WORD) or section.take(1)))
            blanks = ""


class _Value:
    """The text after the name: `held` until it is complete where it may be JSON; else a string as it comes."""

    def __init__(self, section: ParserInput, field: str, *, held: bool) -> None:
        self._section = section
        self._field = field
        self._held: list[str] | None = [] if held else None
        self._size = 0
        if not held:
            section.arguments(f'{{"{field}": "')

    def add(self, text: str) -> None:
        if self._held is None:
            self._section.arguments(_escaped(text))
            return
        self._held.append(text)
        self._size += len(text)
        if self._size > LONGEST_HELD:
            self._spill(self._held)

    def close(self) -> None:
        if self._held is not None:
            text = "".join(self._held)
            if _is_json(text):
                self._section.arguments(f'{{"{self._field}": {text}}}')
                return
            self._spill(self._held)
        self._section.arguments('"}')

    def _spill(self, held: list[str]) -> None:
        self._held = None
        self._section.arguments(f'{{"{self._field}": "{_escaped("".join(held))}')


def _name(section: ParserInput) -> Generator[None, None, str]:
    yield from section.blank()
    said = ""
    while more := section.run(_NAME):
        said += more
        if len(said) > LONGEST_NAME:
            raise MismatchError
        try:
            yield from section.peek()
        except IncompleteInputError:
            break
    if not said:
        raise MismatchError
    return said


def _escaped(text: str) -> str:
    return encode_json(text).decode()[1:-1]


def _is_json(text: str) -> bool:
    try:
        decode_json(text)
    except WireError:
        return False
    return True
