"""Descriptions of parts and tools that only their own dialect understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    File,
    HostedCall,
    HostedResult,
    Image,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part


_MOST_NAMES = 4

_NAMES: dict[type[Part], str] = {
    Text: "text",
    Image: "image",
    Audio: "audio",
    Video: "video",
    File: "file",
    Reasoning: "reasoning",
    ToolCall: "tool_call",
    ToolResult: "tool_result",
    HostedCall: "hosted_call",
    HostedResult: "hosted_result",
    Refusal: "refusal",
    CompactedHistory: "compaction",
}


def name_of(part: Part) -> str:
    """Return what losses call a part: its name in the model (`tool_call`), or its dialect's where no other has it."""
    return kind_of(part) if isinstance(part, Opaque) else _NAMES[type(part)]


def note_left_out(tool: Opaque | HostedTool, where: str, losses: Losses) -> None:
    """Report that a tool is left out, which the dialect has no name for.

    Without a search for tools every tool is described at once, so the model knows the same tools.
    """
    if isinstance(tool, Opaque):
        losses.dropped(where, kind_of(tool), f"a tool that only a server of {tool.dialect} runs")
    elif tool.kind == "tool_search":
        losses.emulated(where, tool.kind, "all tools are described at once")
    else:
        losses.dropped(where, tool.kind, "the provider runs it, and the dialect has no such tool")


def kind_of(part: Opaque | HostedTool) -> str:
    """Return the kind of a part or a tool in its own dialect; a hosted tool has one kind in all dialects.

    Without a `type` its kind is the name of the object in it (`{"googleSearch": {}}`), or the names of several.
    """
    if isinstance(part, HostedTool):
        return part.kind
    data = part.data if isinstance(part.data, dict) else {}
    kind = data.get("type")
    if isinstance(kind, str):
        return kind
    names = [name for name, value in data.items() if isinstance(value, dict)]
    return ", ".join(names[:_MOST_NAMES]) or "part"
