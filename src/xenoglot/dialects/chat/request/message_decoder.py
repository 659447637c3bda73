"""Decodes the messages of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.call_ids import MessageHistory
from xenoglot.dialects.chat.assistant_decoder import decode_assistant, take_content
from xenoglot.dialects.chat.extras import extra_of
from xenoglot.dialects.chat.fast.frequent_shapes import plain_message
from xenoglot.dialects.chat.request_limits import TOOL_ERROR
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON


def decode_messages(reader: Reader) -> tuple[Message, ...]:
    """Take `messages`.

    Raises:
        WireError: a message has no role we know, or lacks what its role needs.
    """
    path = reader.at("messages")
    before = MessageHistory()
    for index, item in enumerate(reader.need("messages", list)):
        message = plain_message(item) or _decode_message(Reader(item, f"{path}[{index}]"), before)
        before.messages.append(message)
    return tuple(before.messages)


def _decode_message(reader: Reader, before: MessageHistory) -> Message:
    role = reader.need("role", str)
    decode = _DECODERS.get(role)
    if decode is None:
        raise WireError(reader.at("role"), f"expected one of {', '.join(_DECODERS)}")
    return decode(reader, before)


def function_id(position: int) -> str:
    """Return the id of the deprecated function call of the message at `position`, for its result to name."""
    return f"call_function_{position}"


def _decode_plain(role: str) -> Callable[[Reader, MessageHistory], Message]:
    def decode(reader: Reader, _: MessageHistory) -> Message:
        parts, spelled = take_content(reader)
        name = reader.take("name", str)
        return Message(role=role, content=tuple(parts), name=name, extra=extra_of(reader, _content_form(spelled)))  # type: ignore[arg-type]

    return decode


def _decode_assistant(reader: Reader, before: MessageHistory) -> Message:
    parts, form = decode_assistant(reader, None, lambda: function_id(len(before.messages)))
    name = reader.take("name", str)
    form |= _content_form(form["content"])
    if form["content"] == "string":
        del form["content"]
    return Message(role="assistant", content=tuple(parts), name=name, extra=extra_of(reader, form))


def _decode_tool(reader: Reader, _: MessageHistory) -> Message:
    parts, spelled = take_content(reader)
    content, is_error = _take_error(parts)
    result = ToolResult(
        call_id=reader.need("tool_call_id", str),
        content=tuple(content),
        is_error=is_error,
        name=reader.take("name", str),
    )
    return Message(role="tool", content=(result,), extra=extra_of(reader, _content_form(spelled)))


def _decode_function(reader: Reader, before: MessageHistory) -> Message:
    """Read the deprecated answer of a function: it belongs to the last call of its name."""
    parts, spelled = take_content(reader)
    content, is_error = _take_error(parts)
    name = reader.need("name", str)
    call_id = before.last_call(name)
    if call_id is None:
        call_id = function_id(len(before.messages))
    result = ToolResult(call_id=call_id, content=tuple(content), is_error=is_error, name=name)
    return Message(role="tool", content=(result,), extra=extra_of(reader, {**_content_form(spelled), "legacy": True}))


_DECODERS: dict[str, Callable[[Reader, MessageHistory], Message]] = {
    "system": _decode_plain("system"),
    "developer": _decode_plain("developer"),
    "user": _decode_plain("user"),
    "assistant": _decode_assistant,
    "tool": _decode_tool,
    "function": _decode_function,
}


def _content_form(spelled: str) -> dict[str, JSON]:
    """Return the form of content that is not the usual one: text, empty if there is none."""
    return {} if spelled in ("string", "empty") else {"content": spelled}


def _take_error(parts: list[Part]) -> tuple[list[Part], bool | None]:
    first = parts[0] if parts else None
    if isinstance(first, Text) and first.text.startswith(TOOL_ERROR):
        return [replace(first, text=first.text.removeprefix(TOOL_ERROR)), *parts[1:]], True
    return parts, None
