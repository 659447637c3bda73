"""An MCP server over standard input and output, for a client to start: one tool, which says a text backwards."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("words")


@server.tool()
def backwards(text: str) -> str:
    """Return the text with its last character first."""
    return text[::-1]


if __name__ == "__main__":
    sys.exit(server.run())
