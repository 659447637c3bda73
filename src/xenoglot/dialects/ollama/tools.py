"""Encodes and decodes tools: functions only, without tool choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import leave, left, need_object
from xenoglot.codec.requests.custom_tools import as_function
from xenoglot.codec.requests.names import fit, qualified
from xenoglot.codec.requests.provider_tools import note_lacking
from xenoglot.dialects.ollama.extras import FAMILY, extra_of, own_fields
from xenoglot.model.content import Opaque
from xenoglot.model.request import RequestTool, Tool

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request, ToolChoice

NAME_LIMIT = 128
"""The longest name of a tool. The server sets no limit; this is the longest that any other dialect allows."""

_NO_PARAMETERS: JSONObject = {"type": "object", "properties": {}}


def decode_tools(reader: Reader) -> tuple[RequestTool, ...]:
    """Take `tools`; one that is no function is the server's own."""
    return tuple(_decode_tool(item) for item in reader.objects("tools"))


def encode_tools(request: Request, crossing: EncodeContext) -> list[JSONObject]:
    """Return the tools that the model may call: all, those that the choice names, or none."""
    choice = request.tool_choice
    tools: list[JSONObject] = []
    named = frozenset() if choice is None else frozenset(choice.names)
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if choice is not None and not _is_allowed(tool, choice, named):
            crossing.losses.emulated(where, "tool", "left out, for it may not be chosen")
        elif isinstance(tool, Tool):
            tools.append(_encode_tool(tool, where, crossing))
        elif isinstance(tool, Opaque) and tool.dialect == FAMILY:
            tools.append(tool.data)
        else:
            note_left_out(tool, where, crossing.losses)
    _note_choice(request, crossing)
    return tools


def tool_name(name: str, namespace: str | None, where: str, crossing: EncodeContext) -> str:
    """Return the name of a tool as it is sent to the server; `RestoreNames` restores it in the answer."""
    limit = crossing.target.tool_name_limit
    whole = qualified(name, namespace)
    fitted = whole if crossing.home and limit is None else fit(whole, limit or NAME_LIMIT)
    if fitted != name:
        crossing.losses.emulated(where, "name", "fitted to what the server takes")
    return fitted


def _is_allowed(tool: RequestTool, choice: ToolChoice, named: frozenset[str]) -> bool:
    if choice.mode == "none":
        return False
    return not named or not isinstance(tool, Tool) or tool.name in named


def _note_choice(request: Request, crossing: EncodeContext) -> None:
    """Record what becomes of the choice: there is no field for it, so the model is shown only what it may call."""
    losses, choice = crossing.losses, request.tool_choice
    if choice is not None:
        own_fields(choice.extra, "$.tool_choice", losses, FAMILY)
        if not request.tools:
            losses.dropped("$", "tool_choice", "there are no tools")
        elif choice.mode == "required":
            losses.approximated("$", "tool_choice", "the server cannot be made to call a tool")
        elif choice.mode == "none" or choice.names:
            losses.emulated("$", "tool_choice", "only the tools allowed are sent")
    if request.parallel_tool_calls is False:
        losses.dropped("$", "parallel_tool_calls", "the model decides how many tools it calls")


def _decode_tool(reader: Reader) -> RequestTool:
    if reader.peek("type") not in (None, "function") or "function" not in reader:
        return Opaque(dialect=FAMILY, data=reader.rest())
    typed = reader.take_word("type", ("function",)) is not None
    inner = need_object(reader, "function")
    name, description = inner.need("name", str), inner.take("description", str)
    parameters = inner.take_any("parameters")
    nulls = leave(reader, "function", inner)
    form = {"untyped": not typed, "function": None if nulls is True else nulls}
    extra = extra_of(reader, FAMILY, form)
    return Tool(name=name, description=description, parameters=parameters, extra=extra)


def _encode_tool(tool: Tool, where: str, crossing: EncodeContext) -> JSONObject:
    if tool.kind == "custom":
        tool = as_function(tool, where, crossing.losses)
    form, own = form_of(tool.extra, FAMILY), own_fields(tool.extra, where, crossing.losses, FAMILY)
    function: JSONObject = {"name": tool_name(tool.name, tool.namespace, where, crossing)}
    if tool.description is not None:
        function["description"] = tool.description
    parameters = tool.parameters if crossing.home else _parameters(tool, where, crossing)
    if parameters is not None:
        function["parameters"] = parameters
    note_lacking(tool, where, crossing.losses)
    if tool.strict is not None:
        crossing.losses.dropped(where, "strict", "the server holds no call to a schema")
    if tool.cache is not None:
        crossing.losses.dropped(where, "cache", "the server decides what it caches")
    kind = {} if "untyped" in form else {"type": "function"}
    return {**kind, "function": {**function, **left(own, form, "function")}, **own}


def _parameters(tool: Tool, where: str, crossing: EncodeContext) -> JSON:
    """Return the schema of an object: the server reads its fields into a struct (`ToolFunctionParameters`)."""
    if tool.parameters is None:
        return _NO_PARAMETERS
    if not isinstance(tool.parameters, dict) or tool.parameters.get("type", "object") != "object":
        crossing.losses.approximated(where, "parameters", "a tool takes an object; the schema of another is not sent")
        return _NO_PARAMETERS
    if "type" in tool.parameters:
        return tool.parameters
    crossing.losses.approximated(where, "parameters", "the type `object` is added")
    return {"type": "object", **tool.parameters}
