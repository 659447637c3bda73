"""Payload of calls written as `call:name{key:value,…}`, with special tokens as string quotes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.text.json import text as json_text
from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError
from xenoglot.text.payloads.bare_values import escaped, item_schema, kinds, members, property_schema, typed
from xenoglot.text.payloads.markup import word

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.text.parser.parser_input import ParserInput, Reading

DEEPEST: Final = 32
"""Lists and objects in each other; a call ends where they are nested more deeply."""

_NAME = re.compile(r"[^\s{}()<>|]+")
_KEY = re.compile(r"[^\s{}\[\]<>|:,\"]+")
_BARE = re.compile(r"[^,{}\[\]()<]+")
_SINGLE = re.compile(r"'(.*)'", re.DOTALL)
_TEXT: Final = frozenset({"string"})
_BLANK = re.compile(r"\s+")
_TAIL: Final = "}])\t\r\n "
"""What may be the end of the arguments, after a string whose closing quote is missing."""

_MOST_HELD: Final = 64

_MEMBER = re.compile(r",\s{0,16}[^\s{}\[\]<>|:,]{1,64}:")
_MOST_AHEAD: Final = 256
"""Characters after a comma that are searched for the quote of a string that began without one."""


class Keyed(Struct, frozen=True, kw_only=True):
    """`prefix` name, then an object as in JSON, but that keys are bare and strings between `quote`s.

    Keys in quotes, and strings in those of JSON or none at all, are read too; so are parentheses in place of the
    braces or around them, a prefix without its word (`:`) or after a colon, a string that only ends in its quote, one
    between single quotes, and one as the last value whose closing quote is missing.
    """

    quote: str
    prefix: str = "call:"
    starts: str = "c"

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call."""
        section.begin()
        if self.prefix:
            yield from section.expect((self.prefix, f":{self.prefix}", self.prefix[-1:]))
        name = yield from word(section, _NAME)
        opened = yield from section.expect(("{", "({", "("))
        section.name(name)
        reader = _Reader(self.quote, section, section.schema(name), ")" if opened == "(" else "}")
        try:
            yield from reader.members(section.schema(name), 0)
            if opened == "({":
                yield from section.accept((")",))
        except IncompleteInputError:
            if not section.stopped or not reader.between:
                raise
            section.arguments("}")
        section.complete()
        section.end()

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one text for each call. Arguments that are no JSON object stand in it as they are."""
        return [f"{self.prefix}{name}{self._arguments(arguments)}" for name, arguments in calls]

    def _arguments(self, arguments: str) -> str:
        given = members(arguments)
        return f"{{{arguments}}}" if given is None else self._written(given)

    def _key(self, key: str) -> str:
        return key if _KEY.fullmatch(key) else f"{self.quote}{key}{self.quote}"

    def _written(self, value: JSON) -> str:
        match value:
            case dict():
                return "{" + ",".join(f"{self._key(key)}:{self._written(inner)}" for key, inner in value.items()) + "}"
            case list():
                return "[" + ",".join(map(self._written, value)) + "]"
            case str():
                return f"{self.quote}{value}{self.quote}"
            case bool() | None:
                return {True: "true", False: "false", None: "null"}[value]
            case _:
                return str(value)


class _Reader:
    """Arguments as they are read, and leave as JSON."""

    def __init__(self, quote: str, section: ParserInput, root: JSON, end: str) -> None:
        self.between = True  # a member was read to its end, or none has begun
        self._end = end  # of the arguments
        self._quote = quote
        self._section = section
        self._root = root
        self._in_quotes = re.compile(f"[^{re.escape(quote[0])}]+")

    def members(self, schema: JSON, depth: int) -> Reading:
        """Read the members of an object, after its brace, and that which ends it."""
        section, count = self._section, 0
        section.arguments("{")
        while not (yield from section.accept((self._end if not depth else "}",))):
            if (yield from section.accept((",",))):
                continue
            yield from section.blank()
            if not depth and (yield from section.at_stop()):
                break  # the brace was forgotten
            key = yield from self._key()
            section.arguments(f'{", " if count else ""}"{escaped(key)}": ')
            yield from self._value(property_schema(schema, key, self._root), depth + 1)
            count += 1
        section.arguments("}")

    def _items(self, schema: JSON, depth: int) -> Reading:
        section, count = self._section, 0
        section.arguments("[")
        while not (yield from section.accept(("]",))):
            if (yield from section.accept((",",))):
                continue
            yield from section.blank()
            section.arguments(", " if count else "")
            yield from self._value(item_schema(schema, self._root), depth + 1)
            count += 1
        section.arguments("]")

    def _key(self) -> Generator[None, None, str]:
        section = self._section
        self.between = False
        if (yield from section.accept((self._quote,))):
            parts: list[str] = []
            yield from self._quoted(parts.append, last=False)
            key = "".join(parts)
        elif (yield from section.peek()) == '"':
            key = yield from json_text.name(section)
        else:
            key = yield from word(section, _KEY)
        yield from section.expect((":",))
        return key

    def _value(self, schema: JSON, depth: int) -> Reading:
        section = self._section
        if depth > DEEPEST:
            raise MismatchError
        yield from section.blank()
        if (yield from section.accept((self._quote,))):
            yield from self._string(schema, last=depth == 1)
        else:
            yield from self._unquoted(schema, depth)
        self.between = depth == 1

    def _unquoted(self, schema: JSON, depth: int) -> Reading:
        section = self._section
        match (yield from section.peek()):
            case "{":
                section.take(1)
                yield from self.members(schema, depth)
            case "[":
                section.take(1)
                yield from self._items(schema, depth)
            case '"':
                yield from json_text.raw_value(section, section.arguments)
            case _:
                yield from self._bare(schema, depth)

    def _string(self, schema: JSON, *, last: bool) -> Reading:
        section = self._section
        admitted = kinds(schema, self._root)
        if admitted is None or "string" in admitted:
            section.arguments('"')
            yield from self._quoted(lambda text: section.arguments(escaped(text)), last=last)
            section.arguments('"')
            return
        parts: list[str] = []
        yield from self._quoted(parts.append, last=last)
        section.arguments(typed("".join(parts), schema, self._root))

    def _quoted(self, emit: Callable[[str], None], *, last: bool) -> Reading:
        """Read up to the closing quote, and that; it may be missing where the string may be the `last` value."""
        section, held = self._section, ""
        while True:
            try:
                yield from section.peek()
            except IncompleteInputError:
                emit(held)
                raise
            if text := section.run(self._in_quotes):
                text = held + text
                size = max(len(text.rstrip(_TAIL)), len(text) - _MOST_HELD) if last else len(text)
                emit(text[:size])
                held = text[size:]
            elif (yield from section.accept((self._quote,), blanks=False)):
                emit(held)
                return
            elif last and (yield from section.at_stop()):
                ended, passed = yield from self._markup()
                if ended:
                    return
                emit(held + passed)
                held = ""
            else:
                emit(held + section.take(1))
                held = ""

    def _markup(self) -> Generator[None, None, tuple[bool, str]]:
        """Read markers that end the call, and whitespace; return whether nothing else follows, and what was read."""
        section, passed = self._section, ""
        try:
            while (yield from section.peek()).isspace() or (yield from section.at_stop()):
                passed += section.run(_BLANK) or section.take_stop()
        except IncompleteInputError:
            return section.stopped, passed
        return False, passed

    def _bare(self, schema: JSON, depth: int) -> Reading:
        """Read a number, a word, or a string without its quotes, or without the first of them."""
        section = self._section
        ends = self._end if depth == 1 else ""
        said, quoted = "", ""
        admitted = kinds(schema, self._root)
        try:
            while not quoted and (char := (yield from section.peek())) not in f"{{}}[]{ends}":
                if (char == "," and (depth > 1 or (yield from self._parts()))) or (yield from section.at_stop()):
                    break
                quoted = yield from section.accept((self._quote,), blanks=False)
                said += "" if quoted else section.run(_BARE) or section.take(1)
        except IncompleteInputError:
            if said and admitted == _TEXT:  # nothing tells that it is over but the end of the answer
                section.arguments(f'"{escaped(said)}' + ('"' if section.stopped else ""))
                self.between = depth == 1
            raise
        if not said and not quoted:
            raise MismatchError
        textual = admitted is None or "string" in admitted
        if textual and (single := _SINGLE.fullmatch(said.strip())) is not None:
            section.arguments(f'"{escaped(single[1])}"')
        else:
            section.arguments(f'"{escaped(said)}"' if textual and quoted else typed(said.strip(), schema, self._root))

    def _parts(self) -> Generator[None, None, bool]:
        """Return whether the comma that stands here parts two members, and is none of a string without its quotes."""
        behind = yield from self._section.ahead(_MOST_AHEAD)
        if self._quote not in behind or _MEMBER.match(behind) is not None:
            return True
        return behind[1:].lstrip().startswith(self._quote)
