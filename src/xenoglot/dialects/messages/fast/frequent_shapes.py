"""Decodes and encodes the most common messages, blocks and tools in one step (see `codec.frequent_shapes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.frequent_shapes import bare_texts, is_plain_call, plain_result, plain_words, silent
from xenoglot.codec.json.tool_arguments import arguments_of, input_of
from xenoglot.codec.requests.names import fit, read_id, spell_id
from xenoglot.dialects.messages.extras import NAME
from xenoglot.model.content import CacheMark, Extra, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Tool
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Role

STRING = Extra(dialect=NAME, form={"content": "string"})
"""How content is spelled that is a text; an `Extra` is immutable, so all messages and results share it."""

ID_LIMIT = 64
NAME_LIMIT = 128
"""`ToolParam.name`: at most 128 characters."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_SAYERS = ("user", "assistant", "system")
_MARK = {"type": "ephemeral"}
_MARKED = CacheMark()

_PAIR, _TRIPLE, _FOURFOLD = 2, 3, 4


@shortcut("messages")
def plain_message(item: JSON) -> Message | None:
    """Return a turn of the user or the assistant in plain blocks; `None` if it is or contains anything else."""
    if type(item) is not dict or len(item) != _PAIR:
        return None
    role, content = item.get("role"), item.get("content")
    ours = _ROLES.get(role) if type(role) is str else None
    if ours is None:
        return None
    if type(content) is str:
        return Message(role=ours, content=(Text(text=content),), extra=STRING)
    if type(content) is not list:
        return None
    parts: list[Part] = []
    for block in content:
        kind = block.get("type") if type(block) is dict else None
        read = _READERS.get(kind) if type(kind) is str else None
        part = None if read is None else read(block)
        if part is None:
            return None
        parts.append(part)
    return Message(role=ours, content=tuple(parts))


@shortcut("messages")
def plain_text(block: JSON) -> Text | None:
    """Return the part of a block that is a text, perhaps with the usual cache mark; `None` for any other."""
    if type(block) is not dict or block.get("type") != "text":
        return None
    text = block.get("text")
    if type(text) is not str:
        return None
    if len(block) == _PAIR:
        return Text(text=text)
    return Text(text=text, cache=_MARKED) if len(block) == _TRIPLE and block.get("cache_control") == _MARK else None


@shortcut("messages")
def plain_tool(item: JSON) -> Tool | None:
    """Return a tool with a name, a description and a schema, perhaps with a cache mark; `None` for any other."""
    if type(item) is not dict:
        return None
    name, description, schema = item.get("name"), item.get("description"), item.get("input_schema")
    if type(name) is not str or type(description) is not str or type(schema) is not dict:
        return None
    if len(item) == _TRIPLE:
        return Tool(name=name, description=description, parameters=schema)
    if len(item) == _FOURFOLD and item.get("cache_control") == _MARK:
        return Tool(name=name, description=description, parameters=schema, cache=_MARKED)
    return None


class PlainWriter(Struct, frozen=True):
    """Encodes plain parts and tools: for a client (no `name_limit`), or for a server with that name length limit.

    `home` is set if all of it came from this dialect: then nothing is changed.
    """

    home: bool
    name_limit: int | None

    @shortcut("messages")
    def block(self, part: Part, role: str) -> JSONObject | None:
        """Return the block of a part in a turn of `role`; `None` if it is not plain, or has no place there."""
        kind = type(part)
        if kind is Text:
            return self._text(part)
        if kind is ToolCall and role == "assistant":
            return self._call(part)  # type: ignore[arg-type]
        if kind is ToolResult and role == "user":
            return self._result(part)  # type: ignore[arg-type]
        return None

    @shortcut("messages")
    def lone(self, message: Message) -> str | None:
        """Return the text of a turn that contains nothing else; `None` for any other turn."""
        content, extra = message.content, message.extra
        if len(content) != 1 or message.name is not None or message.id is not None or message.role not in _SAYERS:
            return None
        text = plain_words(content[0], NAME) if silent(extra, NAME) or extra == STRING else None
        return None if text is None or not self._says(text) else text

    @shortcut("messages")
    def tool(self, tool: Tool) -> JSONObject | None:
        """Return a function whose schema has `type: object`; `None` for any other tool."""
        schema = tool.parameters
        plain = tool.kind == "function" and tool.cache is None and tool.strict is None and silent(tool.extra, NAME)
        if not plain or tool.description is None or tool.namespace is not None or tool.definition is not None:
            return None
        if tool.output_schema is not None or tool.defer_loading is not None or tool.allowed_callers is not None:
            return None
        if (
            not self._keeps_name(tool.name)
            or not isinstance(schema, dict)
            or (not self.home and schema.get("type") != "object")
        ):
            return None
        return {"name": tool.name, "description": tool.description, "input_schema": schema}

    def _text(self, part: Part) -> JSONObject | None:
        text = plain_words(part, NAME)
        return None if text is None or not self._says(text) else {"type": "text", "text": text}

    def _says(self, text: str) -> bool:
        """Whether a block can hold the text: a server rejects one that is only whitespace."""
        return self.home or self.name_limit is None or bool(text and not text.isspace())

    def _call(self, call: ToolCall) -> JSONObject | None:
        if not is_plain_call(call, NAME) or not self._keeps_id(call.id) or not self._keeps_name(call.name):
            return None
        value = input_of(call.arguments)
        return None if value is None else {"type": "tool_use", "id": call.id, "name": call.name, "input": value}

    def _result(self, result: ToolResult) -> JSONObject | None:
        words = plain_result(result, NAME)
        if words is None or not self._says(words) or not self._keeps_id(result.call_id):
            return None
        content = [{"type": "text", "text": words}] if self.home else words
        block: JSONObject = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
        if result.is_error is not None:
            block["is_error"] = result.is_error
        return block

    def _keeps_id(self, call_id: str) -> bool:
        written = spell_id(call_id) if self.home or self.name_limit is None else fit(call_id, ID_LIMIT)
        return written == call_id

    def _keeps_name(self, name: str) -> bool:
        return self.name_limit is None or fit(name, self.name_limit) == name


def _read_call(block: JSONObject) -> Part | None:
    call_id, name, value = block.get("id"), block.get("name"), block.get("input")
    if len(block) != _FOURFOLD or type(call_id) is not str or type(name) is not str or type(value) is not dict:
        return None
    return ToolCall(id=read_id(call_id), name=name, arguments=arguments_of(value))


def _read_result(block: JSONObject) -> Part | None:
    """Read the result of a tool in texts, perhaps with a flag for an error, or with a cache mark."""
    call_id, content = block.get("tool_use_id"), block.get("content")
    said, mark = block.get("is_error"), block.get("cache_control")
    known = _TRIPLE + (type(said) is bool) + (mark is not None)
    if len(block) != known or type(call_id) is not str or (mark is not None and mark != _MARK):
        return None
    call_id = read_id(call_id)
    cache = None if mark is None else _MARKED
    if type(content) is str:
        texts = (Text(text=content),)
        return ToolResult(call_id=call_id, content=texts, is_error=said, cache=cache, extra=STRING)
    parts = bare_texts(content) if type(content) is list else None
    return None if parts is None else ToolResult(call_id=call_id, content=parts, is_error=said, cache=cache)


_READERS: dict[str, Callable[[JSONObject], Part | None]] = {
    "text": plain_text,
    "tool_use": _read_call,
    "tool_result": _read_result,
}
