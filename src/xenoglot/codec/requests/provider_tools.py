"""Tools that a provider defines and the client runs: functions, for a model of another provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request, RequestTool


DIRECT: Final = "direct"
"""The model itself, among those who may call a tool."""

_LACKING: Final = {
    "output_schema": "the dialect has no schema of a tool's result",
    "defer_loading": "the server has no search for tools: this one is described at once",
    "allowed_callers": "no program of the server calls tools: the model does",
}
"""Fields of a tool that few dialects have, and why one is lost where it cannot be written."""


def typed(kind: str, description: str, **more: JSON) -> JSONObject:
    """Return the schema of a value of type `kind`, with `more` keywords."""
    return {"type": kind, **more, "description": description}


def object_schema(required: str, /, **properties: JSON) -> JSONObject:
    """Return the schema of an object; the names of its `required` properties are separated by spaces."""
    needed: JSONObject = {"required": required.split()} if required else {}
    return {"type": "object", "properties": properties, **needed}


def searches_tools(tools: Iterable[RequestTool]) -> bool:
    """Whether the provider searches among the tools, so that those that are found late are not described at once."""
    return any(isinstance(tool, HostedTool) and tool.kind == "tool_search" for tool in tools)


def note_lacking(tool: Tool, where: str, losses: Losses, *known: str) -> None:
    """Report the fields of `tool` that a dialect cannot write, which knows those in `known`."""
    if tool.output_schema is not None and "output_schema" not in known:
        losses.dropped(where, "output_schema", _LACKING["output_schema"])
    if tool.defer_loading and "defer_loading" not in known:
        losses.emulated(where, "defer_loading", _LACKING["defer_loading"])
    if tool.allowed_callers not in (None, (DIRECT,)) and "allowed_callers" not in known:
        losses.approximated(where, "allowed_callers", _LACKING["allowed_callers"])


def as_functions(request: Request, losses: Losses, dialect: str | None = None) -> Request:
    """Return `request` with the tools that a provider defines as functions, but for those that `dialect` can write."""
    for tool in request.tools:
        if type(tool) is Tool and tool.definition is not None:
            break
    else:
        return request
    tools = tuple(
        as_function(tool, f"$.tools[{index}]", losses, dialect) if isinstance(tool, Tool) else tool
        for index, tool in enumerate(request.tools)
    )
    return replace(request, tools=tools)


def as_function(tool: Tool, where: str, losses: Losses, dialect: str | None = None) -> Tool:
    """Return `tool` as a function, unless `dialect` is that of its definition."""
    if tool.definition is None or tool.definition.dialect == dialect:
        return tool
    losses.emulated(where, "definition", f"`{tool.definition.kind}` is written as a function with its published schema")
    return replace(tool, definition=None)
