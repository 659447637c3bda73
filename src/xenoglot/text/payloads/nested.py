"""Payload of calls written as nested markup: tags name values, and nest as the values do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import to_text
from xenoglot.text.parser.parser_input import LONGEST_HELD, IncompleteInputError, MismatchError
from xenoglot.text.payloads.bare_values import escaped, item_schema, kinds, members, only_text, property_schema, typed
from xenoglot.text.payloads.markup import word

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.text.parser.parser_input import ParserInput, Reading

DEEPEST: Final = 32
"""Tags in tags; a call ends where they are nested more deeply."""

_ITEM: Final = "item"
_ARRAY: Final = frozenset({"array"})
_OBJECT: Final = frozenset({"object"})
_NAME = re.compile(r"""[^\s<>"'\]]+""")


class Nested(Struct, frozen=True, kw_only=True):
    """`<invoke name="NAME">`, then `<KEY>`, its value and `</KEY>` for each argument, then `</invoke>`.

    `mark` stands before every tag. A value is text, or tags: of its members' names, or `<item>` for each item of a
    list. Nothing is a list or an object where the schema admits that, and no string. In an object in the arguments, the
    values of a repeated name are a list; among the arguments themselves the first counts.
    """

    mark: str

    @property
    def starts(self) -> str:
        """The first character of the mark."""
        return self.mark[:1]

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call."""
        section.begin()
        yield from section.expect((f'{self.mark}<invoke name="',))
        name = yield from word(section, _NAME)
        yield from section.expect(('">',))
        yield from _Reader(self.mark, section, name).read()
        section.end()

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one text for each call. Arguments that are no JSON object stand in it as they are."""
        return [self._written(name, arguments) for name, arguments in calls]

    def _written(self, name: str, arguments: str) -> str:
        given = members(arguments)
        inner = arguments if given is None else self._inner(given) if given else ""
        return f'{self.mark}<invoke name="{name}">{inner}{self.mark}</invoke>'

    def _inner(self, value: JSON) -> str:
        match value:
            case dict() if value:
                return "".join(self._tagged(key, inner) for key, inner in value.items())
            case list() if value:
                return "".join(self._tagged(_ITEM, inner) for inner in value)
            case str():
                return value
            case _:
                return to_text(value)

    def _tagged(self, name: str, value: JSON) -> str:
        return f"{self.mark}<{name}>{self._inner(value)}{self.mark}</{name}>"


class _Reader:
    """The arguments of one call as they are read, and leave as JSON."""

    def __init__(self, mark: str, section: ParserInput, name: str) -> None:
        self._opening = f"{mark}<"
        self._mark = mark
        self._section = section
        self._name = name
        self._root = section.schema(name)
        self._plain = re.compile(f"[^{re.escape(mark[0])}]+")
        self._emit: Callable[[str], None] = section.arguments
        self._end = f"{mark}</invoke>"

    def read(self) -> Reading:
        """Read what follows the name."""
        section = self._section
        found = yield from section.accept((self._opening, self._end))
        if not found and section.rest.strip():
            raise MismatchError
        section.name(self._name)
        given: set[str] = set()
        while found == self._opening:
            yield from self._argument(given)
            found = yield from self._following()
        if found or section.stopped:
            section.arguments("}" if given else "{}")
            section.complete()

    def _following(self) -> Generator[None, None, str]:
        """Read the next tag after an argument; drop the words before it."""
        section = self._section
        passed = 0
        while not (found := (yield from section.accept((self._opening, self._end)))):
            if section.ended and not section.rest.strip():
                return found
            if (yield from section.at_stop()):
                return self._end
            passed += len(section.run(self._plain) or section.take(1))
            if passed > LONGEST_HELD:
                raise MismatchError
        if passed:
            section.lost("words between the arguments", "a call has only arguments")
        return found

    def _argument(self, given: set[str]) -> Reading:
        """Read one argument, where others were `given`."""
        key = yield from self._key()
        schema = property_schema(self._root, key, self._root)
        if key in given:
            self._section.lost(key, "it was given before")
            self._emit = _ignored
        else:
            self._emit(f'{", " if given else "{"}"{escaped(key)}": ')
            given.add(key)
        yield from self._value(key, schema, 1)
        self._emit = self._section.arguments

    def _key(self) -> Generator[None, None, str]:
        key = yield from word(self._section, _NAME)
        yield from self._section.expect((">",))
        return key

    def _value(self, name: str, schema: JSON, depth: int) -> Reading:
        """Read a value up to its `</name>`, and emit it."""
        section, close = self._section, f"{self._mark}</{name}>"
        if depth > DEEPEST:
            raise MismatchError
        if only_text(schema, self._root):
            self._emit('"')
            yield from self._text(close, lambda text: self._emit(escaped(text)))
            self._emit('"')
        elif (found := (yield from section.accept((self._opening, close)))) == self._opening:
            inner = self._items if (yield from self._listed(schema)) else self._members
            yield from inner(close, schema, depth)
        else:
            parts: list[str] = []
            if not found:
                yield from self._text(close, parts.append)
            self._emit(self._meant("".join(parts), schema))

    def _meant(self, text: str, schema: JSON) -> str:
        """Return the value that `text` is; an empty list or object has no tags in it."""
        admitted = kinds(schema, self._root)
        if not text and admitted is not None and "string" not in admitted:
            return "[]" if "array" in admitted else "{}" if "object" in admitted else typed(text, schema, self._root)
        return typed(text, schema, self._root)

    def _items(self, close: str, schema: JSON, depth: int) -> Reading:
        """Read the items of a list up to `close`; the first tag has begun."""
        separator, found = "[", self._opening
        while found == self._opening:
            self._emit(separator)
            separator = ", "
            key = yield from self._key()
            yield from self._value(key, item_schema(schema, self._root), depth + 1)
            found = yield from self._section.expect((self._opening, close))
        self._emit("]")

    def _members(self, close: str, schema: JSON, depth: int) -> Reading:
        """Read the members of an object up to `close`; the first tag has begun.

        They are held until the object is complete: a name may come again. A truncated object is emitted as far as it
        came.
        """
        emit, found = self._emit, self._opening
        said: dict[str, list[str]] = {}
        try:
            while found == self._opening:
                key = yield from self._key()
                parts: list[str] = []
                said.setdefault(key, []).append("")
                self._emit = parts.append
                try:
                    yield from self._value(key, property_schema(schema, key, self._root), depth + 1)
                finally:
                    said[key][-1] = "".join(parts)
                found = yield from self._section.expect((self._opening, close))
        except (IncompleteInputError, MismatchError):
            emit(_object(said).removesuffix("}"))
            raise
        finally:
            self._emit = emit
        emit(_object(said))

    def _listed(self, schema: JSON) -> Generator[None, None, bool]:
        admitted = kinds(schema, self._root)
        if admitted in (_ARRAY, _OBJECT):
            return admitted == _ARRAY
        return (yield from self._section.ahead(len(_ITEM) + 1)) == f"{_ITEM}>"

    def _text(self, close: str, emit: Callable[[str], None]) -> Reading:
        section = self._section
        while True:
            yield from section.peek()
            if text := section.run(self._plain):
                emit(text)
            elif (yield from section.accept((close,), blanks=False)):
                return
            else:
                emit(section.take(1))


def _object(said: Mapping[str, Sequence[str]]) -> str:
    """Return an object of the values `said` of each name; several are a list."""
    members = (f'"{escaped(key)}": {_one(values)}' for key, values in said.items())
    return f"{{{', '.join(members)}}}"


def _one(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"[{', '.join(values)}]"


def _ignored(_text: str) -> None:
    """Take a value that has no place."""
