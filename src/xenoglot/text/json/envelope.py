"""Wraps a schema in an object if only objects are allowed, and unwraps the value from the streamed answer."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSON, JSONObject

FIELD: Final = "answer"
"""The one property of the envelope."""

LONGEST_HEAD: Final = 4_096
"""The most characters before the value; more white space than that is no envelope."""

_HEAD: Final = ("{", f'"{FIELD}"', ":")
_SPACE = re.compile(r"[ \t\n\r]*")
_OUTSIDE = re.compile(r'[^"{}\[\],]+')
_INSIDE = re.compile(r'[^"\\]+')
_SHARED: Final = ("$defs", "definitions", "$id", "$schema")
"""What stays at the root: references lead there."""
_SAID: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""The keywords that hold values: what looks like a reference there is none."""


def enveloped(schema: JSON) -> JSONObject:
    """Return the schema of an object whose `answer` holds to `schema`; its own references keep their meaning."""
    inner = _moved(schema)
    shared = {name: inner.pop(name) for name in _SHARED if isinstance(inner, dict) and name in inner}
    return {
        "type": "object",
        "properties": {FIELD: inner},
        "required": [FIELD],
        "additionalProperties": False,
        **shared,
    }


def _moved(schema: JSON) -> JSON:
    """Return `schema` with references for where it now stands (RFC 6901); shared definitions stay at the root."""
    match schema:
        case dict():
            return {key: _moved_under(key, value) for key, value in schema.items()}
        case list():
            return [_moved(item) for item in schema]
        case _:
            return schema


def _moved_under(key: str, value: JSON) -> JSON:
    if key in _SAID:
        return value
    if key == "$ref" and isinstance(value, str):
        stays = value[:1] != "#" or value[1:2] not in ("", "/") or value.startswith(_SHARED_AT)
        return value if stays else f"#/properties/{FIELD}{value[1:]}"
    return _moved(value)


_SHARED_AT: Final = tuple(f"#/{name}/" for name in _SHARED)


class _State(Enum):
    HEAD = auto()
    BARE = auto()  # there is no envelope
    VALUE = auto()  # before the value
    OUTSIDE = auto()  # in the value, outside of its strings
    STRING = auto()
    ESCAPE = auto()
    TAIL = auto()


class Envelope:
    """A stage over the text of an envelope, cut anywhere: the value alone, as it was written.

    What is no envelope is given as it is. `surplus`: it held more than the value.
    """

    __slots__ = ("_depth", "_held", "_place", "_size", "_state", "_tail", "surplus")

    def __init__(self) -> None:
        self.surplus = False
        self._state = _State.HEAD
        self._held: list[str] = []
        self._size = 0  # in characters, of what is held
        self._place = (0, 0)  # in `_HEAD`: the token, and the character of it
        self._depth = 0
        self._tail = 0  # how many characters other than white space came behind the value

    def feed(self, text: str, /) -> str:
        """Take more of the envelope; return what of the value came with it."""
        at, made = 0, list[str]()
        while at < len(text):
            at = self._step(text, at, made)
        return "".join(made)

    def close(self) -> str:
        """The text is over; return what was held back of something that is no envelope."""
        held = "".join(self._held)
        self._held.clear()
        return held

    def _step(self, text: str, at: int, made: list[str]) -> int:
        match self._state:
            case _State.HEAD:
                return self._head(text, at, made)
            case _State.VALUE:
                self._state = _State.VALUE if (at := _after_space(text, at)) == len(text) else _State.OUTSIDE
                return at
            case _State.OUTSIDE:
                return self._outside(text, at, made)
            case _State.STRING | _State.ESCAPE:
                return self._string(text, at, made)
            case _State.TAIL:
                return self._behind(text, at)
            case _State.BARE:
                made.append(text[at:])
                return len(text)

    def _head(self, text: str, at: int, made: list[str]) -> int:
        token, place = self._place
        start, at = at, at if place else _after_space(text, at)
        fits = at == len(text) or text[at] == _HEAD[token][place]
        if not fits or self._size + at - start > LONGEST_HEAD:
            made.append(self.close())
            self._state = _State.BARE
            return start
        self._held.append(text[start : at + 1])
        self._size += len(self._held[-1])
        if at == len(text):
            return at
        self._place = (token, place + 1) if place + 1 < len(_HEAD[token]) else (token + 1, 0)
        if self._place == (len(_HEAD), 0):
            self._held.clear()
            self._state = _State.VALUE
        return at + 1

    def _outside(self, text: str, at: int, made: list[str]) -> int:
        if found := _OUTSIDE.match(text, at):
            made.append(found[0])
            return found.end()
        char = text[at]
        if not self._depth and char in ",}":
            self._state = _State.TAIL
            return at
        self._depth += _DEEPER.get(char, 0)
        if char == '"':
            self._state = _State.STRING
        made.append(char)
        return at + 1

    def _string(self, text: str, at: int, made: list[str]) -> int:
        if self._state is _State.STRING and (found := _INSIDE.match(text, at)):
            made.append(found[0])
            return found.end()
        made.append(text[at])
        if self._state is _State.STRING and text[at] == '"':
            self._state = _State.OUTSIDE
        else:
            self._state = _State.STRING if self._state is _State.ESCAPE else _State.ESCAPE
        return at + 1

    def _behind(self, text: str, at: int) -> int:
        said = text[at:].strip(" \t\n\r")
        if said and (self._tail or said != "}"):
            self.surplus = True
        self._tail += len(said)
        return len(text)


_DEEPER: Final[Mapping[str, int]] = {"{": 1, "[": 1, "}": -1, "]": -1}


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
