"""Joins partial calls in the history of a request: clients send model turns as the stream delivered them.

The pieces of a call may stand in one content, or in one content each (the chat helper of the official SDK for Python
keeps the content of every chunk). The call stands where its first piece stood; the pieces are form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.dialects.gemini.parts.partial_call import CALL, PartialCall, is_partial
from xenoglot.model.content import Extra, Opaque, Part, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.dialects.gemini.tool_calls import CallIds
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message

_FIRST = "first_piece"
"""Key of the `form` of a call that came in pieces: the first, as it came."""

_MORE = "pieces"
"""Key of the `form` of a turn: each other piece in it, with its place among the parts."""


class HistoryPieces:
    """Takes the turns of a history one by one, and joins the partial calls in them."""

    __slots__ = ("_call", "_ended", "_first", "_ids", "_place", "_turns")

    def __init__(self, ids: CallIds) -> None:
        self._ids = ids
        self._turns: list[tuple[Message, list[Part]]] = []
        self._call: PartialCall | None = None
        self._ended = False
        """Whether nothing stands after the last call but its pieces."""
        self._first: JSONObject = {}
        self._place = 0, 0  # turn and part of the open call

    def add(self, message: Message, path: str) -> None:
        """Take the next turn; `path` is that of its parts.

        Raises:
            WireError: a piece is malformed, or the first of a call has no name.
        """
        if not any(is_piece(part) for part in message.content):
            if message.content or message.role != "assistant":
                self._end()
                self._ended = False
            self._turns.append((message, [*message.content]))
            return
        parts: list[Part] = []
        more: list[JSON] = []
        self._turns.append((message, parts))
        for place, part in enumerate(message.content):
            if not isinstance(part, Opaque) or not is_piece(part):
                self._end()
                self._ended = False
                parts.append(part)
            elif self._takes(part.data, f"{path}[{place}]"):
                more.append([place, part.data])
            else:
                self._begin(part.data, f"{path}[{place}]")
                parts.append(part)
                self._feed(part.data, f"{path}[{place}]")
        if more:
            self._turns[-1] = replace(message, extra=_with_form(message.extra, {_MORE: more})), parts

    def close(self) -> list[Message]:
        """Return the turns."""
        self._end()
        return [replace(message, content=tuple(parts)) for message, parts in self._turns]

    def _takes(self, piece: JSONObject, path: str) -> bool:
        """Take a piece of the open call, or the end of one that has ended."""
        if self._call is None or not self._call.is_continued_by(piece):
            return self._ended and not piece[CALL]
        self._feed(piece, path)
        return True

    def _begin(self, piece: JSONObject, path: str) -> None:
        self._end()
        self._call, self._first = PartialCall(piece, path, self._ids), piece
        self._place = len(self._turns) - 1, len(self._turns[-1][1])

    def _feed(self, piece: JSONObject, path: str) -> None:
        if self._call is not None and not self._call.feed(piece, path):
            self._end()

    def _end(self) -> None:
        if self._call is None:
            return
        call, self._call, self._ended = self._call.whole(complete=True), None, True
        turn, place = self._place
        self._turns[turn][1][place] = replace(call, extra=_with_form(call.extra, {_FIRST: self._first}))


def is_piece(part: Part) -> bool:
    """Return whether a part of a history is a piece of a call."""
    return isinstance(part, Opaque) and part.dialect == NAME and is_partial(part.data)


def first_piece(call: ToolCall) -> JSONObject | None:
    """Return the part with which a call began, where it came in pieces."""
    found: JSONObject | None = form_of(call.extra, NAME).get(_FIRST)
    return found


def with_pieces(message: Message) -> Sequence[Part]:
    """Return the parts of a turn with the pieces that were taken out of it."""
    more = dict(form_of(message.extra, NAME).get(_MORE, ()))
    if not more:
        return message.content
    kept = iter(message.content)
    count = len(message.content) + len(more)
    parts = [Opaque(dialect=NAME, data=more[place]) if place in more else next(kept, None) for place in range(count)]
    return [part for part in parts if part is not None]


def _with_form(extra: Extra | None, form: JSONObject) -> Extra:
    extra = extra or Extra(dialect=NAME)
    return replace(extra, form={**extra.form, **form})
