"""Decodes and encodes the most common messages and tools in one step (see `codec.frequent_shapes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.frequent_shapes import bare_texts, is_plain_call, plain_result, plain_words, silent
from xenoglot.codec.requests.names import fit
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.request.fields import ID_LIMIT, NAME_LIMIT, TOOL_ERROR
from xenoglot.dialects.chat.tool_calls import NO_ARGUMENTS
from xenoglot.model.content import Extra, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Tool
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Role

_LISTED = Extra(dialect=NAME, form={"content": "parts"})
_NULL = Extra(dialect=NAME, form={"content": "null"})
_ABSENT = Extra(dialect=NAME, form={"content": "absent"})
"""How content is spelled that is no text; an `Extra` never changes, so all messages share these."""

_PAIR, _TRIPLE = 2, 3


@shortcut("messages")
def plain_message(item: JSON) -> Message | None:
    """Return a message of words, calls of functions or a result in words; `None` if it is or holds anything else."""
    if type(item) is not dict:
        return None
    role, content = item.get("role"), item.get("content")
    read = _READERS.get(role) if type(role) is str else None
    if read is None:
        return None
    if type(content) is str and content and len(item) == _PAIR and role != "tool":  # nearly all
        return Message(role=role, content=(Text(text=content),))  # type: ignore[arg-type]  # one of the readers'
    return read(item)


@shortcut("messages")
def plain_tool(item: JSON) -> Tool | None:
    """Return a function with a name, a description and a schema, perhaps strict; `None` for any other tool."""
    if type(item) is not dict or len(item) != _PAIR or item.get("type") != "function":
        return None
    inner = item.get("function")
    if type(inner) is not dict:
        return None
    name, description, strict = inner.get("name"), inner.get("description"), inner.get("strict")
    parameters = inner.get("parameters")
    said = _TRIPLE + (type(strict) is bool)
    if len(inner) != said or type(name) is not str or type(description) is not str or parameters is None:
        return None
    return Tool(name=name, description=description, parameters=parameters, strict=strict)


@shortcut("messages")
def write_plain(message: Message, crossing: EncodeContext) -> list[JSONObject] | None:
    """Return the messages of the wire that a plain one is; `None` if it is not plain, or a server takes less."""
    content = message.content
    if not content or message.name is not None or message.id is not None:
        return None
    writer = _WRITERS.get(message.role)
    return None if writer is None else writer(message, content, crossing)


def _read_words(role: Role) -> Callable[[JSONObject], Message | None]:
    def read(item: JSONObject) -> Message | None:
        content = item.get("content")
        if len(item) != _PAIR:
            return None
        parts = bare_texts(content) if type(content) is list else None
        return None if parts is None else Message(role=role, content=parts, extra=_LISTED)

    return read


_read_said = _read_words("assistant")


def _read_assistant(item: JSONObject) -> Message | None:
    calls = item.get("tool_calls")
    if type(calls) is not list or not calls:
        return _read_said(item)
    parts: list[Part] = []
    extra = None
    content = item.get("content")
    if type(content) is str and content:
        parts.append(Text(text=content))
    elif content is None:
        extra = _NULL if "content" in item else _ABSENT
    if len(item) != (_PAIR if extra is _ABSENT else _TRIPLE) or (content is not None and not parts):
        return None
    for said in calls:
        call = _read_call(said)
        if call is None:
            return None
        parts.append(call)
    return Message(role="assistant", content=tuple(parts), extra=extra)


def _read_call(item: JSON) -> ToolCall | None:
    if type(item) is not dict or len(item) != _TRIPLE or item.get("type") != "function":
        return None
    call_id, inner = item.get("id"), item.get("function")
    if type(call_id) is not str or type(inner) is not dict or len(inner) != _PAIR:
        return None
    name, arguments = inner.get("name"), inner.get("arguments")
    if type(name) is not str or type(arguments) is not str:
        return None
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _read_result(item: JSONObject) -> Message | None:
    call_id, content = item.get("tool_call_id"), item.get("content")
    if len(item) != _TRIPLE or type(call_id) is not str or type(content) is not str:
        return None
    if not content or content.startswith(TOOL_ERROR):
        return None
    return Message(role="tool", content=(ToolResult(call_id=call_id, content=(Text(text=content),)),))


_READERS: dict[str, Callable[[JSONObject], Message | None]] = {
    "system": _read_words("system"),
    "developer": _read_words("developer"),
    "user": _read_words("user"),
    "assistant": _read_assistant,
    "tool": _read_result,
}


def _write_words(message: Message, content: tuple[Part, ...], crossing: EncodeContext) -> list[JSONObject] | None:
    """Write words of the system or the user: one text as a string, what came as a list and the user's as a list."""
    role = message.role
    extra = message.extra
    listed = extra is not None and extra == _LISTED
    if extra is not None and not listed and not silent(extra, NAME):
        return None
    if len(content) == 1 and not listed:
        text = plain_words(content[0], NAME)
        return None if text is None else [{"role": role, "content": text}]
    words = [plain_words(part, NAME) for part in content]
    if None in words or not crossing.target.text_parts or not (listed or role == "user"):
        return None
    return [{"role": role, "content": [{"type": "text", "text": text} for text in words]}]


def _write_user(message: Message, content: tuple[Part, ...], crossing: EncodeContext) -> list[JSONObject] | None:
    if type(content[0]) is ToolResult:
        return _write_results(message, content, crossing)
    return _write_words(message, content, crossing)


def _write_results(message: Message, content: tuple[Part, ...], crossing: EncodeContext) -> list[JSONObject] | None:
    if message.extra is not None and not silent(message.extra, NAME):
        return None
    written: list[JSONObject] = []
    for part in content:
        words = plain_result(part, NAME) if type(part) is ToolResult else None
        if words is None or not _keeps_id(part.call_id, crossing):  # type: ignore[union-attr]
            return None
        written.append({"role": "tool", "tool_call_id": part.call_id, "content": words})  # type: ignore[union-attr]
    return written


def _write_assistant(message: Message, content: tuple[Part, ...], crossing: EncodeContext) -> list[JSONObject] | None:
    """Write one text, or none, and the calls after it."""
    extra = message.extra
    first = plain_words(content[0], NAME)
    null = first is None and extra == _NULL
    if not null and extra is not None and not silent(extra, NAME):
        return None
    written: JSONObject = {"role": "assistant", "content": None if null else first or ""}
    calls: list[JSONObject] = []
    for part in content if first is None else content[1:]:
        call = _written_call(part, crossing) if type(part) is ToolCall else None
        if call is None:
            return None
        calls.append(call)
    if calls:
        written["tool_calls"] = calls
    return [written]


def _written_call(call: ToolCall, crossing: EncodeContext) -> JSONObject | None:
    if not is_plain_call(call, NAME) or not _keeps_id(call.id, crossing) or not _keeps_name(call.name, crossing):
        return None
    arguments = call.arguments if crossing.home else call.arguments or NO_ARGUMENTS
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _keeps_id(call_id: str, crossing: EncodeContext) -> bool:
    return crossing.home or fit(call_id, ID_LIMIT) == call_id


def _keeps_name(name: str, crossing: EncodeContext) -> bool:
    limit = crossing.target.tool_name_limit
    return (crossing.home and limit is None) or fit(name, limit or NAME_LIMIT) == name


_WRITERS: dict[str, Callable[[Message, tuple[Part, ...], EncodeContext], list[JSONObject] | None]] = {
    "system": _write_words,
    "user": _write_user,
    "assistant": _write_assistant,
    "tool": _write_results,
}
