"""Client-side tool search (`tool_search` with `execution: client`), represented as a function and its calls.

The client gets a `tool_search_call`, and returns the definitions that it found in a `tool_search_output`. Sources:
`openai/types/responses/tool_search_tool_param.py`, `response_tool_search_call.py` and
`response_tool_search_output_item_param_param.py` of the official SDK;
https://developers.openai.com/api/docs/guides/tools-tool-search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.names import qualified
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Request, RequestTool, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

TOOL: Final = "tool_search"
CALL: Final = "tool_search_call"
OUTPUT: Final = "tool_search_output"

_FORM: Final = "tool_search"
"""Marks our tool, call and result as the dialect's own kinds; holds what they say beside what ours hold."""

NOTHING_FOUND: Final = "No tool was found."


def is_for_client(item: JSON) -> bool:
    """Whether a tool, a call or an output is of a search that the client runs."""
    return isinstance(item, dict) and item.get("execution") == "client"


def is_search(part: ToolCall | Tool) -> bool:
    """Whether a tool or a call is such a search."""
    return _FORM in form_of(part.extra, NAME)


def decode_search_tool(reader: Reader) -> Tool:
    """Return the function that a search is."""
    reader.take("execution", str)
    return Tool(
        name=TOOL,
        description=reader.take("description", str),
        parameters=reader.take_any("parameters"),
        extra=extra_of(reader, {_FORM: True}),
    )


def encode_search_tool(tool: Tool, where: str, losses: Losses) -> JSONObject:
    """Return the tool of the wire that `decode_search_tool` read."""
    said = {"description": tool.description, "parameters": tool.parameters}
    own = own_fields(tool.extra, where, losses)
    return {"type": TOOL, "execution": "client", **{k: v for k, v in said.items() if v is not None}, **own}


def decode_search_call(reader: Reader) -> ToolCall | None:
    """Return the call that a search in the history is; `None` if it lacks an id."""
    call_id, arguments = reader.peek("call_id"), reader.peek("arguments")
    if not isinstance(call_id, str) or not call_id or not isinstance(arguments, dict):
        return None
    rest = {key: value for key, value in reader.rest().items() if key not in ("type", "call_id", "arguments")}
    return ToolCall(id=call_id, name=TOOL, arguments=to_text(arguments), extra=Extra(dialect=NAME, form={_FORM: rest}))


def encode_search_call(call: ToolCall, call_id: str, where: str, losses: Losses) -> JSONObject:
    """Return the item of the wire, whose arguments are an object."""
    kept = form_of(call.extra, NAME)[_FORM]
    rest: JSONObject = kept if isinstance(kept, dict) else {"execution": "client"}
    return {"type": CALL, "call_id": call_id, "arguments": _object(call.arguments, where, losses), **rest}


def _object(arguments: str, where: str, losses: Losses) -> JSONObject:
    try:
        value = decode_json(arguments or "{}")
    except WireError:
        value = None
    if isinstance(value, dict):
        return value
    losses.approximated(where, "arguments", "no JSON object: written as its `query`")
    return {"query": arguments}


def decode_search_output(item: JSONObject, tools: Sequence[RequestTool]) -> Message | None:
    """Return the result that an output is, which names the tools found; `None` if it answers no call."""
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        return None
    names = [qualified(tool.name, tool.namespace) for tool in tools if isinstance(tool, Tool)]
    said = "\n".join(f"The tool `{name}` can be called." for name in names) or NOTHING_FOUND
    result = ToolResult(call_id=call_id, content=(Text(text=said),), extra=Extra(dialect=NAME, form={_FORM: item}))
    return Message(role="tool", content=(result,))


def encode_search_output(result: ToolResult) -> JSONObject | None:
    """Return the item that `decode_search_output` read; `None` for any other result."""
    item: JSONObject | None = form_of(result.extra, NAME).get(_FORM)
    return item


def with_search_named(request: Request) -> Request:
    """Return the request with its search under a name that no other tool has, in its history too."""
    if not any(isinstance(tool, Tool) and tool.name == TOOL and is_search(tool) for tool in request.tools):
        return request
    others = (tool for tool in request.tools if isinstance(tool, Tool) and not is_search(tool))
    taken = {qualified(tool.name, tool.namespace) for tool in others}
    if TOOL not in taken:
        return request
    name = f"client_{TOOL}"
    while name in taken:
        name = f"client_{name}"
    tools = tuple(
        replace(tool, name=name) if isinstance(tool, Tool) and is_search(tool) else tool for tool in request.tools
    )
    messages = tuple(
        replace(message, content=tuple(_named(part, name) for part in message.content)) for message in request.messages
    )
    return replace(request, tools=tools, messages=messages)


def _named(part: Part, name: str) -> Part:
    return replace(part, name=name) if isinstance(part, ToolCall) and is_search(part) else part


def search_names(tools: Iterable[RequestTool]) -> frozenset[str]:
    """Return the names of the functions that stand for a search."""
    return frozenset(tool.name for tool in tools if isinstance(tool, Tool) and is_search(tool))


def as_search(part: Part, names: frozenset[str]) -> Part:
    """Return a part of an answer; a call of one of `names` is marked as a search."""
    if not isinstance(part, ToolCall) or part.name not in names or part.namespace is not None:
        return part
    return part if form_of(part.extra, NAME) else replace(part, extra=Extra(dialect=NAME, form={_FORM: True}))
