"""A request of the size and shape that Claude Code sends, made up, and what a chat upstream is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.matrix.case import assistant, base64, call, function, image_url, result, system, text, tool, use, user
from tests.matrix.cases.images import PNG, PNG_URL
from tests.matrix.cases.reasoning import SEAL

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

BETAS = [
    "claude-code-20250219",
    "interleaved-thinking-2025-05-14",
    "context-management-2025-06-27",
    "mid-conversation-system-2026-03-01",
    "per-turn-control-2026-06-01",
    "effort-2025-11-24",
]
HEADERS = {"X-Claude-Code-Session-Id": "5e55", "x-app": "cli", "anthropic-dangerous-direct-browser-access": "true"}
USER_ID = '{"device_id":"d00d","account_uuid":"","session_id":"5e55"}'
MCP = "mcp__a_server_with_quite_a_long_name__a_tool_with_a_name_that_is_long_too"
MCP_FITTED = "mcp__a_server_with_quite_a_long_name__a_tool_with_a_nam_6b1eaa6a"
CACHED = {"cache_control": {"type": "ephemeral"}}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991, "default": None},
    },
    "required": ["path"],
    "additionalProperties": False,
}
TOOLS = {f"Tool{number}": f"Does the thing number {number}. " + "At some length. " * 180 for number in range(28)}
"""Names and descriptions, 80 KB of them."""

BASE = "You are an agent for the command line. " * 20
REMINDER = "<system-reminder>\nThe task list is empty.\n</system-reminder>"


def _tool(name: str, description: str, **more: JSON) -> JSONObject:
    return {"name": name, "description": description, "input_schema": SCHEMA} | more


ASKED: JSONObject = {
    "max_tokens": 32000,
    "system": [
        text("x-anthropic-billing-header: cc_version=2.1.329.abc; cc_entrypoint=cli; cch=12345;"),
        text(BASE, **CACHED),
        text("Working directory: /tmp", **CACHED),
    ],
    "messages": [
        user([text(REMINDER), text("Look at the picture.", **CACHED)]),
        assistant(
            [
                {"type": "thinking", "thinking": "A picture.", "signature": SEAL},
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                text("I read it."),
                use("toolu_1", "Tool0", {"path": "a.png"}),
                use("toolu_2", "ToolSearch", {"query": "select:slack"}),
            ]
        ),
        user(
            [
                result("toolu_1", [{"type": "image", "source": base64("image/png", PNG)}]),
                result("toolu_2", [{"type": "tool_reference", "tool_name": MCP}]),
                text("Go on."),
            ]
        ),
        {"role": "system", "content": "The user has changed the mode.", "output_config": {"effort": "high"}},
        assistant([use("toolu_3", MCP, {"path": "b"})]),
        user([result("toolu_3", "No such file", is_error=True, **CACHED)]),
    ],
    "tools": [
        *(_tool(name, description) for name, description in TOOLS.items()),
        _tool("ToolSearch", "Finds tools."),
        _tool(MCP, "Deferred.", defer_loading=True),
    ],
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "medium"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": USER_ID},
}

TOLD: JSONObject = {
    "messages": [
        system(f"{BASE}\n\nWorking directory: /tmp"),
        user([text(REMINDER), text("Look at the picture.")]),
        assistant(
            "I read it.",
            reasoning_content="A picture.",
            tool_calls=[
                call("toolu_1", "Tool0", '{"path":"a.png"}'),
                call("toolu_2", "ToolSearch", '{"query":"select:slack"}'),
            ],
        ),
        tool("toolu_1", "[image: in the next user message]"),
        tool("toolu_2", f"The tool `{MCP}` can be called."),
        user([text("[image from the result of toolu_1]"), image_url(PNG_URL), text("Go on.")]),
        system("The user has changed the mode."),
        assistant("", tool_calls=[call("toolu_3", MCP_FITTED, '{"path":"b"}')]),
        tool("toolu_3", "[tool error] No such file"),
    ],
    "tools": [
        *(function(name, SCHEMA, description=description) for name, description in TOOLS.items()),
        function("ToolSearch", SCHEMA, description="Finds tools."),
        function(MCP_FITTED, SCHEMA, description="Deferred."),
    ],
    "max_tokens": 32000,
    "reasoning_effort": "medium",
    "user": USER_ID,
    "stream": True,
    "stream_options": {"include_usage": True},
}

LOST = (
    "$ header anthropic-beta dropped (only messages has it)",
    "$.messages[0].content[0] text dropped (only messages has it)",
    "$.messages[0].content[1] cache dropped (the server decides what it caches)",
    "$.messages[0].content[2] cache dropped (the server decides what it caches)",
    "$.messages[0] content approximated (its texts are joined)",
    "$.messages[1].content[1] cache dropped (the server decides what it caches)",
    "$.messages[2].content[0] signature dropped (only its maker can open it)",
    "$.messages[2].content[1] encrypted dropped (only its maker can open it)",
    "$.messages[3].content[0].content[0] image emulated (moved to the user turn after the results of tools)",
    "$.messages[3].content[1].content[0] tool_reference approximated (written as text)",
    "$.messages[4] output_config dropped (only messages has it)",
    "$.messages[5].content[0] name emulated (fitted to what the server takes)",
    "$.messages[6].content[0] cache dropped (a result takes no cache mark)",
    "$.messages[6].content[0] is_error emulated (the text begins with `[tool error]`)",
    "$.tools[29] defer_loading emulated (the server has no search for tools: this one is described at once)",
    "$.tools[29] name emulated (fitted to what the server takes)",
    "$.thinking display dropped (the dialect has no such field)",
    "$.thinking mode dropped (the effort stands for it)",
)
