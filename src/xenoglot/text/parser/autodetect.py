"""Detects from the first characters of an unknown model's text whether a format has its own parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from xenoglot.text.parser.parser_input import LONGEST_BLANK
from xenoglot.text.parser.scanner import MarkerScanner
from xenoglot.text.parser.text_parser import MarkerParser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.syntax import Syntax, TextParser

Opening: TypeAlias = "tuple[str, Callable[[DeclaredTools], TextParser]]"
"""What a text begins with, and who reads such a text."""


class Autodetect:
    """A stage from text to pieces: it holds the text until it is known which of `openings` it begins with, or none.

    A text that begins with none is read by `usual`.
    """

    def __init__(self, usual: Syntax, openings: Sequence[Opening], declared: DeclaredTools) -> None:
        self._usual = usual
        self._openings = dict(openings)
        self._markers = MarkerScanner(self._openings)
        self._declared = declared
        self._held = ""
        self._parser: TextParser | None = None

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        if self._parser is not None:
            return self._parser.feed(text)
        self._held += text
        return self._choose(ended=False)

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over. `stopped`: the model ended it; no limit cut it off."""
        made = self._choose(ended=True) if self._parser is None else ()
        return (*made, *self._parser.close(stopped=stopped)) if self._parser is not None else made

    def _choose(self, *, ended: bool) -> Sequence[Piece]:
        begun = self._held[:LONGEST_BLANK].lstrip()[: self._markers.longest]
        place, marker = self._markers.find(begun, 0, ended=ended)
        if not ended and place == 0 and not marker and len(self._held) < LONGEST_BLANK:
            return ()
        if place == 0 and marker:
            self._parser = self._openings[marker](self._declared)
        else:
            self._parser = MarkerParser(self._usual, self._declared)
        return self._parser.feed(self._held)
