"""Incremental JSON tokenizing: values are passed through raw, strings are decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.text.parser.parser_input import MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from xenoglot.text.parser.parser_input import ParserInput, Reading

LONGEST_NAME: Final = 512

_IN_STRING = re.compile(r'[^"\\]+')
_PLAIN = re.compile(r"[\w\s:,.+-]+")
_SCALAR = re.compile(r"[\w.+-]+")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"\\u[0-9a-fA-F]{4}")
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)


def raw_value(section: ParserInput, emit: Callable[[str], None]) -> Generator[None, None, bool]:
    """Read one value and `emit` it as it stands; return whether it came to its end.

    It did not where a marker that ends the call stands outside of its strings. What is in the value is not checked.

    Raises:
        MismatchError: nothing that stands there begins a value.
    """
    depth = 0
    while True:
        char = yield from section.peek()
        if char == '"':
            yield from _raw_string(section, emit)
        elif char in "{[":
            emit(section.take(1))
            depth += 1
        elif char in "}]" and depth:
            emit(section.take(1))
            depth -= 1
        elif not depth:
            yield from _scalar(section, emit)
        elif plain := section.run(_PLAIN):
            emit(plain)
        elif (yield from section.at_stop()):
            return False
        else:
            emit(section.take(1))
        if not depth:
            return True


def string(section: ParserInput, emit: Callable[[str], None]) -> Reading:
    """Read a string and `emit` its content, escapes decoded; one that is none stays as it is."""
    section.take(1)
    while (char := (yield from section.peek())) != '"':
        if char == "\\":
            emit((yield from _escape(section)))
        else:
            emit(section.run(_IN_STRING))
    section.take(1)


def name(section: ParserInput) -> Generator[None, None, str]:
    """Read a string that is a name.

    Raises:
        MismatchError: it is no string, or too long for a name.
    """
    if (yield from section.peek()) != '"':
        raise MismatchError
    said: list[str] = []
    size = 0

    def emit(text: str) -> None:
        nonlocal size
        said.append(text)
        size += len(text)
        if size > LONGEST_NAME:
            raise MismatchError

    yield from string(section, emit)
    return "".join(said)


def _raw_string(section: ParserInput, emit: Callable[[str], None]) -> Reading:
    emit(section.take(1))
    while (char := (yield from section.peek())) != '"':
        if char == "\\":
            pair = yield from section.ahead(2)
            emit(section.take(len(pair)))
        else:
            emit(section.run(_IN_STRING))
    emit(section.take(1))


def _scalar(section: ParserInput, emit: Callable[[str], None]) -> Reading:
    found = False
    while text := section.run(_SCALAR):
        found = True
        emit(text)
        yield from section.peek()
    if not found:
        raise MismatchError


def _escape(section: ParserInput) -> Generator[None, None, str]:
    """Read one escape, or a pair of them that is one character beyond the first plane."""
    said = yield from section.ahead(2)
    if said[1:] != "u":
        section.take(len(said))
        return _ESCAPES.get(said[1:], said)
    unit = _unit((yield from section.ahead(6)))
    if unit is None:
        return section.take(2)
    section.take(6)
    low = _unit((yield from section.ahead(6))) if unit in _HIGH else None
    if low is not None and low in _LOW:
        section.take(6)
        return chr(0x10000 + ((unit - _HIGH.start) << 10) + low - _LOW.start)
    return "\N{REPLACEMENT CHARACTER}" if unit in _HIGH or unit in _LOW else chr(unit)


def _unit(escape: str) -> int | None:
    """Return the UTF-16 code unit of an escape; `None` where it is none."""
    return int(escape.removeprefix("\\u"), base=16) if _HEX.fullmatch(escape) else None
