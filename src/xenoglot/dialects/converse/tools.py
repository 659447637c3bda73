"""Encodes and decodes tools and tool choice: `toolConfig`.

Source: `ToolConfiguration`, `ToolSpecification` and `ToolChoice` in the published model of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.custom_tools import as_function
from xenoglot.codec.requests.names import namespace_of
from xenoglot.codec.requests.provider_tools import note_lacking
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse.extras import (
    NAME,
    member,
    read_cache_point,
    take_member,
    with_rest,
    with_said,
    write_cache_point,
)
from xenoglot.model.content import Opaque, ToolCall
from xenoglot.model.request import Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.dialects.converse.parts.encoder import PartEncoder
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message, Request, RequestTool

CONFIG: Final = "toolConfig"

_MODES: Final[dict[str, Literal["auto", "required"]]] = {"auto": "auto", "any": "required", "tool": "required"}


def take_tools(reader: Reader, form: JSONObject) -> tuple[tuple[RequestTool, ...], ToolChoice | None]:
    """Take the tools and the choice among them."""
    config = reader.object(CONFIG)
    if config is None:
        return (), None
    listed = config.take("tools", list)
    tools = _read_tools(listed or (), config.at("tools"))
    if listed == []:
        form["tools"] = "empty"
    choice = _take_choice(config)
    keep_rest(reader, CONFIG, config, form, said=bool(tools) or choice is not None or listed == [])
    return tools, choice


def _read_tools(items: Iterable[JSON], path: str) -> tuple[RequestTool, ...]:
    tools: list[RequestTool] = []
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        mark = read_cache_point(item, where)
        last = tools[-1] if tools else None
        if mark is not None and isinstance(last, Tool) and last.cache is None:
            tools[-1] = replace(last, cache=mark)
        else:
            tools.append(_read_tool(item, where))
    return tuple(tools)


def _read_tool(item: JSON, path: str) -> RequestTool:
    reader = Reader(item, path)
    spec = reader.peek("toolSpec")
    if not isinstance(spec, dict):
        return Opaque(dialect=NAME, data=item)
    inner = take_member(item, "toolSpec", path)
    form: JSONObject = {}
    schema = Reader(inner.need("inputSchema", dict), inner.at("inputSchema"))
    parameters = schema.take_any("json")
    keep_rest(inner, "inputSchema", schema, form, said=parameters is not None)
    return Tool(
        name=inner.need("name", str),
        description=inner.take("description", str),
        parameters=parameters,
        strict=inner.take("strict", bool),
        extra=inner.extra(NAME, **form),
    )


def _take_choice(config: Reader) -> ToolChoice | None:
    value = config.peek("toolChoice")
    kind = next(iter(value), None) if isinstance(value, dict) and len(value) == 1 else None
    if kind not in _MODES or not isinstance(value[kind], dict):
        return None
    inner = Reader(value[kind], config.at(f"toolChoice.{kind}"))
    names = (inner.need("name", str),) if kind == "tool" else ()
    config.take("toolChoice", dict)
    return ToolChoice(mode=_MODES[kind], names=names, extra=inner.extra(NAME))


def encode_config(request: Request, parts: PartEncoder, context: EncodeContext) -> JSONObject:
    """Return `toolConfig` as a field of the body; nothing if there are no tools."""
    losses, home = context.losses, context.home
    form = form_of(request.extra, NAME)
    calling = None if home else _called_names(request.messages)
    if not home and request.tools and _forbidden(request) and not calling:
        for where, what in (("$", "tools"), ("$.tool_choice", "mode")):
            losses.emulated(where, what, "no tools are sent: the dialect cannot forbid their use")
        return {}
    tools = _encode_tools(request, parts, context)
    if not tools and calling:
        losses.emulated("$", "tools", "the server requires the tools of earlier calls: each is sent without a schema")
        tools = [_placeholder(parts.tool_name(name, None, "$.tools")) for name in calling]
    own: JSONObject = {"tools": tools} if tools or form.get("tools") == "empty" else {}
    choice = _encode_choice(request, parts, context, tools=bool(tools))
    with_said(own, toolChoice=choice)
    return {CONFIG: own} if own else {}


def _forbidden(request: Request) -> bool:
    return request.tool_choice is not None and request.tool_choice.mode == "none"


def _called_names(messages: Iterable[Message]) -> dict[str, None]:
    """Return the names of the tools that were called in the conversation, in order."""
    return {part.name: None for message in messages for part in message.content if isinstance(part, ToolCall)}


def _placeholder(name: str) -> JSONObject:
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}


def _encode_tools(request: Request, parts: PartEncoder, context: EncodeContext) -> list[JSONObject]:
    allowed = frozenset() if context.home else _narrowed(request, context)
    tools: list[JSONObject] = []
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if isinstance(tool, Opaque) and tool.dialect == NAME and isinstance(tool.data, dict):
            tools.append(tool.data)
        elif not isinstance(tool, Tool):
            note_left_out(tool, where, context.losses)
        elif not allowed or tool.name in allowed:
            tools += _encode_tool(tool, where, parts, context)
    return tools


def _narrowed(request: Request, context: EncodeContext) -> frozenset[str]:
    """Return the names of the only tools that may be called, if that can be expressed only by sending no others."""
    choice = request.tool_choice
    if choice is None or not choice.names or choice.mode == "none" or _forced(choice):
        return frozenset()
    known = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    if not known.issubset(choice.names):
        context.losses.emulated("$", "tools", "only those allowed by `tool_choice` are sent")
    context.losses.emulated("$.tool_choice", "names", "only the tools allowed are sent")
    return frozenset(choice.names)


def _forced(choice: ToolChoice) -> bool:
    return choice.mode == "required" and len(choice.names) == 1


def _encode_tool(tool: Tool, where: str, parts: PartEncoder, context: EncodeContext) -> list[JSONObject]:
    losses, home = context.losses, context.home
    if tool.kind == "custom":
        tool = as_function(tool, where, losses)
    own: JSONObject = {"name": parts.tool_name(tool.name, tool.namespace, where)}
    if tool.description or home:
        with_said(own, description=tool.description)
    elif tool.description is not None:
        losses.approximated(where, "description", "servers refuse an empty one; it is left out")
    own["inputSchema"] = {} if home and tool.parameters is None else {"json": _schema(tool, where, context)}
    if tool.strict is not None and not home and not context.target.strict_tools:
        losses.dropped(where, "strict", "the server does not hold to schemas")
    else:
        with_said(own, strict=tool.strict)
    if not home:
        note_lacking(tool, where, losses)
    if tool.definition is not None:
        losses.approximated(where, "definition", "written as a function")
    blocks = [member("toolSpec", with_rest(own, tool.extra, where, losses))]
    if tool.cache is not None:
        if home or context.target.cache_marks:
            blocks.append(write_cache_point(tool.cache, where, losses, home=home))
        else:
            losses.dropped(where, "cache", "the server is not known to take marks")
    return blocks


def _schema(tool: Tool, where: str, context: EncodeContext) -> JSON:
    """Return the schema of a tool's input, which must be of an object and have its type."""
    if context.home:
        return tool.parameters
    if tool.parameters is None:
        context.losses.approximated(where, "parameters", "a tool of the dialect has a schema: an object")
        return {"type": "object", "properties": {}}
    if not isinstance(tool.parameters, dict) or tool.parameters.get("type", "object") != "object":
        context.losses.approximated(where, "parameters", "a tool takes an object; the schema of another is not sent")
        return {"type": "object"}
    if "type" in tool.parameters:
        return tool.parameters
    context.losses.approximated(where, "parameters", "`type: object` is added")
    return {"type": "object", **tool.parameters}


def _encode_choice(request: Request, parts: PartEncoder, context: EncodeContext, *, tools: bool) -> JSONObject | None:
    choice, losses = request.tool_choice, context.losses
    if choice is None:
        return None
    if not tools and not context.home:
        losses.dropped("$", "tool_choice", "there are no tools to call")
        return None
    if choice.kind == "custom":
        losses.emulated("$.tool_choice", "kind", "a custom tool is written as a function of one string")
    if choice.mode == "none":
        losses.dropped("$.tool_choice", "mode", "earlier calls require the tools, and the dialect cannot forbid them")
        losses.carry(choice.extra, "$.tool_choice", NAME)
        return None
    kind, own = ("auto" if choice.mode == "auto" else "any"), dict[str, "JSON"]()
    if _forced(choice):
        (name,) = choice.names
        kind = "tool"
        own["name"] = parts.tool_name(name, namespace_of(name, request.tools), "$.tool_choice")
    return {kind: with_rest(own, choice.extra, "$.tool_choice", losses)}
