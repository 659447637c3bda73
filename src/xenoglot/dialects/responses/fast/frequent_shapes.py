"""Decodes and encodes the most common items and tools in one step (see `codec.frequent_shapes`).

What came in this dialect is returned unchanged, item by item; so this module writes only what came in another dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.frequent_shapes import is_plain_call, plain_result, plain_words, silent
from xenoglot.codec.requests.names import fit
from xenoglot.codec.schemas import is_strict
from xenoglot.dialects.responses.extras import NAME
from xenoglot.model.content import Extra, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Tool
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Role

TOOL_ERROR = "[tool error] "
"""What a tool's answer begins with where it is an error: this dialect has no field for it (pitfall-9)."""

ID_LIMIT = 64
"""The longest id, in characters (from OpenAI's 400)."""

NO_ARGUMENTS = "{}"
"""What stands for the arguments of a function that has none: they are parsed (pitfall-94)."""

_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "developer"}

_TYPED = {
    "string": Extra(dialect=NAME, form={"content": "string"}),
    "list": Extra(dialect=NAME, form={"content": "list"}),
}
_UNTYPED = {
    "string": Extra(dialect=NAME, form={"type": "absent", "content": "string"}),
    "list": Extra(dialect=NAME, form={"type": "absent", "content": "list"}),
}
"""How a message is spelled; an `Extra` is immutable, so all messages share these."""

_ITEM = Extra(dialect=NAME, form={"item": {"type": True}})
_LISTS = ("annotations", "logprobs")
_PAIR, _TRIPLE, _FOURFOLD = 2, 3, 4


@shortcut("messages")
def plain_message(item: JSON) -> Message | None:
    """Return a text message of the user or the system, or the result of a function; `None` for any other item."""
    if type(item) is not dict:
        return None
    kind = item.get("type")
    if kind == "function_call_output":
        return _read_result(item)
    if kind != "message" and (kind is not None or "type" in item):
        return None
    role, content, typed = item.get("role"), item.get("content"), kind is not None
    ours = _ROLES.get(role) if type(role) is str else None
    if ours is None or len(item) != _PAIR + typed:
        return None
    spelled = _TYPED if typed else _UNTYPED
    if type(content) is str and content:
        return Message(role=ours, content=(Text(text=content),), extra=spelled["string"])
    parts = _input_texts(content) if type(content) is list else None
    return None if not parts else Message(role=ours, content=tuple(parts), extra=spelled["list"])


@shortcut("messages")
def plain_said(item: JSON) -> Part | None:
    """Return a message of the model with one text, or a call of a function; `None` for any other item."""
    if type(item) is not dict:
        return None
    kind = item.get("type")
    if kind == "function_call":
        return _read_call(item)
    return _read_words(item, typed=kind is not None) if kind == "message" or "type" not in item else None


@shortcut("messages")
def plain_tool(item: JSON) -> Tool | None:
    """Return a function with a name, a description, a schema and whether it is strict; `None` for any other tool."""
    if type(item) is not dict or item.get("type") != "function":
        return None
    name, description, strict = item.get("name"), item.get("description"), item.get("strict")
    parameters = item.get("parameters")
    said = _FOURFOLD + (type(strict) is bool)
    if len(item) != said or type(name) is not str or type(description) is not str or type(parameters) is not dict:
        return None
    if strict is None and is_strict(parameters):
        return None
    return Tool(name=name, description=description, parameters=parameters, strict=strict)


@shortcut("messages")
def write_plain(message: Message, crossing: EncodeContext, kinds: Mapping[str, str]) -> list[JSONObject] | None:
    """Return the items that a stranger's plain message is; `None` for any other. `kinds` are those of calls by id."""
    content = message.content
    if crossing.home or not content or message.name is not None or message.id is not None:
        return None
    if not silent(message.extra, NAME):
        return None
    if message.role == "assistant":
        return _written_turn(content, crossing)
    if type(content[0]) is ToolResult:
        return _written_results(content, kinds)
    return None if message.role in ("developer", "tool") else _written_words(message.role, content)


def _written_words(role: Role, content: tuple[Part, ...]) -> list[JSONObject] | None:
    words = [plain_words(part, NAME) for part in content]
    if None in words:
        return None
    if len(words) == 1:
        return [{"type": "message", "role": role, "content": words[0]}]
    return [{"type": "message", "role": role, "content": [{"type": "input_text", "text": text} for text in words]}]


def _written_results(content: tuple[Part, ...], kinds: Mapping[str, str]) -> list[JSONObject] | None:
    items: list[JSONObject] = []
    for part in content:
        words = plain_result(part, NAME) if type(part) is ToolResult else None
        call_id = part.call_id if type(part) is ToolResult else ""
        if words is None or kinds.get(call_id, "function") != "function" or fit(call_id, ID_LIMIT) != call_id:
            return None
        items.append({"type": "function_call_output", "call_id": call_id, "output": words})
    return items


def _written_turn(content: tuple[Part, ...], crossing: EncodeContext) -> list[JSONObject] | None:
    """Write one text, or none, and the calls after it."""
    first = plain_words(content[0], NAME)
    if first == "":
        return None
    items: list[JSONObject] = [] if first is None else [{"type": "message", "role": "assistant", "content": first}]
    limit = crossing.target.tool_name_limit or ID_LIMIT
    for part in content if first is None else content[1:]:
        if type(part) is not ToolCall or not is_plain_call(part, NAME):
            return None
        if fit(part.id, ID_LIMIT) != part.id or fit(part.name, limit) != part.name:
            return None
        arguments = part.arguments or NO_ARGUMENTS
        items.append({"type": "function_call", "call_id": part.id, "name": part.name, "arguments": arguments})
    return items


def _input_texts(items: list[JSON]) -> list[Text] | None:
    texts: list[Text] = []
    for item in items:
        if type(item) is not dict or len(item) != _PAIR or item.get("type") != "input_text":
            return None
        text = item.get("text")
        if type(text) is not str:
            return None
        texts.append(Text(text=text))
    return texts


def _read_result(item: JSONObject) -> Message | None:
    call_id, output = item.get("call_id"), item.get("output")
    if len(item) != _TRIPLE or type(call_id) is not str or type(output) is not str:
        return None
    if not output or output.startswith(TOOL_ERROR):
        return None
    result = ToolResult(call_id=call_id, content=(Text(text=output),), extra=_ITEM)
    return Message(role="tool", content=(result,))


def _read_call(item: JSONObject) -> ToolCall | None:
    call_id, name, arguments = item.get("call_id"), item.get("name"), item.get("arguments")
    if type(call_id) is not str or not call_id or type(name) is not str or type(arguments) is not str:
        return None
    if len(item) == _FOURFOLD:
        return ToolCall(id=call_id, name=name, arguments=arguments, extra=_ITEM)
    mark = _mark(item, typed=True)
    if len(item) != _TRIPLE + len(mark):
        return None
    item_id = mark.pop("id", None)
    extra = Extra(dialect=NAME, form={"item": mark})
    return ToolCall(id=call_id, name=name, arguments=arguments, item_id=item_id, extra=extra)


def _read_words(item: JSONObject, *, typed: bool) -> Text | None:
    content = item.get("content")
    mark = _mark(item, typed=typed)
    if item.get("role") != "assistant" or len(item) != _PAIR + len(mark) - (not typed):
        return None
    mark["role"] = "assistant"
    if type(content) is str:
        mark["content"] = "string"
        return Text(text=content, extra=Extra(dialect=NAME, form={"item": mark}))
    return _read_text(content[0], mark) if type(content) is list and len(content) == 1 else None


def _read_text(part: JSON, mark: JSONObject) -> Text | None:
    """Read a text that cites nothing."""
    if type(part) is not dict or part.get("type") != "output_text":
        return None
    text = part.get("text")
    absent = [key for key in _LISTS if key not in part]
    empty = all(part[key] == [] for key in _LISTS if key in part)
    if type(text) is not str or not empty or len(part) != _FOURFOLD - len(absent):
        return None
    form: JSONObject = {"absent": absent, "item": mark} if absent else {"item": mark}
    return Text(text=text, extra=Extra(dialect=NAME, form=form))


def _mark(item: JSONObject, *, typed: bool) -> JSONObject:
    """Return the fields that identify an item and give its status."""
    mark: JSONObject = {"type": typed}
    for key in ("id", "status"):
        value = item.get(key)
        if type(value) is str and value:
            mark[key] = value
    return mark
