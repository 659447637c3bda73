"""Incremental detokenizer: emits each character once, and only when all its tokens are known.

A token may hold part of a character, and what a token says may depend on the one before it: many tokenizers drop the
space before the first. So a short window of tokens is decoded, and what of it was given out already is left away. The
window moves on as soon as it ends with a whole character, which keeps the work linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BROKEN: Final = "\ufffd"
"""What decoders write for bytes that are no character, or not yet."""

LONGEST: Final = 32
"""Tokens after which the window is cut even if no character ends there: a model may write broken bytes for ever."""
CONTEXT_TOKENS: Final = 8
"""Tokens that stay then: more than any character has bytes."""
LONGEST_INCOMPLETE: Final = 3
"""The most that later tokens can still mend: all but one of a character's four bytes (RFC 3629 section 3)."""


class Detokenizer:
    """Decodes one text. `before` are the tokens of what it goes on with, where its first word may lean on them."""

    def __init__(self, decode: Callable[[list[int]], str], before: Sequence[int] = ()) -> None:
        self._decode = decode
        self._window = list(before[-CONTEXT_TOKENS:])
        self._fresh = 0  # tokens of the window that came since it last ended with a whole character
        self._text = decode(self._window) if self._window else ""
        self._emitted = len(self._text)

    def feed(self, tokens: Sequence[int]) -> str:
        """Return the text that `tokens` make whole."""
        return "".join([self._feed(token) for token in tokens])

    def close(self) -> str:
        """Return what was held back: what is not whole by now is broken."""
        text, self._emitted = self._text[self._emitted :], len(self._text)
        return text

    def _feed(self, token: int) -> str:
        text = self._decode([*self._window, token])
        if text == self._text and not text.endswith(BROKEN):  # it says nothing, and nothing leans on it
            return ""
        self._window.append(token)
        self._fresh += 1
        self._text, given = text, self._emitted
        whole = len(text.rstrip(BROKEN))
        if whole == len(text):
            self._shorten(self._fresh, held=0)
            return text[given:]
        if len(self._window) > LONGEST:
            held = min(len(text) - whole, LONGEST_INCOMPLETE)
            self._shorten(CONTEXT_TOKENS, held)
            return text[given : len(text) - held]
        self._emitted = max(given, whole)
        return text[given:whole]

    def _shorten(self, kept: int, held: int) -> None:
        """Have the window begin with its last `kept` tokens; all of its text but `held` characters is given out."""
        self._window = self._window[-kept:]
        self._fresh = len(self._window) if held else 0
        self._text = self._decode(self._window)
        self._emitted = max(0, len(self._text) - held)
