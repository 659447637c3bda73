"""The pieces that text parsers return: text, reasoning and tool calls, in the order of the text."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class TextPiece(Struct, frozen=True):
    """Text that is text, character for character."""

    text: str


class ReasoningPiece(Struct, frozen=True):
    """More of what the model thinks."""

    text: str


class ReasoningEnded(Struct, frozen=True):
    """The reasoning is over."""


class CallStart(Struct, frozen=True):
    """The model calls the tool `name`, which is declared; `id` is the id that it wrote of the call, if any."""

    name: str
    id: str = ""


class ArgumentsPiece(Struct, frozen=True):
    """More of the call's arguments, as JSON text."""

    text: str


class CallEnded(Struct, frozen=True):
    """The call is over; `whole`: it ended as its form does; else the answer broke off in it."""

    whole: bool = True


class LossPiece(Struct, frozen=True):
    """Something of a call that could not be kept: `what`, `how` and `why` as in `codec.loss`."""

    what: str
    how: Literal["dropped", "approximated"]
    why: str


Piece: TypeAlias = TextPiece | ReasoningPiece | ReasoningEnded | CallStart | ArgumentsPiece | CallEnded | LossPiece


def joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Return the pieces with neighbours of one kind joined."""
    if len(pieces) < 2:  # noqa: PLR2004  one has no neighbour
        return pieces
    made: list[Piece] = []
    for kind, alike in groupby(pieces, type):
        made += _join(kind, alike)
    return made


def _join(kind: type[Piece], alike: Iterable[Piece]) -> Iterable[Piece]:
    if kind in {TextPiece, ReasoningPiece, ArgumentsPiece}:
        return (kind("".join(piece.text for piece in alike)),)  # type: ignore[union-attr]
    return alike
