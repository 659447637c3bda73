"""Tools that the server runs, as far as Google's dialects write them alike: headers of MCP servers, stores of files.

Source: `McpServer` and `FileSearch` in `google/genai/types.py`, and `MCPServer` and `FileSearch` in
`google/genai/_gaos/types/interactions` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.hosted import HostedTool, McpServer
    from xenoglot.model.json import JSONObject

FILE_SEARCH: Final = ("store_ids", "max_results", "metadata_filter")
"""The settings of a search in files."""

_STORE: Final = "fileSearchStores/"
_BEARER: Final = "Bearer "


def has_store(tool: HostedTool, where: str, losses: Losses) -> bool:
    """Whether a tool is sent: a search in files without a store of Google's is a loss."""
    if tool.kind != "file_search" or any(name.startswith(_STORE) for name in tool.store_ids or ()):
        return True
    losses.dropped(where, "file_search", "it names no store of files of the dialect")
    return False


def take_headers(reader: Reader) -> dict[str, str] | None:
    """Take the headers of an MCP server; headers that are no texts stay where they were."""
    headers = reader.peek("headers")
    plain = isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values())
    return reader.take("headers", dict) if plain else None


def headers_of(server: McpServer) -> JSONObject | None:
    """Return the headers of an MCP server, its token among them."""
    if server.token is None:
        return server.headers
    return {**(server.headers or {}), "Authorization": f"{_BEARER}{server.token}"}


def note_server(server: McpServer, where: str, losses: Losses, *written: str) -> None:
    """Report the fields of an MCP server that a dialect has none for: all but those in `written`."""
    for name in ("description", "approval", "allowed_tools", "blocked_tools"):
        if name not in written and getattr(server, name) is not None:
            losses.dropped(where, name, "a server of the dialect has no such field")
