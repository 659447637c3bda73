"""Payload of calls written as Python: `[f(a=1, b="x"), g()]`, or one call after another, converted to JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.text.parser.parser_input import MismatchError
from xenoglot.text.payloads import python_text

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b')
_PYTHON: Final = {"true": "True", "false": "False", "null": "None"}


class Pythonic(Struct, frozen=True, kw_only=True):
    """Calls in Python's syntax, of literals alone; values keep the type in which they are written.

    `listed` is whether calls are written as a list; a list and a single call are both read. `method` stands between
    the name and its parenthesis (`.call`). `words`: `True`, `False` and `None` are written as in Python; both
    those and JSON's are read. A value without a name is that of the parameter at its place in the schema.
    """

    listed: bool = True
    method: str = ""
    words: bool = True
    starts: str = "["

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call, or a list of them."""
        yield from section.blank()
        if (yield from section.peek()) != "[":
            yield from self._call(section)
            return
        section.take(1)
        while (yield from self._call(section)):
            if not (yield from section.accept((",",))):
                yield from section.accept(("]",))
                return
            if (yield from section.accept(("]",))):
                return

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one text for each call, or one list."""
        said = [f"{name}{self.method}({self._written(arguments)})" for name, arguments in calls]
        return [f"[{', '.join(said)}]"] if self.listed else said

    def _written(self, arguments: str) -> str:
        try:
            members = msgspec.json.decode(arguments or "{}", type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            return arguments  # what is no object is given back as it came
        return ", ".join(f"{key}={self._literal(bytes(raw).decode())}" for key, raw in members.items())

    def _literal(self, text: str) -> str:
        return _WORD.sub(_in_python, text) if self.words else text

    def _call(self, section: ParserInput) -> Generator[None, None, bool]:
        """Read one call; return whether it came to its end."""
        yield from section.blank()
        section.begin()
        name = yield from python_text.word(section)
        if not name or not name.endswith(self.method):
            raise MismatchError
        yield from section.expect(("(",))
        arguments = _Arguments(section, name.removesuffix(self.method))
        try:
            whole = yield from _to_parenthesis(section, arguments)
        except MismatchError:
            if not arguments.declared:
                raise
            yield from _as_words(section)
            return True
        if whole:
            section.complete()
        section.end()
        return whole


def _in_python(found: re.Match[str]) -> str:
    return _PYTHON.get(found[0], found[0])


class _Arguments:
    """The arguments of one call as they are read. The call begins with the first value: before, it may be prose."""

    def __init__(self, section: ParserInput, name: str) -> None:
        self.told = False
        self.writer = python_text.JSONWriter(self._send)
        self._section = section
        self._name = name
        self._count = 0

    @property
    def declared(self) -> bool:
        """Whether the tool is one of the request's."""
        return self._section.declared.resolve(self._name) is not None

    def key(self, name: str | None, begun: str = "") -> None:
        """Begin the argument `name`, or the next of the schema, of which `begun` was read.

        Raises:
            MismatchError: the schema has no more.
        """
        if name is None and (name := self._next()) is None:
            self.writer.due(", ")
            raise MismatchError(begun)
        told = encode_json(name).decode()
        self.writer.due(f"{', ' if self._count else '{'}{told}: ")
        self._count += 1

    def keep(self, text: str) -> None:
        """Add text that is not Python as it is: the call has begun, and what the model wrote of it stays."""
        self.writer.emit(text)

    def close(self) -> None:
        """Note that no more follow."""
        self.writer.due("")
        self.writer.emit("}" if self._count else "{}")

    def _next(self) -> str | None:
        schema = self._section.schema(self._name)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        names: list[str] = list(properties) if isinstance(properties, dict) else []
        return names[self._count] if self._count < len(names) else None

    def _send(self, text: str) -> None:
        if not self.told:
            self.told = True
            self._section.name(self._name)
        self._section.arguments(text)


def _to_parenthesis(section: ParserInput, arguments: _Arguments) -> Generator[None, None, bool]:
    """Read arguments up to their parenthesis; return whether there is one, or the model stopped before it."""
    while not (yield from section.accept((")",))) and not (arguments.told and _stopped(section)):
        try:
            yield from _argument(section, arguments)
            if not (yield from section.accept((",",))) and not _stopped(section):
                yield from section.expect((")",))
                break
        except MismatchError as error:
            if not arguments.told:
                raise
            arguments.keep("".join(error.args))
            if not (yield from _as_it_is(section, arguments)):
                return False
    arguments.close()
    return True


def _as_it_is(section: ParserInput, arguments: _Arguments) -> Generator[None, None, bool]:
    """Pass on what is not Python, up to where the next argument or the parenthesis may be; return whether one is."""
    depth = 0
    while not (yield from section.at_stop()):
        char = yield from section.peek()
        if not depth and char in ",)":
            yield from section.accept((",",))
            return True
        depth += (char in "([{") - (depth > 0 and char in ")]}")
        arguments.keep(section.take(1))
    return False


def _as_words(section: ParserInput) -> Reading:
    """Leave a call as words that cannot be read, up to its parenthesis: calls after it are read all the same."""
    section.leave()
    depth, quote = 1, ""
    while depth:
        char = yield from section.peek()
        if char == "\\":
            yield from section.ahead(2)
            section.take(1)
        elif quote or char in "'\"":
            quote = "" if char == quote else quote or char
        else:
            depth += (char in "([{") - (char in ")]}")
        section.take(1)


def _stopped(section: ParserInput) -> bool:
    return section.stopped and not section.rest.strip()


def _argument(section: ParserInput, arguments: _Arguments) -> Reading:
    yield from section.blank()
    begun = yield from python_text.word(section)
    if begun and (yield from section.accept(("=",))):
        arguments.key(begun)
        begun = ""
    else:
        arguments.key(None, begun)
    yield from python_text.value(section, arguments.writer, begun)
