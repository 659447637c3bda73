"""Incremental multi-string search in one pass (Aho and Corasick, 1975)."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

START: Final = 0
"""The state in which nothing of any string has been read."""

Found: TypeAlias = tuple[int, str]
"""Where the first string to be complete ends in the piece that was read, and that string."""


class Automaton:
    """What `words` (none of them empty) look like from each of their beginnings.

    A state is the longest end of the text read so far that some word begins with; `depths` has its length. Of the words
    that are complete at the same character the longest is found. What a word costs is a state for each character.
    """

    __slots__ = ("_beginning", "_edges", "_fallbacks", "_words", "depths")

    def __init__(self, words: Iterable[str]) -> None:
        self.depths = [0]
        self._edges: list[dict[str, int]] = [{}]
        self._words: list[str | None] = [None]
        for word in words:
            self._add(word)
        self._fallbacks = [START] * len(self._edges)
        self._link()
        beginnings = "".join(map(re.escape, self._edges[START]))
        self._beginning = re.compile(f"[{beginnings}]" if beginnings else "(?!)")

    def search(self, text: str, state: int) -> tuple[int, Found | None]:
        """Read `text` on from `state`; return the state behind it, or behind the first word that is complete in it."""
        position, end = 0, len(text)
        while position < end:
            if state == START:  # most texts have nothing to look at: skip to what has
                begun = self._beginning.search(text, position)
                if begun is None:
                    return START, None
                position = begun.start()
            state = self._step(state, text[position])
            position += 1
            word = self._words[state]
            if word is not None:
                return state, (position, word)
        return state, None

    def _add(self, word: str) -> None:
        state = START
        for depth, character in enumerate(word, 1):
            following = self._edges[state].get(character)
            if following is None:
                following = self._edges[state][character] = len(self._edges)
                self._edges.append({})
                self._words.append(None)
                self.depths.append(depth)
            state = following
        self._words[state] = word

    def _link(self) -> None:
        """Find for each state the longest other one that is its end, the shorter ones first."""
        waiting = deque(self._edges[START].values())
        while waiting:
            state = waiting.popleft()
            for character, following in self._edges[state].items():
                fallback = self._step(self._fallbacks[state], character)
                self._fallbacks[following] = fallback
                self._words[following] = self._words[following] or self._words[fallback]
                waiting.append(following)

    def _step(self, state: int, character: str) -> int:
        """Return the state behind `character`. A fall makes the state shorter, so there is one for each character."""
        while (following := self._edges[state].get(character)) is None:
            if state == START:
                return START
            state = self._fallbacks[state]
        return following
