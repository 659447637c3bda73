"""Payload of calls written as a list of Python's dicts: `[{'name': 'f', 'arguments': {'a': True}}]`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.text.parser.parser_input import LONGEST_HELD, MismatchError
from xenoglot.text.payloads import python_text

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading

_NAME: Final = "name"
_ARGUMENTS: Final = "arguments"
_UNUSED: Final = frozenset({"id", "type", "tool_call_id", "index"})
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b')
_PYTHON: Final = {"true": "True", "false": "False", "null": "None"}


class PythonDicts(Struct, frozen=True, kw_only=True):
    """A list of dicts with a name and arguments, of Python's literals; they leave as JSON."""

    starts: str = "["

    def read(self, section: ParserInput, /) -> Reading:
        """Read a list of calls."""
        yield from section.expect(("[",))
        while (yield from self._call(section)):
            if not (yield from section.accept((",",))):
                yield from section.accept(("]",))
                return
            if (yield from section.accept(("]",))):
                return

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one list."""
        said = (
            f"{{'{_NAME}': {encode_json(name).decode()}, '{_ARGUMENTS}': {_WORD.sub(_in_python, arguments or '{}')}}}"
            for name, arguments in calls
        )
        return [f"[{', '.join(said)}]"]

    def _call(self, section: ParserInput) -> Generator[None, None, bool]:
        """Read one dict; return whether it came to its end."""
        section.begin()
        yield from section.expect(("{",))
        call = _Call(section)
        while not (yield from section.accept(("}",))):
            yield from call.read_member()
            if not (yield from section.accept((",",))):
                yield from section.expect(("}",))
                break
        call.end()
        section.complete()
        section.end()
        return True


def _in_python(found: re.Match[str]) -> str:
    return _PYTHON.get(found[0], found[0])


class _Call:
    """One call as it is read: its name may stand after its arguments."""

    def __init__(self, section: ParserInput) -> None:
        self._section = section
        self._name: str | None = None
        self._started = self._argued = False
        self._early: list[str] = []
        self._early_size = 0

    def read_member(self) -> Reading:
        """Read a key and its value."""
        key = yield from self._string()
        yield from self._section.expect((":",))
        if key == _NAME and self._name is None:
            self._name = yield from self._string()
        elif key == _ARGUMENTS and not self._argued:
            self._argued = True
            yield from self._section.blank()
            if (yield from self._section.peek()) != "{":
                raise MismatchError
            if self._name is not None:
                self.start()
            yield from self._arguments()
        elif key in _UNUSED:
            yield from python_text.value(self._section, python_text.JSONWriter(lambda _: None))
        else:
            raise MismatchError

    def _arguments(self) -> Reading:
        """Read the value of the arguments. What is no literal of a call that started stays as the model wrote it."""
        writer = python_text.JSONWriter(self._add)
        try:
            yield from python_text.value(self._section, writer)
        except MismatchError as error:
            if not self._started:
                raise
            writer.emit("".join(error.args))
            depth = 1
            while depth:
                char = yield from self._section.peek()
                depth += (char in "{[(") - (char in ")]}")
                writer.emit(self._section.take(1))
                if not depth and not (yield from self._section.follows("}")):
                    depth = 1  # it closed a value inside

    def start(self) -> None:
        """Start the call, with what was read of its arguments.

        Raises:
            MismatchError: it has no name.
        """
        if self._started:
            return
        if self._name is None:
            raise MismatchError
        self._started = True
        self._section.name(self._name)
        for text in self._early:
            self._section.arguments(text)

    def end(self) -> None:
        """Start the call if it is not, with an empty object where no arguments were read."""
        self.start()
        if not self._argued:
            self._section.arguments("{}")

    def _add(self, text: str) -> None:
        if self._started:
            self._section.arguments(text)
            return
        self._early.append(text)
        self._early_size += len(text)
        if self._early_size > LONGEST_HELD:
            raise MismatchError

    def _string(self) -> Generator[None, None, str]:
        said: list[str] = []
        yield from python_text.value(self._section, python_text.JSONWriter(said.append))
        try:
            return msgspec.json.decode("".join(said), type=str)
        except msgspec.DecodeError:
            raise MismatchError from None
