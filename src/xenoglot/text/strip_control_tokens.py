"""Removes control tokens at the end of a completion; nothing else in it is parsed.

Theory of operation. Tokens, and spaces between them, are held while nothing else follows; they are text as soon as
something does. What is held was read already, so each character is read once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from xenoglot.text.output_pieces import TextPiece
from xenoglot.text.parser.parser_input import LONGEST_HELD
from xenoglot.text.parser.scanner import MarkerScanner
from xenoglot.text.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece


@lru_cache(maxsize=128)
def ending(row: Syntax) -> Syntax | None:
    """Return the syntax of text that a model of `row` continues; `None` where the family has no control tokens."""
    if not row.dropped:
        return None
    tokens = MarkerScanner(row.dropped)

    def parser(_declared: DeclaredTools) -> StripControlTokens:
        return StripControlTokens(tokens)

    return Syntax(name=row.name, title=row.title, source=row.source, own=parser)


class StripControlTokens:
    """A stage from text to pieces: the text without the `tokens` at its end."""

    def __init__(self, tokens: MarkerScanner) -> None:
        self._tokens = tokens
        self._text = ""  # what may become a token
        self._held: list[str] = []  # tokens, and spaces behind them
        self._size = 0

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        if not self._held and not self._text and self._tokens.absent(text):
            return (TextPiece(text),) if text else ()
        return self._read(text, ended=False)

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back, without the tokens at the end."""
        del stopped
        made = self._read("", ended=True)
        self._held.clear()
        return made

    def _read(self, text: str, *, ended: bool) -> Sequence[Piece]:
        text, self._text = self._text + text, ""
        said: list[str] = []
        at = 0
        while at < len(text):
            place, token = self._tokens.find(text, at, ended=ended)
            before = text[at:place]
            if before and not (self._held and before.isspace()):
                self._release(said)
                said.append(before)
            elif before:
                self._hold(before, said)
            if not token:
                self._text = text[place:]
                break
            self._hold(token, said)
            at = place + len(token)
        return (TextPiece("".join(said)),) if said else ()

    def _hold(self, text: str, said: list[str]) -> None:
        self._held.append(text)
        self._size += len(text)
        if self._size > LONGEST_HELD:
            self._release(said)

    def _release(self, said: list[str]) -> None:
        said += self._held
        self._held.clear()
        self._size = 0
