"""What chat templates and their models take of a conversation: parts as text, and arguments of calls as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.opaque import name_of
from xenoglot.errors import WireError
from xenoglot.model.content import Audio, File, HostedCall, HostedResult, Nested, Opaque, Plain, Refusal, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

CallText: TypeAlias = Callable[[ToolCall, str], str]
"""Returns the text of a tool call at a path."""


class TextReader:
    """Reads parts as text, for a model that reads text only; what is none is a loss.

    `name` is the dialect by whose name unknown fields are kept, `model` what losses call the model, `call` returns the
    text of a tool call.
    """

    def __init__(self, name: str, model: str, losses: Losses, call: CallText) -> None:
        self._name = name
        self._model = model
        self._losses = losses
        self._call = call

    def joined(self, parts: Iterable[Part], where: str) -> str:
        """Return the texts of parts, one a line."""
        return "\n".join(text for part in parts if (text := self.text(part, where)))

    def text(self, part: Part, where: str) -> str:
        """Return the text of a part; empty if it has none."""
        match part:
            case Text(text=text, extra=extra) | Refusal(text=text, extra=extra):
                self._losses.carry(extra, where, self._name)
                return text
            case ToolCall():
                return self._call(part, where)
            case File(source=Plain(text=text)):
                return text
            case File(source=Nested(parts=parts)):
                return self.joined(parts, where)
            case _:
                return self._replacement(part, where)

    def _replacement(self, part: Part, where: str) -> str:
        """Return the text that replaces a part of another kind."""
        match part:
            case Audio(transcript=str(text)):
                self._losses.approximated(where, "audio", f"{self._model} reads its transcript")
                return text
            case Opaque(text=str(text)):
                self._losses.approximated(where, name_of(part), f"{self._model} reads it as text")
                return text
            case HostedCall() | HostedResult():
                words = hosted_words(part, where, self._losses)
                return "" if words is None else words.text
            case _:
                self._losses.dropped(where, name_of(part), f"{self._model} reads text only")
                return ""


def arguments_object(arguments: str) -> JSONObject:
    """Return the arguments of a call as an object; what is none is put into one.

    Templates serialize them: a text would be quoted a second time, and some templates iterate over the members.
    """
    try:
        value: JSON = decode_json(arguments or "{}")
    except WireError:
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


def call_message(call_id: str, name: str, arguments: JSONObject) -> JSONObject:
    """Return a call as templates take it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
