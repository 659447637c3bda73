"""Payload of code calls: the text after a marker is the argument of a code tool, without a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError
from xenoglot.text.payloads import python_text

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading

_PLAIN = re.compile(r"[^<\[]+")
_METHOD: Final = ".call"


class Code(Struct, frozen=True, kw_only=True):
    """Text up to the end of the section, for the first of `names` that is declared, as its parameter `parameter`.

    Where the tool has no such parameter its first one is meant. What begins as JSON does, or as a call of a method
    `call`, is another form.
    """

    names: tuple[str, ...] = ("code_interpreter", "python", "ipython")
    parameter: str = "code"
    starts: str = ""

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call: all the text that there is."""
        section.begin()
        yield from section.blank()
        begun = yield from self._begun(section)
        name = next((name for name in self.names if section.declared.resolve(name) is not None), None)
        if name is None:
            raise MismatchError
        section.name(name)
        section.arguments(f'{{{encode_json(self._parameter(section, name)).decode()}: "{python_text.inner(begun)}')
        if (yield from _up_to_stop(section)):
            section.arguments('"}')
            section.complete()
        section.end()

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return the code of each call; what has none is given back as it came."""
        return [self._written(arguments) for _, arguments in calls]

    def _written(self, arguments: str) -> str:
        try:
            members = msgspec.json.decode(arguments, type=dict[str, str])
        except msgspec.DecodeError:
            return arguments
        return members.get(self.parameter) or next(iter(members.values()), "")

    def _parameter(self, section: ParserInput, name: str) -> str:
        schema = section.schema(name)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        known: list[str] = list(properties) if isinstance(properties, dict) else []
        return self.parameter if self.parameter in known or not known else known[0]

    @staticmethod
    def _begun(section: ParserInput) -> Generator[None, None, str]:
        """Read what marks it as code.

        Raises:
            MismatchError: it is another form.
        """
        if (yield from section.peek()) in "{[":
            raise MismatchError
        word = yield from python_text.word(section)
        if word.endswith(_METHOD) and (yield from section.ahead(1)) == "(":
            raise MismatchError
        return word


def _up_to_stop(section: ParserInput) -> Generator[None, None, bool]:
    """Pass on code up to what ends the section; return whether it ended."""
    try:
        while not (yield from section.at_stop()):
            yield from section.peek()
            section.arguments(python_text.inner(section.run(_PLAIN) or section.take(1)))
    except IncompleteInputError:
        return section.stopped
    return True
