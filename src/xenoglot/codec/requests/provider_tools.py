"""Tools that a provider defines and the client runs: functions, for a model of another provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.request import Tool

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Request


def as_functions(request: Request, losses: Losses, dialect: str | None = None) -> Request:
    """Return `request` with the tools that a provider defines as functions, but for those that `dialect` can write."""
    if not any(isinstance(tool, Tool) and tool.definition is not None for tool in request.tools):
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
