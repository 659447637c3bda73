"""Decodes the `input` of a request: joins items to turns.

One output of the model is several items: they become one assistant turn, so that its calls stand together
(pitfall-57). Items that change the request from their place on (`additional_tools`, `configuration_update`) change
ours, and are returned unchanged with the turn after them.

Source: `openai/types/responses/response_input_item_param.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.call_ids import MessageHistory
from xenoglot.dialects.responses.client_calls import CALLS, OUTPUTS, decode_client_output
from xenoglot.dialects.responses.extras import NAME, extra_of
from xenoglot.dialects.responses.fast.frequent_shapes import TOOL_ERROR, plain_message, plain_said
from xenoglot.dialects.responses.item_decoder import COMPACTION, decode_item, take_content, take_mark
from xenoglot.dialects.responses.item_text import words_of
from xenoglot.dialects.responses.parts import decode_part
from xenoglot.dialects.responses.request.context_management import TRIGGER, decode_trigger
from xenoglot.dialects.responses.tool_search import SEARCH_OUTPUT, SearchPairs
from xenoglot.dialects.responses.tools import decode_tools
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Opaque, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, RequestTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.context import Compact
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Role

_ROLES = ("user", "system", "developer")
_OUTPUTS = {"function_call_output": "function", "custom_tool_call_output": "custom"}
_PLAIN_UPDATE = ({"type", "id", "reasoning", "text"}, {"effort"}, {"format"})
"""The fields of a `configuration_update` that we understand: its own, and those of the two objects in it."""

_CLIENTS = frozenset(
    {
        *OUTPUTS,
        "item_reference",
        "mcp_approval_response",
        TRIGGER,
        "configuration_update",
        "additional_tools",
        "agent_message",
    }
)
"""Items that the client sends, and no part of a turn of the model."""


class InputDecoder:
    """Decodes the items of one request. `tools` and `updates` are changes that items of the input make to it.

    `trigger` is the wish of the last item to compact the input, `resumes` whether there is a compaction in it.
    """

    __slots__ = (
        "_before",
        "_called",
        "_hosted",
        "_ids",
        "_parts",
        "_searches",
        "_spoke",
        "_turns",
        "resumes",
        "tools",
        "trigger",
        "updates",
    )

    def __init__(self) -> None:
        self.tools: list[RequestTool] = []
        self.updates: list[Reader] = []
        self.trigger: Compact | None = None
        self.resumes = False
        self._turns = MessageHistory()
        self._parts: list[Part] = []  # of the model's turn that is not over
        self._searches = SearchPairs()  # of that turn
        self._spoke = self._called = False  # whether there are words in it, and calls
        self._before: list[JSON] = []  # items that go home with the next turn
        self._hosted: set[JSON] = set()  # ids of calls that the server ran, of kinds that clients run too
        self._ids: dict[str, str] = {}  # of calls that the client ran, by those of their items

    def decode(self, items: Sequence[JSON], path: str) -> tuple[tuple[Message, ...], list[JSON]]:
        """Return the turns, and the items after the last of them.

        Raises:
            WireError: an item is of no type, or lacks what its type needs.
        """
        for index, item in enumerate(items):
            if self._plain(item):
                continue
            if index + 1 == len(items) and isinstance(item, dict) and item.get("type") == TRIGGER:
                self.trigger = decode_trigger(item, f"{path}[{index}]")
            else:
                self._item(Reader(item, f"{path}[{index}]"), item)
        self._end_turn()
        return tuple(self._turns.messages), self._before

    def plain(self, items: Sequence[JSON]) -> tuple[Message, ...] | None:
        """Return the turns if all of the items are plain."""
        for item in items:
            if not self._plain(item):
                return None
        self._end_turn()
        return tuple(self._turns.messages)

    def _plain(self, item: JSON) -> bool:
        """Take an item if it is plain; return whether it was."""
        if (message := plain_message(item)) is not None:
            self._add(message)
        elif (part := plain_said(item)) is not None:
            self._said("message" if type(part) is Text else "function_call", (part,))
        else:
            return False
        return True

    def _item(self, reader: Reader, item: JSONObject) -> None:
        kind = _type_of(reader)
        if kind == "message" and reader.peek("role") != "assistant":
            self._add(_decode_message(reader))
        elif kind in _OUTPUTS:
            self._end_turn()
            self._add(_decode_output(reader, kind, self._turns))
        elif kind in ("additional_tools", "tool_search_output"):
            self._tools(reader, item)
        elif kind in OUTPUTS:
            self._output(item)
        elif kind == "configuration_update":
            self._update(reader, item)
        elif kind in _CLIENTS:
            self._add(_whole(item))
        else:
            parts = self._searches.paired(decode_item(item, reader.path))
            if kind in CALLS:
                self._note(item, parts[0])
            self._said(kind, parts)

    def _note(self, item: JSONObject, part: Part) -> None:
        """Note which call an output can belong to."""
        if not isinstance(part, ToolCall):
            self._hosted |= {key for key in (item.get("call_id"),) if isinstance(key, str)}
        elif part.item_id is not None:
            self._ids[part.item_id] = part.id

    def _output(self, item: JSONObject) -> None:
        """Take an output of the client; one of a call that the server ran is a turn of its own."""
        hosted = isinstance(item.get("call_id"), str) and item["call_id"] in self._hosted
        self._add((None if hosted else decode_client_output(item, self._ids)) or _whole(item))

    def _add(self, message: Message) -> None:
        self._end_turn()
        self._turns.messages.append(self._with_before(message))

    def _said(self, kind: str, parts: Sequence[Part]) -> None:
        if kind in ("message", "reasoning") and self._spoke and not self._called:
            self._end_turn()  # words after words: another turn, or they would be glued together
        self._spoke = self._spoke or kind == "message"
        self.resumes = self.resumes or kind == COMPACTION
        self._called = self._called or any(isinstance(part, ToolCall) for part in parts)
        self._parts += parts

    def _end_turn(self) -> None:
        if self._parts:
            self._turns.messages.append(self._with_before(Message(role="assistant", content=tuple(self._parts))))
            self._parts, self._spoke, self._called = [], False, False
            self._searches = SearchPairs()

    def _with_before(self, message: Message) -> Message:
        if not self._before:
            return message
        extra = message.extra or Extra(dialect=NAME)
        noted = replace(extra, form={**extra.form, "before": self._before})
        self._before = []
        return replace(message, extra=noted)

    def _tools(self, reader: Reader, item: JSONObject) -> None:
        """Take the tools that an item defines; an item with other content too is a turn of its own."""
        tools = decode_tools(Reader(item, reader.path))
        self.tools += tools
        found = decode_client_output(item, self._ids)
        if found is not None:
            self._add(found)
            return
        if item["type"] == SEARCH_OUTPUT and item.get("execution") != "client":
            self._said(SEARCH_OUTPUT, self._searches.paired(decode_item(item, reader.path)))
            return
        self._keep(item, understood=item.keys() <= {"type", "id", "role", "tools"})

    def _update(self, reader: Reader, item: JSONObject) -> None:
        self.updates.append(reader)
        outer, reasoning, text = _PLAIN_UPDATE
        inner = ((item.get("reasoning") or {}, reasoning), (item.get("text") or {}, text))
        plain = all(isinstance(value, dict) and value.keys() <= known for value, known in inner)
        self._keep(item, understood=item.keys() <= outer and plain)

    def _keep(self, item: JSONObject, *, understood: bool) -> None:
        if understood:
            self._end_turn()
            self._before.append(item)
        else:
            self._add(_whole(item))


def _type_of(reader: Reader) -> str:
    """Return the type of an item; one with only a role is a message (pitfall-54), one with only an id refers."""
    kind = reader.peek("type")
    if isinstance(kind, str):
        return kind
    if kind is None and "role" in reader:
        return "message"
    if kind is None and reader.rest().keys() <= {"id", "type"} and "id" in reader:
        return "item_reference"
    raise WireError(reader.at("type"), "required, expected str")


def _whole(item: JSONObject) -> Message:
    """Return the turn that an item is which only this dialect understands."""
    part = Opaque(dialect=NAME, data=item, text=words_of(item))
    return Message(role="user", content=(part,), extra=Extra(dialect=NAME, form={"item": True}))


def _decode_message(reader: Reader) -> Message:
    role = reader.need("role", str)
    if role not in _ROLES:
        raise WireError(reader.at("role"), f"expected one of assistant, {', '.join(_ROLES)}")
    parts, spelled = take_content(reader, lambda part, path: decode_part(part, path, "input_text"))
    mark = take_mark(reader)
    return Message(
        role=cast("Role", role),
        content=tuple(part for part in parts if part != Text(text="") or spelled != "string"),
        extra=extra_of(reader, {**mark, "type": not mark["type"] and "absent", "content": spelled or "list"}),
    )


def _decode_output(reader: Reader, kind: str, before: MessageHistory) -> Message:
    parts, spelled = _take_output(reader)
    mark = take_mark(reader)
    form: JSONObject = {"item": mark, "output": spelled}
    name = reader.take("name", str)
    call_id = reader.take("call_id", str)
    if call_id is None:
        form["call_id"] = "absent"
        call_id = before.last_call(name)
    if call_id is None:
        raise WireError(reader.at("call_id"), "required, expected str")
    content, is_error = _take_error(parts)
    result = ToolResult(
        call_id=call_id,
        content=content,
        is_error=is_error,
        name=name,
        kind="custom" if _OUTPUTS[kind] == "custom" else "function",
        extra=extra_of(reader, form),
    )
    return Message(role="tool", content=(result,))


def _take_output(reader: Reader) -> tuple[list[Part], str | None]:
    value = reader.peek("output")
    if value is None:
        return [], None if "output" in reader.rest() else "absent"
    if isinstance(value, str):
        reader.take("output", str)
        return ([Text(text=value)] if value else []), None
    if not isinstance(value, list):
        raise expected(reader.at("output"), "str or list", value)
    items = reader.take("output", list) or []
    path = reader.at("output")
    return [decode_part(item, f"{path}[{index}]", "input_text") for index, item in enumerate(items)], "list"


def _take_error(parts: Sequence[Part]) -> tuple[tuple[Part, ...], bool | None]:
    first = parts[0] if parts else None
    if isinstance(first, Text) and first.text.startswith(TOOL_ERROR):
        return (replace(first, text=first.text.removeprefix(TOOL_ERROR)), *parts[1:]), True
    return tuple(parts), None
