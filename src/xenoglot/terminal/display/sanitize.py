"""Sanitizes text of a model, file or server for a terminal: replaces control characters, and hides nothing.

An escape sequence can change the title, write into the clipboard or overwrite other output; a bidirectional control can
make one command look like another; a tag character is read by models and invisible to people.
"""

from __future__ import annotations

from unicodedata import category

STAND_IN = "\N{REPLACEMENT CHARACTER}"
"""What is shown for a character that is not shown."""

_KEPT = frozenset("\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")
_REFUSED = frozenset(("Cc", "Cf", "Cs", "Co"))
_BREAKS = {"\N{LINE SEPARATOR}": "\n", "\N{PARAGRAPH SEPARATOR}": "\n", "\r": "", "\N{SOFT HYPHEN}": ""}
"""A carriage return goes: it is half of a line's end, or it would write over the line."""


class _Table(dict[int, str]):
    """Translation table of characters, filled on first use."""

    def __missing__(self, point: int) -> str:
        character = chr(point)
        if character in _BREAKS:
            shown = _BREAKS[character]
        elif character in _KEPT or category(character) not in _REFUSED:
            shown = character
        else:
            shown = STAND_IN
        self[point] = shown
        return shown


_TABLE = _Table()


def harmless(text: str) -> str:
    """Return `text` as a terminal may show it; character by character, so it may be cut anywhere."""
    return text if text.isprintable() else text.translate(_TABLE)


def in_line(text: str, limit: int = 200) -> str:
    """Return `text` in one line, cut at `limit` characters: a name, a reason, the beginning of a result."""
    words = " ".join(harmless(text[: limit * 4]).split())
    return words if len(words) <= limit and len(text) <= limit * 4 else words[: limit - 1] + "…"
