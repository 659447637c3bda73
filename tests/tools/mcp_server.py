"""An MCP server with a tool of each sort, made with the official package; as a program it speaks over its pipes."""

from __future__ import annotations

import asyncio
import os

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
LONG = "a_tool_whose_name_is_longer_than_the_sixty_four_characters_that_every_model_takes"


class Sum(BaseModel):
    """What `add` gives."""

    total: int


def served() -> MCPServer:
    """Return a new server."""
    server = MCPServer("test", instructions="Add before you shout.")
    add_plain(server)
    add_odd(server)
    add_resources(server)
    server.add_tool(shout, name=LONG)
    return server


def shout(text: str) -> str:
    return text.upper()


def add_plain(server: MCPServer) -> None:
    """Add tools that give something."""
    server.add_tool(shout)

    @server.tool()
    def add(a: int, b: int) -> Sum:
        """Add two numbers."""
        return Sum(total=a + b)

    @server.tool()
    def everything() -> CallToolResult:
        """Give content of each kind."""
        return CallToolResult(
            content=[
                TextContent(type="text", text="words"),
                ImageContent(type="image", data=PNG, mime_type="image/png"),
                AudioContent(type="audio", data=PNG, mime_type="audio/mpeg"),
                EmbeddedResource(type="resource", resource=TextResourceContents(uri="note://a", text="a note")),
                EmbeddedResource(
                    type="resource",
                    resource=BlobResourceContents(uri="file:///b.pdf", blob=PNG, mime_type="application/pdf"),
                ),
                ResourceLink(type="resource_link", uri="note://c", name="c", mime_type="text/plain"),
            ]
        )


def add_odd(server: MCPServer) -> None:
    """Add tools that do something else."""

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ValueError("no such thing")

    @server.tool()
    async def slow(ctx: Context, marker: str) -> str:
        """Tell of progress, and wait until nobody waits any longer."""
        await ctx.report_progress(1, 2, "half")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            with open(marker, "w", encoding="utf-8") as file:  # noqa: ASYNC230, PTH123  it is the last thing
                file.write("cancelled")
            raise
        return "late"

    @server.tool()
    def die() -> str:
        """End the server."""
        os._exit(3)

    @server.tool()
    def variables() -> str:
        """Tell which variables it sees."""
        return " ".join(f"{name}={value}" for name, value in sorted(os.environ.items()))

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Have one more tool, and say so."""
        server.add_tool(shout, name="grown")
        await ctx.notify_tools_changed()  # to those who have asked for it, and
        await ctx.session.send_tool_list_changed()  # to those of earlier revisions
        return "grown"


def add_resources(server: MCPServer) -> None:
    """Add a resource, and a form of others."""

    @server.resource("note://hello")
    def hello() -> str:
        """A greeting."""
        return "Hello from a resource."

    @server.resource("note://of/{name}")
    def note(name: str) -> str:
        """A note of somebody."""
        return f"A note of {name}."


if __name__ == "__main__":
    served().run()
