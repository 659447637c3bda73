"""Removes a code fence around a whole JSON answer, incrementally."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

MOST_BEFORE: Final = 256
"""The most characters up to the content: an answer that begins with more has no fence of ours."""

MOST_HELD: Final = 65_536
"""The most characters that are held back within, while they may be the end: more white space ends nothing."""

_OPENING = re.compile(
    r"\s*```[ \t]*(?:json(?:\s+(?=[\dtfn-])|\s*(?=[{\[\"]))|\s*(?=[{\[\"\d-]))",  # `json5` is another language
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\s*(?:`{0,2}|```[ \t]*(?:j|js|jso|json\s*|\s*))", re.IGNORECASE)
_TOKEN = re.compile(r"\s+|`+|[^\s`]+")
_TICKS: Final = 3


class _State(Enum):
    BEFORE = auto()  # it may be a fence
    BARE = auto()  # it is none
    WITHIN = auto()
    SPACE = auto()  # within, behind white space
    TICKS = auto()  # within, behind backticks
    CLOSED = auto()  # behind as many as close a fence
    ENDLESS = auto()  # within, and no end is looked for


class StripFence:
    """A stage over one text: without the code fence (of JSON, or of nothing said) that is around the whole of it.

    A fence that does not end where the text ends was around something else; only its beginning, which was needed to
    know, is then missing.
    """

    __slots__ = ("_held", "_size", "_state", "_ticks")

    def __init__(self) -> None:
        self._state = _State.BEFORE
        self._held: list[str] = []  # the beginning; and within, what may be the end
        self._size = 0  # in characters, of what is held
        self._ticks = 0

    @property
    def undecided(self) -> bool:
        """Whether the text may still turn out to have a fence."""
        return self._state is _State.BEFORE

    @property
    def found(self) -> bool:
        """Whether something was taken off."""
        return self._state not in (_State.BEFORE, _State.BARE)

    def feed(self, text: str, /) -> str:
        """Take more of the text; return what of it can be given."""
        if self._state is _State.BEFORE:
            text = self._begin(text)
        if not text or self._state in (_State.BEFORE, _State.BARE, _State.ENDLESS):
            return text
        made: list[str] = []
        for token in _TOKEN.findall(text):
            self._within(token, made)
            if self._size > MOST_HELD:
                made.append(self._release())
                self._state = _State.ENDLESS
        return "".join(made)

    def close(self) -> str:
        """The text is over; return what was held back and is no fence."""
        if self._state is _State.CLOSED or (self._state is _State.TICKS and self._ticks == _TICKS):
            self._held.clear()
        return self._release()

    def _begin(self, text: str) -> str:
        """Return what the fence is known to be before; nothing while it is not known."""
        begun = self._release() + text
        if found := _OPENING.match(begun, 0, MOST_BEFORE):
            self._state = _State.WITHIN
            return begun[found.end() :]
        if len(begun) <= MOST_BEFORE and _BEGINS.fullmatch(begun):
            self._held.append(begun)
            return ""
        self._state = _State.BARE
        return begun

    def _within(self, token: str, made: list[str]) -> None:
        if self._state is _State.ENDLESS:
            made.append(token)
        elif token[0] == "`":
            self._take_ticks(token, made)
        elif not token[0].isspace():
            made += [self._release(), token]
            self._state = _State.WITHIN
        elif self._state is _State.TICKS and self._ticks != _TICKS:
            made.append(self._release())
            self._hold(token, _State.SPACE)
        else:
            closed = self._state in (_State.TICKS, _State.CLOSED)
            self._hold(token, _State.CLOSED if closed else _State.SPACE)

    def _take_ticks(self, token: str, made: list[str]) -> None:
        if self._state is _State.CLOSED:
            made.append(self._release())
        if self._state is not _State.TICKS:
            self._ticks = 0
        self._ticks += len(token)
        self._hold(token, _State.TICKS)

    def _hold(self, token: str, state: _State) -> None:
        self._held.append(token)
        self._size += len(token)
        self._state = state

    def _release(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        self._size = 0
        return held
