"""Removes the marks of citations: `<co>words</co: 0:[1,2]>` (Command A), `<co: 0>words</co: 0>` (Command R).

Theory of operation. The parser of the row reads first; marks are removed from the words and the reasoning that it
makes, and what may become one is held. A mark that opens counts where none is open, one that closes where one is.
Quoted marks are spoken of, and stay.
Source: https://github.com/cohere-ai/melody/blob/main/src/parsing/citations_filter.rs
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.text.output_pieces import LossPiece, ReasoningPiece, TextPiece
from xenoglot.text.parser.marker_index import BEFORE, QUOTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.syntax import TextParser

LONGEST_SOURCES: Final = 256
"""Characters of the list of sources in a mark; a longer one is text."""

_SOURCES: Final = rf"(?::[\d:,\[\] ]{{0,{LONGEST_SOURCES}}})?"
_MARK = re.compile(rf"<(/?)co{_SOURCES}>")
_BEGUN = re.compile(rf"<(?:/?c?|/?co{_SOURCES})\Z")
"""The beginning of a mark."""

_LOST: Final = LossPiece("citations", "dropped", "their sources are numbers that only the model's prompt explains")

_Words: TypeAlias = "type[TextPiece | ReasoningPiece]"


class StripCitations:
    """A stage from text to pieces: those of `parser` without the marks of citations."""

    def __init__(self, parser: TextParser) -> None:
        self._parser = parser
        self._kind: _Words = TextPiece  # of what is held
        self._held = ""  # what may become a mark
        self._last = "\n"  # the last characters before it
        self._open = False
        self._found = self._reported = False

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        pieces = self._parser.feed(text)
        if not self._held and len(pieces) == 1 and self._is_plain(pieces[0]):
            return pieces
        return [made for piece in pieces for made in self._take(piece)]

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over. `stopped`: the model ended it; no limit cut it off."""
        made = [one for piece in self._parser.close(stopped=stopped) for one in self._take(piece)]
        return [*made, *self._flush()]

    def _is_plain(self, piece: Piece) -> bool:
        """Return whether `piece` is words of the kind before, without a mark; note them."""
        if type(piece) is not self._kind or "<" in piece.text:
            return False
        self._note(piece.text)
        return True

    def _note(self, text: str) -> None:
        self._last = (self._last + text)[-BEFORE:]

    def _take(self, piece: Piece) -> Sequence[Piece]:
        if isinstance(piece, LossPiece):
            return (piece,)
        if not isinstance(piece, TextPiece | ReasoningPiece):
            self._open = False
            return (*self._flush(), piece)
        made: list[Piece] = []
        if type(piece) is not self._kind:
            made += self._flush()
            self._kind, self._open = type(piece), False
        words = self._strip(self._held + piece.text)
        if self._found and not self._reported:
            self._reported = True
            made.append(_LOST)
        return [*made, self._kind(words)] if words else made

    def _flush(self) -> Sequence[Piece]:
        """Return what is held: it became no mark."""
        held, self._held = self._held, ""
        self._note(held or "\n")
        return (self._kind(held),) if held else ()

    def _strip(self, text: str) -> str:
        """Return `text` without marks; its end is held where it may become one."""
        said: list[str] = []
        at = 0
        for mark in _MARK.finditer(text):
            self._keep(said, text[at : mark.start()])
            at = mark.end()
            closes = bool(mark[1])
            if closes != self._open or (not closes and QUOTED.search(self._last) is not None):
                self._keep(said, mark[0])
            else:
                self._open, self._found = not closes, True
        begun = _BEGUN.search(text, at)
        end = len(text) if begun is None else begun.start()
        self._keep(said, text[at:end])
        self._held = text[end:]
        return "".join(said)

    def _keep(self, said: list[str], text: str) -> None:
        said.append(text)
        self._note(text)
