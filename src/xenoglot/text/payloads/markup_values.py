"""Values between tags: what belongs to the tags, and where the rest goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from xenoglot.text.payloads.bare_values import escaped

if TYPE_CHECKING:
    from collections.abc import Callable

_TAIL: Final = {"line": re.compile(r"\n\Z"), "blanks": re.compile(r"\s+\Z"), "nothing": re.compile(r"(?!)")}
_LEAD: Final = {"line": re.compile(r"\n"), "blanks": re.compile(r"\s+"), "nothing": re.compile(r"(?!)")}


class ValueWriter:
    """Where a value goes: on as a string while it comes, or, made what it means by `meaning`, when it is all there."""

    def __init__(self, emit: Callable[[str], None], meaning: Callable[[str], str] | None) -> None:
        self._emit = emit
        self._meaning = meaning
        self._parts: list[str] = []
        if meaning is None:
            emit('"')

    def add(self, text: str) -> None:
        """Take more of the value."""
        if self._meaning is None:
            self._emit(escaped(text))
        else:
            self._parts.append(text)

    def end(self) -> None:
        """Take its end."""
        self._emit('"' if self._meaning is None else self._meaning("".join(self._parts)))


class MarkupValue:
    """A value without what belongs to its tags; what may be such at its end is held back."""

    def __init__(self, emitter: ValueWriter, trim: str) -> None:
        self._emitter = emitter
        self._lead = _LEAD[trim]
        self._tail = _TAIL[trim]
        self._trim = trim
        self._held: list[str] = []
        self._fresh = True
        self._trims = True

    def add(self, text: str) -> None:
        """Take more of what stands between the tags."""
        if self._fresh:
            found = self._lead.match(text)
            text = text[found.end() :] if found is not None else text
            self._trims = found is not None or self._trim != "line"
            self._fresh = self._trim == "blanks" and not text
        tail = self._tail.search(text)
        if tail is None or tail.start() > 0 or self._trim == "line":
            self._release(text[: tail.start()] if tail is not None else text)
        if tail is not None:
            self._held.append(tail[0])

    def end(self, *, cut: bool = False) -> None:
        """Take the end of the value; where it is `cut`, the tag that follows has a line break before it."""
        if not self._trims and not cut:
            self._release("")
        self._emitter.end()

    def _release(self, text: str) -> None:
        self._emitter.add("".join(self._held) + text)
        self._held.clear()


def quoted_json(text: str) -> str:
    """Return a JSON string as it stands; the empty string where `text` is none."""
    found = text.strip()
    if not found.startswith('"'):
        return ""
    try:
        msgspec.json.decode(found, type=str)
    except msgspec.DecodeError:
        return ""
    return found
