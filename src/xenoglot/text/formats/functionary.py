"""Parser for Functionary 3.2: every message has a recipient, and the prompt ends before the first one's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.text.output_pieces import TextPiece
from xenoglot.text.parser.text_parser import MarkerParser
from xenoglot.text.payloads.json_calls import Named
from xenoglot.text.syntax import CallSyntax, Syntax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece

ARROWS: Final = ">>>"
"""What stands before a recipient: a tool, or `all` for words."""

_WORDS: Final = "all\n"
"""The recipient of words; it follows the arrows of the prompt."""

FORM: Final = CallSyntax(open=(ARROWS,), payload=Named())
"""A call to a recipient that is a tool."""

_INNER: Final = Syntax(
    name="functionary_v32",
    title="",
    source="",
    calls=(FORM,),
    dropped=(ARROWS + _WORDS, "<|eot_id|>", "<|eom_id|>"),
)


def written(calls: Sequence[tuple[str, str]]) -> str:
    """Return calls (name, arguments as JSON) as the model writes them."""
    return "".join(f"{ARROWS}{name}\n{arguments or '{}'}" for name, arguments in calls)


class FunctionaryParser:
    """A stage from text to pieces. Text that begins without an arrow is read as if it had them: the prompt does."""

    def __init__(self, declared: DeclaredTools) -> None:
        self._parser = MarkerParser(_INNER, declared)
        self._held: str | None = ""  # the beginning, while it may be arrows or `all`
        self._added = 0  # characters of ours that have not come back as words

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        if self._held is None:
            return self._ours(self._parser.feed(text))
        self._held += text
        if any(beginning.startswith(self._held) for beginning in (ARROWS, _WORDS)):
            return ()
        return self._begin(self._held)

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over."""
        begun = self._begin(self._held) if self._held else ()
        return (*begun, *self._ours(self._parser.close(stopped=stopped)))

    def _begin(self, text: str) -> Sequence[Piece]:
        self._held = None
        if text.startswith(ARROWS[0]):
            return self._parser.feed(text)
        if text.startswith(_WORDS):
            return self._parser.feed(text.removeprefix(_WORDS))
        self._added = len(ARROWS)
        return self._ours(self._parser.feed(ARROWS + text))

    def _ours(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Return `pieces` without the arrows that we wrote, where they became words rather than a call's marker."""
        if not self._added or not pieces:
            return pieces
        first = pieces[0]
        if not isinstance(first, TextPiece):
            self._added = 0
            return pieces
        ours = min(self._added, len(first.text))
        self._added -= ours
        rest = first.text[ours:]
        return [TextPiece(rest), *pieces[1:]] if rest else self._ours(pieces[1:])
