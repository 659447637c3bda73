"""Index of a syntax by marker: what each marker may mean."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from xenoglot.text.parser.scanner import MarkerScanner, is_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.syntax import CallSyntax, Place, ReasoningSyntax, Syntax


BEFORE: Final = 24
"""Characters before a marker that are looked at: a quote, or the marker around it."""

QUOTED: Final = re.compile(r"""(?:\A|[\s(\[{<>=,:;*_/|+-])[bfr]?(?:["']|`{1,2})\Z""")
"""A quote that begins: what stands after it is spoken of. Three backticks begin a block of code, which is none."""


class MarkerIndex:
    """The markers of a syntax; those of its `calls` only where a tool can be called.

    `speaking` are those of calls that, left as text, make those that end it text too; also where no tool can be called.
    """

    def __init__(self, syntax: Syntax, *, calls: bool) -> None:
        self.headers = frozenset(syntax.headers)
        self.dropped = frozenset(syntax.dropped) | self.headers
        self.strays = frozenset(syntax.strays)
        self.orphans = frozenset(close for thoughts in syntax.thoughts for close in thoughts.close)
        self.ends = frozenset(filter(is_token, self.orphans))  # those that no text speaks of
        self._syntax = syntax
        self._calls = (*syntax.calls, *syntax.slips) if calls else ()
        begins = {marker for form in self._calls for marker in form.markers}
        self.begins = tuple(begins)
        forms = (*syntax.calls, *syntax.slips) if syntax.strays else self._calls
        self.speaking = frozenset(marker for form in forms for marker in form.markers if len(marker) > 1)
        opens = {marker for thoughts in syntax.thoughts for marker in thoughts.open}
        self.words = MarkerScanner({*self.dropped, *self.strays, *self.orphans, *begins, *self.speaking, *opens})
        self._opens = {thoughts: MarkerScanner(thoughts.open) for thoughts in syntax.thoughts}
        self._thinking = {
            thoughts: MarkerScanner(
                {*thoughts.close, *thoughts.until, *self.dropped, *({*begins, *self.strays} if thoughts.calls else ())}
            )
            for thoughts in syntax.thoughts
        }

        self._stops = {form: MarkerScanner((*form.close, *form.end)) for form in self._calls}
        self._others = {form: MarkerScanner([one for one in form.open if len(one) > 1]) for form in self._calls}

    def forms(self, marker: str) -> Sequence[CallSyntax]:
        """Return the forms that begin with `marker`."""
        return [form for form in self._calls if marker in form.markers]

    def bare(self, char: str) -> Sequence[CallSyntax]:
        """Return the forms without markers whose payload may begin with `char`."""
        return [form for form in self._calls if not form.markers and char in form.payload.starts]

    def opening(self, marker: str, *, start: bool) -> ReasoningSyntax | None:
        """Return the reasoning syntax that `marker` opens where it stands."""
        for thoughts in self._syntax.thoughts:
            if marker in thoughts.open and (start or thoughts.place == "anywhere"):
                return thoughts
        return None

    def opens(self, thoughts: ReasoningSyntax) -> MarkerScanner:
        """Return the markers that open `thoughts`."""
        return self._opens[thoughts]

    def thinking(self, thoughts: ReasoningSyntax) -> MarkerScanner:
        """Return what is looked for inside of `thoughts`."""
        return self._thinking[thoughts]

    def stops(self, form: CallSyntax) -> MarkerScanner:
        """Return the markers that end calls in `form`."""
        return self._stops[form]

    def others(self, form: CallSyntax) -> MarkerScanner:
        """Return the markers that begin another call in `form`."""
        return self._others[form]


@lru_cache(maxsize=128)
def table(syntax: Syntax, *, calls: bool) -> MarkerIndex:
    """Return the table of `syntax`, made once."""
    return MarkerIndex(syntax, calls=calls)


def counts(place: Place, *, start: bool, line: bool, sentence: bool) -> bool:
    """Return whether a marker counts at the `start` of an answer, or of a `line` or `sentence`, or elsewhere."""
    match place:
        case "anywhere":
            return True
        case "sentence":
            return sentence
        case "line":
            return line
        case "start":
            return start
