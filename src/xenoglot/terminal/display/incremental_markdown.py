"""Incremental Markdown: splits growing text into complete blocks and the open block, which may still change."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from xenoglot.terminal.display.sanitize import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 8000
"""Characters of one block beyond which it is cut at a line: reading it again for each piece must stay cheap."""
LONGEST_INFO = 100
"""Characters after a fence that its second part gets, too."""


class IncrementalMarkdown:
    """Accepts growing text; returns each top-level block once the next one has started.

    `open` is the text not returned yet: after `complete_blocks`, the unfinished block.
    """

    def __init__(self) -> None:
        self.open = ""
        self._read = 0

    def feed(self, text: str) -> None:
        """Add to what is open, with nothing in it to be obeyed."""
        self.open += harmless(text)

    def complete_blocks(self) -> list[str]:
        """Return the blocks that are complete now, each with its line's end. Reads all that is open."""
        if "\n" not in self.open[self._read :] and len(self.open) < LONGEST:
            return []  # what a line is can only be said when it is whole
        whole, end, rest = self.open.rpartition("\n")
        *done, last = _blocks(whole + end)
        if len(last) + len(rest) >= LONGEST:
            given, last, rest = _parted(last, rest)
            done += given
        self.open = last + rest
        self._read = len(self.open)
        return done

    def close(self) -> list[str]:
        """Return the remaining text."""
        rest, self.open, self._read = self.open, "", 0
        return _blocks(rest) if rest.strip() else []


def _blocks(text: str) -> list[str]:
    """Return `text` cut where a top-level block begins; one empty block where there is nothing."""
    return _split(text, [0, *_starts(_parser().parse(text), 0)[1:]])


def _starts(tokens: Sequence[Token], level: int) -> list[int]:
    """Return the lines at which blocks of a level begin."""
    return [token.map[0] for token in tokens if token.level == level and token.map and token.nesting >= 0]


def _split(text: str, starts: Sequence[int]) -> list[str]:
    lines = text.splitlines(keepends=True)
    return ["".join(lines[first:last]) for first, last in pairwise([*starts, len(lines)])]


def _parted(block: str, rest: str) -> tuple[list[str], str, str]:
    """Part a block that is too long: what is complete of it, what stays open, and the line after it.

    A list is cut before its last item. A fence, and the head of a table, stand above both parts.
    """
    if not block:
        return [rest], "", ""
    lines = block.splitlines(keepends=True)
    tokens = _parser().parse(block)
    match tokens[0].type if tokens else "":
        case "bullet_list_open" | "ordered_list_open":
            *given, block = _split(block, sorted({0, _starts(tokens, 1)[-1]}))
            return given, block, rest
        case "fence" if not _closed(tokens[0], lines):
            head = [f"{tokens[0].markup}{tokens[0].info[:LONGEST_INFO]}\n"]
        case "table_open":
            head = lines[:2]
        case _:
            head = []
    if head and len(lines) <= len(head):
        return [], block, rest
    return [block], "".join(head), rest


def _closed(fence: Token, lines: Sequence[str]) -> bool:
    first, end = fence.map or [0, 0]
    return end - first > 1 and lines[end - 1].strip().rstrip(fence.markup[0]) == "" != lines[end - 1].strip()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  an extra

    # What looks like HTML is what the model said, to be seen: the renderer knows no HTML and would leave it out.
    return MarkdownIt().enable(["strikethrough", "table"]).disable(["html_block", "html_inline"])


def parsed(text: str) -> list[Token]:
    """Return the tokens of some Markdown, with nothing in them that a terminal would obey.

    They are looked at again after they were read: `&#x202e;` is harmless only before.
    """
    tokens = _parser().parse(harmless(text))
    for token in tokens:
        _tame(token)
    return tokens


def _tame(token: Token) -> None:
    token.content = harmless(token.content)
    token.info = harmless(token.info)
    token.attrs = {name: harmless(value) if isinstance(value, str) else value for name, value in token.attrs.items()}
    for child in token.children or ():
        _tame(child)
