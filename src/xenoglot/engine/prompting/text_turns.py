"""Converts a conversation to text-only turns, with tool calls and results in plain text."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import to_text
from xenoglot.model.content import (
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.request import Message
from xenoglot.text.chat_template import TextReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.request import Request, Role

DEFAULT_SYSTEM: Final = "You are a helpful AI assistant."
"""The default system prompt. The template's own sentence makes it answer in French."""

NAMELESS: Final = "the embedded model knows roles, not names"
UNREADABLE: Final = "there is nothing in them that the embedded model can read: it reads text"

FROM_RESULT: Final = "Answer the question with this result in one sentence."
FROM_RESULTS: Final = "Answer the question with these results."

ROLES: Final[dict[Role, str]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "tool": "user",
    "assistant": "assistant",
}
ENGINE: Final = "engine"
"""Our name where fields are sorted by the dialect that understands them: we understand none beyond the model."""


class TemplateTurn(Struct, frozen=True):
    """One turn of the template."""

    role: str
    text: str


def turns(request: Request, instructions: str, losses: Losses) -> list[TemplateTurn]:
    """Return the conversation; `instructions` are added to the system's text.

    Neighbours of one role become one turn, since many templates insist that the roles take turns. A call with
    a result is written with its result, in the user's turn: the form in which a model without tools understands it.

    Raises:
        FailureError: there is nothing in it that the model can read.
    """
    reading = _Reading(request, losses)
    pieces = [piece for index, message in enumerate(request.messages) for piece in reading.message(message, index)]
    if not pieces:
        raise refused("$.messages", UNREADABLE)
    said = [_turn(role, list(neighbours)) for role, neighbours in groupby(pieces, lambda piece: piece.role)]
    if said[0].role != "system":
        said.insert(0, TemplateTurn("system", DEFAULT_SYSTEM))
    if instructions:
        said[0] = TemplateTurn("system", f"{said[0].text}\n\n{instructions}")
    return said


def reduced(request: Request, losses: Losses) -> tuple[Message, ...]:
    """Return the conversation with nothing in it but texts, calls and results that are texts.

    Raises:
        FailureError: there is nothing in it that the model can read.
    """
    reading = _Reading(request, losses)
    messages = tuple(reading.reduced(message, index) for index, message in enumerate(request.messages))
    if not any(message.content for message in messages):
        raise refused("$.messages", UNREADABLE)
    return messages


def ends_in_results(request: Request) -> bool:
    """Return whether the last message holds what tools returned."""
    last = request.messages[-1:]
    return any(isinstance(part, ToolResult) for message in last for part in message.content)


class _Piece(Struct, frozen=True):
    """The text of one message, or of one tool result in it."""

    role: str
    text: str
    result: bool = False


def _turn(role: str, pieces: list[_Piece]) -> TemplateTurn:
    """Join neighbours; if results come last, add what they are for."""
    text = pieces[0].text
    for before, piece in pairwise(pieces):
        text += ("\n" if before.result or piece.result else "\n\n") + piece.text
    if not pieces[-1].result:
        return TemplateTurn(role, text)
    several = sum(piece.result for piece in pieces) > 1
    return TemplateTurn(role, f"{text}\n{FROM_RESULTS if several else FROM_RESULT}")


class _Reading:
    """Converts messages in order; remembers the calls, because results contain only an id."""

    def __init__(self, request: Request, losses: Losses) -> None:
        parts = [part for message in request.messages for part in message.content]
        self._answered = {part.call_id for part in parts if isinstance(part, ToolResult)}
        called = Counter(part.name for part in parts if isinstance(part, ToolCall))
        self._repeated = {name for name, times in called.items() if times > 1}
        self._calls: dict[str, ToolCall] = {}
        self._losses = losses
        self._texts = TextReader(ENGINE, "the embedded model", losses, self._call)

    def message(self, message: Message, index: int) -> Iterator[_Piece]:
        """Yield the results in a message, then its words."""
        where = f"$.messages[{index}]"
        self._losses.carry(message.extra, where, ENGINE)
        if message.name is not None:
            self._losses.dropped(where, "name", NAMELESS)
        words = []
        for number, part in enumerate(message.content):
            place = f"{where}.content[{number}]"
            if isinstance(part, ToolResult):
                yield _Piece("user", self._result(part, place), result=True)
            else:
                words.append(self._texts.text(part, place))
        if said := "\n".join(text for text in words if text):
            yield _Piece(ROLES[message.role], said)

    def reduced(self, message: Message, index: int) -> Message:
        """Return a message without all that is no text, no call and no result."""
        where = f"$.messages[{index}]"
        self._losses.carry(message.extra, where, ENGINE)
        if message.name is not None:
            self._losses.dropped(where, "name", NAMELESS)
        parts: list[Part] = []
        for number, part in enumerate(message.content):
            place = f"{where}.content[{number}]"
            if isinstance(part, ToolResult):
                content = (Text(text=self._texts.joined(part.content, place)),)
                parts.append(replace(part, content=content, cache=None, extra=None))
            elif isinstance(part, ToolCall):
                parts.append(replace(part, cache=None, extra=None))
            elif text := self._texts.text(part, place):
                parts.append(Text(text=text))
        return Message(role=message.role, content=tuple(parts))

    def _result(self, result: ToolResult, where: str) -> str:
        call = self._calls.get(result.call_id)
        name = result.name or (call.name if call else "")
        if call and call.name in self._repeated:
            name += f"({call.arguments})"
        verb = "failed" if result.is_error else "returned"
        text = self._texts.joined(result.content, where)
        return f"The function {name} {verb}: {text}" if name else f"The function {verb}: {text}"

    def _call(self, call: ToolCall, _where: str) -> str:
        """Return a call in the form that the model writes; nothing if its result contains it."""
        self._calls[call.id] = call
        if call.id in self._answered:
            return ""
        name, arguments = to_text(call.name), call.arguments if call.kind == "function" else to_text(call.arguments)
        return f'{{"name": {name}, "arguments": {arguments or "{}"}}}'
