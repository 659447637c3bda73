"""Incremental marker search: holds back only what may become a marker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class MarkerScanner:
    """Some strings, looked for together. Where several begin at one place the longest counts."""

    __slots__ = ("_firsts", "_pattern", "_prefixes", "longest")

    def __init__(self, strings: Collection[str]) -> None:
        known = sorted(set(strings) - {""}, key=len, reverse=True)
        self.longest = len(known[0]) if known else 0
        self._pattern = re.compile("|".join(map(re.escape, known)) or r"(?!)")
        self._prefixes = frozenset(string[:end] for string in known for end in range(1, len(string)))
        self._firsts = re.compile("[" + "".join(re.escape(string[0]) for string in known) + "]" if known else r"(?!)")

    def __bool__(self) -> bool:
        return self.longest > 0

    def partial(self, text: str) -> bool:
        """Return whether `text` is the beginning of a marker, and not the whole."""
        return text in self._prefixes

    def absent(self, text: str) -> bool:
        """Return whether `text` has no character that a marker begins with."""
        return self._firsts.search(text) is None

    def find(self, text: str, at: int, *, ended: bool) -> tuple[int, str]:
        """Return where the first marker in `text` from `at` on begins, and it; or where one may begin, and nothing.

        The place is the end of the text where neither is found. Where more can come (not `ended`), a marker that may
        turn out to be a longer one is not found yet.
        """
        found = self._pattern.search(text, at)
        if found is None:
            return (len(text) if ended else self._tail(text, at)), ""
        if not ended and text[found.start() : found.start() + self.longest] in self._prefixes:
            return found.start(), ""
        earlier = len(text) if ended else self._tail(text, at)
        if earlier < found.start():  # a longer one may begin before, around it
            return earlier, ""
        return found.start(), found[0]

    def _tail(self, text: str, at: int) -> int:
        """Return where the longest end of `text` begins that a marker may begin with."""
        start = max(at, len(text) - self.longest + 1)
        while (first := self._firsts.search(text, start)) is not None:
            start = first.start()
            if text[start:] in self._prefixes:
                return start
            start += 1
        return len(text)


def is_token(marker: str) -> bool:
    """Return whether only a tokenizer writes `marker`; tags without bars may be spoken of."""
    return marker[:1] == "<" and marker[1:2] in ("|", "\uff5c")
