"""Tool call formats of model families, as far as a grammar can enforce them: the text around each call."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.engine.grammar.free_output import written
from xenoglot.model.request import Tool
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.output_pieces import ArgumentsPiece, TextPiece
from xenoglot.text.parser.text_parser import parser
from xenoglot.text.syntax import Place, Syntax

if TYPE_CHECKING:
    from xenoglot.text.syntax import CallSyntax

_NAMES: Final = ("a", "b")
_ARGUMENTS: Final = '{"@": 0}'
"""Arguments that are looked for in what a family's writer makes of them."""


class CallFormat(Struct, frozen=True):
    """A format of tool calls: `lead`, a call, for each further call `joint` and the call, then `tail`.

    Each is a sequence of literals with optional white space between them. `spell` returns the text before and after the
    arguments of a tool, by its name. `marker` is the text that starts calls inside other text, valid at its `place`; ""
    if only the first character of the answer can start them.
    """

    lead: tuple[str, ...]
    joint: tuple[str, ...]
    tail: tuple[str, ...]
    spell: Callable[[str], tuple[str, str]]
    marker: str = ""
    place: Place = "anywhere"


def _plain(name: str) -> tuple[str, str]:
    return f'{{"name": {written(name)}, "arguments": ', "}"


PLAIN: Final = CallFormat(lead=(), joint=("\n",), tail=(), spell=_plain)
"""Calls of a model that knows none: one JSON object in a line."""


def form_of(calls: CallSyntax) -> CallFormat | None:
    """Return the form that `calls` is; `None` where a grammar cannot hold a model to it.

    The family's own writer writes one call and two; their difference shows where the parts begin and end.
    Arguments have to stand there as JSON, and the family's own reader has to find the call again.
    """
    one, two = (calls.payload.write([(name, _ARGUMENTS) for name in names]) for names in (_NAMES[:1], _NAMES))
    if "".join(one).count(_ARGUMENTS) != 1 or "".join(two).count(_ARGUMENTS) != len(_NAMES):
        return None
    if not _is_read(calls, one[0]):
        return None
    before, after = calls.begin[:1] + calls.open[:1], calls.close[:1] + calls.end[:1]
    marker = calls.markers[0] if calls.markers else ""
    if len(two) == 1:
        return _listed(calls, before, after, marker, (one[0], two[0]))
    joint = calls.close[:1] + calls.between[:1] + calls.open[:1]
    return CallFormat(before, joint, after, lambda name: _around(calls, name), marker, calls.place)


def _is_read(calls: CallSyntax, text: str) -> bool:
    """Return whether the family's reader finds the call that its writer wrote."""
    row = Syntax(name="", title="", source="", calls=(calls,))
    stage = parser(row, DeclaredTools.of([Tool(name=_NAMES[0])]))
    around = "".join([*calls.begin[:1], *calls.open[:1], text, *calls.close[:1], *calls.end[:1]])
    pieces = [*stage.feed(around), *stage.close()]
    said = "".join(piece.text for piece in pieces if isinstance(piece, ArgumentsPiece))
    return said == _ARGUMENTS and not any(isinstance(piece, TextPiece) for piece in pieces)


def texts_around(calls: CallSyntax) -> list[str]:
    """Return what the family writes around the name and the arguments of a call."""
    name, argument = "a_name", "an_argument"
    (text,) = calls.payload.write([(name, f'{{"{argument}": 0}}')])
    return [piece for part in text.split(name) for piece in part.split(argument) if piece]


def _listed(
    calls: CallSyntax, before: tuple[str, ...], after: tuple[str, ...], marker: str, texts: tuple[str, str]
) -> CallFormat:
    """Return the form of calls that stand in one list."""
    one, two = texts
    start, rest = one.split(_ARGUMENTS)
    _, middle, _ = two.split(_ARGUMENTS)
    (other,) = calls.payload.write([(_NAMES[1], _ARGUMENTS)])
    head = _common(middle[::-1], other.split(_ARGUMENTS)[0][::-1])[::-1]
    lead = start[: len(start) - len(head)]
    foot = _common(middle[: len(middle) - len(head)], rest)
    between = middle[len(foot) : len(middle) - len(head)].strip()

    def spell(name: str) -> tuple[str, str]:
        begin, _ = _around(calls, name)
        return begin[len(lead) :], foot

    return CallFormat(_and(before, lead), (between,), (rest[len(foot) :], *after), spell, marker, calls.place)


def _common(one: str, other: str) -> str:
    """Return what both begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(character for character, _ in same)


def _and(before: tuple[str, ...], lead: str) -> tuple[str, ...]:
    return (*before, lead) if lead else before


def _around(calls: CallSyntax, name: str) -> tuple[str, str]:
    (text,) = calls.payload.write([(name, _ARGUMENTS)])
    head, _, foot = text.rpartition(_ARGUMENTS)
    return head, foot
