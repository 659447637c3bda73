"""The text of a JSON object that arrives in pieces, and whether it is complete; each character is read once."""

from __future__ import annotations

import re

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError

_MARK = re.compile(r'["\\{}\[\]]')
_DEPTHS = {"{": 1, "[": 1, "}": -1, "]": -1}


class ObjectText:
    """The pieces so far. `is_complete` may be called after every piece; no character is read twice."""

    __slots__ = ("_begun", "_complete", "_depth", "_escaped", "_looked", "_quoted", "pieces")

    def __init__(self, text: str = "") -> None:
        self.pieces: list[str] = [text] if text else []
        self._looked = 0  # pieces
        self._depth = 0
        self._begun = self._quoted = self._escaped = False
        self._complete: bool | None = None  # known once the outermost bracket is closed

    def __bool__(self) -> bool:
        """Whether there is any text."""
        return bool(self.pieces)

    def __str__(self) -> str:
        return "".join(self.pieces)

    def is_complete(self) -> bool:
        """Whether the text is one JSON object, after which only blanks could come."""
        while self._looked < len(self.pieces):
            piece = self.pieces[self._looked]
            self._looked += 1
            if self._complete is None:
                self._look(piece)
            elif piece.strip():
                self._complete = False
        return self._complete is True

    def _look(self, piece: str) -> None:
        """Follow the brackets of one more piece."""
        escaped = 0 if self._escaped else -1
        self._escaped = False
        for mark in _MARK.finditer(piece):
            at, sign = mark.start(), mark[0]
            if at == escaped:
                continue
            if sign == '"':
                self._quoted = not self._quoted
            elif self._quoted:
                if sign == "\\":
                    escaped = at + 1
            elif sign != "\\":
                self._depth += _DEPTHS[sign]
                self._begun = True
            if self._begun and self._depth <= 0:
                self._complete = self._is_object()
                return
        self._escaped = escaped == len(piece)

    def _is_object(self) -> bool:
        try:
            return isinstance(decode_json(str(self)), dict)
        except WireError:
            return False
