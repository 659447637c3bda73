"""Decodes messages, which have the same shape in a request and in an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.reader import take_blanks
from xenoglot.codec.requests.call_ids import PendingCalls
from xenoglot.dialects.ollama.extras import FAMILY, extra_of
from xenoglot.dialects.ollama.media import decode_media
from xenoglot.dialects.ollama.tool_calls import decode_call, derived_id
from xenoglot.model.content import Opaque, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Role

TOOL_ERROR = "[tool error] "
"""What a tool's answer begins with where it is an error: this dialect has no field for it (pitfall-9)."""

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def decode_messages(reader: Reader) -> tuple[Message, ...]:
    """Take `messages`; without any the server is only to load the model.

    Raises:
        WireError: a message has no role, or a field of a wrong type.
    """
    waiting = PendingCalls()
    return tuple(_decode_message(item, index, waiting) for index, item in enumerate(reader.objects("messages")))


def take_parts(reader: Reader, words: str, scope: str, first: int = 0) -> tuple[list[Part], JSONObject]:
    """Take reasoning, images, words (the field `words`) and calls, in this order, and how they were spelled.

    `first` is the position of the first call among those of the answer.

    Raises:
        WireError: a field is of a wrong type.
    """
    form: JSONObject = {"blanks": take_blanks(reader, "thinking", "images", "tool_calls")}
    thought = reader.take("thinking", str)
    parts: list[Part] = [] if thought is None else [Reasoning(text=thought)]
    parts += _take_content(reader, words, form)
    calls = enumerate(reader.objects("tool_calls"), first)
    return [*parts, *(decode_call(call, f"{scope}:{position}") for position, call in calls)], form


def _take_content(reader: Reader, words: str, form: JSONObject) -> list[Part]:
    media, text = reader.strings("images"), reader.take(words, str)
    if text is None and words not in reader.rest():
        form["words"] = "absent"
    return [*(decode_media(data) for data in media or ()), *([Text(text=text)] if text else [])]


def _answered(waiting: PendingCalls, call_id: str | None, name: str | None, fallback: str) -> str:
    """Return the id of the call that a result belongs to: its own, or that of the first that waits for it.

    Results came without their ids before calls had any.
    """
    if call_id is None:
        return waiting.first(name) or fallback
    waiting.answer(call_id)
    return call_id


def _decode_message(reader: Reader, index: int, waiting: PendingCalls) -> Message:
    said = reader.need("role", str)
    role = _ROLES.get(said.lower())  # the server does so too (`Message.UnmarshalJSON`)
    if role is None:  # templates know roles of their own, such as `control`
        return Message(role="system", content=(Opaque(dialect=FAMILY, data={"role": said, **reader.rest()}),))
    if role == "tool":
        return _decode_result(reader, said, waiting, derived_id(f"result:{index}"))
    parts, form = take_parts(reader, "content", str(index))
    for part in parts:
        if isinstance(part, ToolCall):
            waiting.add(part.id, part.name)
    return Message(role=role, content=tuple(parts), extra=extra_of(reader, FAMILY, form | _role(said, role)))


def _role(said: str, role: Role) -> JSONObject:
    return {} if said == role else {"role": said}


def _decode_result(reader: Reader, said: str, waiting: PendingCalls, fallback: str) -> Message:
    form = {"blanks": take_blanks(reader, "images", "tool_name", "tool_call_id"), **_role(said, "tool")}
    content, is_error = _take_error(_take_content(reader, "content", form))
    name, call_id = reader.take("tool_name", str), reader.take("tool_call_id", str)
    form["derived"] = call_id is None
    answered = _answered(waiting, call_id, name, fallback)
    result = ToolResult(call_id=answered, content=tuple(content), is_error=is_error, name=name)
    return Message(role="tool", content=(result,), extra=extra_of(reader, FAMILY, form))


def _take_error(parts: list[Part]) -> tuple[list[Part], bool | None]:
    """Take the mark off the words of a result that is an error."""
    for place, part in enumerate(parts):
        if isinstance(part, Text) and part.text.startswith(TOOL_ERROR):
            rest = part.text.removeprefix(TOOL_ERROR)
            kept = [replace(part, text=rest)] if rest else []
            return [*parts[:place], *kept, *parts[place + 1 :]], True
    return parts, None
