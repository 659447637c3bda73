"""Encodes tools and tool choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.requests.custom_tools import as_function
from xenoglot.codec.requests.names import namespace_of
from xenoglot.codec.requests.provider_tools import DIRECT, note_lacking, searches_tools
from xenoglot.dialects.messages.client_tools import encode_client_tool
from xenoglot.dialects.messages.extras import NAME, encode_cache, with_rest, with_said
from xenoglot.dialects.messages.hosted.tools import KINDS, encode_hosted_tool
from xenoglot.dialects.messages.toolsets import TOOLSETS
from xenoglot.model.content import Opaque
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Tool

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.dialects.messages.part_encoder import PartEncoder
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import ProviderDefinition, Request, RequestTool

_CODE = "code_execution_"
"""Begins the versions of the tool whose code may call other tools."""

_MODES = {"auto": "auto", "required": "any", "none": "none"}


def encode_tools(request: Request, parts: PartEncoder, losses: Losses, *, home: bool, strict: bool) -> list[JSONObject]:
    """Return the tools; `strict` is set if the server can enforce a schema."""
    allowed = frozenset() if home else _narrowed(request, losses)
    late = home or searches_tools(request.tools)
    tools: list[JSONObject] = []
    toolset: ProviderDefinition | None = None  # of the tool before
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        before, toolset = toolset, _toolset_of(tool)
        if toolset is not None and toolset is before:
            continue
        if not isinstance(tool, Tool):
            tools += _server_tool(tool, where, losses, home=home)
        elif not allowed or tool.name in allowed:
            tools.append(parts.plain.tool(tool) or _encode_tool(tool, where, parts, losses, late=late, home=home))
    if not strict and any(encoded.get("strict") for encoded in tools):
        losses.dropped("$.tools", "strict", "the server does not hold to schemas")
        tools = [{key: value for key, value in encoded.items() if key != "strict"} for encoded in tools]
    return tools


def _toolset_of(tool: RequestTool) -> ProviderDefinition | None:
    """Return the definition of the toolset that a tool is a member of; `None` for any other tool."""
    definition = tool.definition if isinstance(tool, Tool) else None
    return definition if definition is not None and definition.kind in TOOLSETS else None


def _narrowed(request: Request, losses: Losses) -> frozenset[str]:
    """Return the names of the only tools that may be called, if that can be expressed only by sending no others."""
    choice = request.tool_choice
    if choice is None or not choice.names or choice.mode == "none" or _forced(choice.mode, choice.names):
        return frozenset()
    known = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    if not known.issubset(choice.names):
        losses.emulated("$", "tools", "only those allowed by `tool_choice` are sent")
    losses.emulated("$.tool_choice", "names", "only the tools allowed are sent")
    return frozenset(choice.names)


def _forced(mode: str, names: tuple[str, ...]) -> bool:
    return mode == "required" and len(names) == 1


def _server_tool(tool: Opaque | HostedTool, where: str, losses: Losses, *, home: bool) -> list[JSONObject]:
    if isinstance(tool, HostedTool) and tool.kind in KINDS:
        encoded = encode_hosted_tool(tool, where, losses, home=home)
        return [] if encoded is None else [encoded]
    if isinstance(tool, Opaque) and tool.dialect == NAME and isinstance(tool.data, dict):
        return [tool.data]
    note_left_out(tool, where, losses)
    return []


def _encode_tool(  # noqa: PLR0913  where it goes, and what the server knows
    tool: Tool, where: str, parts: PartEncoder, losses: Losses, *, late: bool, home: bool
) -> JSONObject:
    if tool.definition is not None and tool.definition.dialect == NAME:
        return encode_client_tool(tool, tool.definition, where, losses, home=home)
    if tool.kind == "custom":
        tool = as_function(tool, where, losses)
    own: JSONObject = {"name": parts.tool_name(tool.name, tool.namespace, where)}
    with_said(own, type=form_of(tool.extra, NAME).get("type"), description=tool.description, strict=tool.strict)
    own["input_schema"] = tool.parameters if home else _object_schema(tool, where, losses)
    own |= _late(tool, where, losses, late=late, home=home)
    if tool.cache is not None:
        own["cache_control"] = encode_cache(tool.cache, where, losses, home=home)
    return with_rest(own, tool.extra, where, losses)


def _late(tool: Tool, where: str, losses: Losses, *, late: bool, home: bool) -> JSONObject:
    """Return when the model learns of a tool and who may call it.

    Unless it may be found `late`, it is described at once: a server refuses tools that no search can find.
    """
    known: list[str] = []
    fields: JSONObject = {"allowed_callers": [DIRECT]} if DIRECT in form_of(tool.extra, NAME) else {}
    if tool.defer_loading is not None and late:
        fields["defer_loading"] = tool.defer_loading
        known.append("defer_loading")
    callers = tool.allowed_callers
    if callers is not None and (home or all(caller == DIRECT or caller.startswith(_CODE) for caller in callers)):
        fields["allowed_callers"] = [*callers]
        known.append("allowed_callers")
    note_lacking(tool, where, losses, *known)
    return fields


def _object_schema(tool: Tool, where: str, losses: Losses) -> JSONObject:
    """Return the schema of a tool's input, which must have `type: object` (pitfall-29)."""
    if tool.parameters is None:
        losses.approximated(where, "parameters", "a tool of the dialect has a schema: an object of no properties")
        return {"type": "object", "properties": {}}
    if not isinstance(tool.parameters, dict) or tool.parameters.get("type", "object") != "object":
        losses.approximated(where, "parameters", "a tool takes an object; the schema of another is not sent")
        return {"type": "object"}
    if "type" in tool.parameters:
        return tool.parameters
    losses.approximated(where, "parameters", "`type: object` is added")
    return {"type": "object", **tool.parameters}


def encode_choice(request: Request, parts: PartEncoder, losses: Losses, *, home: bool) -> JSONObject | None:
    """Return `tool_choice`, which holds the wish for one call at a time too."""
    choice, parallel = request.tool_choice, request.parallel_tool_calls
    serial = {} if parallel is None else {"disable_parallel_tool_use": not parallel}
    if choice is None:
        return {"type": "auto", **serial} if serial else None
    own: JSONObject = {"type": _MODES[choice.mode]}
    if _forced(choice.mode, choice.names):
        (name,) = choice.names
        own = {"type": "tool", "name": parts.tool_name(name, namespace_of(name, request.tools), "$.tool_choice")}
    if serial and choice.mode == "none" and not home:
        losses.dropped("$", "parallel_tool_calls", "no tool may be called at all")
        serial = {}
    if choice.kind == "custom":
        losses.emulated("$.tool_choice", "kind", "a custom tool is written as a function of one string")
    return with_rest({**own, **serial}, choice.extra, "$.tool_choice", losses)


def drop_choice(request: Request, losses: Losses) -> None:
    """Record what is lost of a choice if the request has no tools (pitfall-16)."""
    for field in ("tool_choice", "parallel_tool_calls"):
        if getattr(request, field) is not None:
            losses.dropped("$", field, "there are no tools to call")
