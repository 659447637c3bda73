"""Encodes and decodes tools that the server runs: searches, `urlContext`, `codeExecution`, maps, MCP servers.

Source: `Tool`, `GoogleSearch` and `FileSearch` (https://ai.google.dev/api/caching#Tool), and `McpServer` in
`google/genai/types.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.hosted_tools import note_settings
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.google.hosted_tools import FILE_SEARCH, has_store, headers_of, note_server, take_headers
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.content import Extra
from xenoglot.model.hosted import HostedTool, McpServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import HostedKind
    from xenoglot.model.json import JSON, JSONObject

_KINDS: Final[dict[str, HostedKind]] = {
    "googleSearch": "web_search",
    "urlContext": "web_fetch",
    "codeExecution": "code_execution",
    "fileSearch": "file_search",
    "googleMaps": "google_maps",
}
_WORDS: Final[Mapping[HostedKind, str]] = {kind: word for word, kind in _KINDS.items()}
_SERVERS: Final = "mcpServers"
_TRANSPORT: Final = "streamableHttpTransport"

KINDS: Final[frozenset[HostedKind]] = frozenset({*_WORDS, "mcp"})
"""The tools that servers of the dialect run."""

_WRITTEN: Final[Mapping[HostedKind, tuple[str, ...]]] = {
    "web_search": ("blocked_domains",),
    "file_search": FILE_SEARCH,
}


def decode_hosted_tools(reader: Reader) -> list[HostedTool] | None:
    """Return the tools of an entry without its functions; `None` if one of them is only this dialect's."""
    entry = reader.rest()
    if not entry or not all(_is_known(word, value) for word, value in entry.items()):
        return None
    tools: list[HostedTool] = []
    for word, value in entry.items():
        if word == _SERVERS:
            path = reader.at(word)
            tools += [_decode_server(Reader(item, f"{path}[{index}]")) for index, item in enumerate(value)]
        else:
            tools.append(_decode(word, Reader(value, reader.at(word))))
    return tools


def _is_known(word: str, value: JSON) -> bool:
    if word == _SERVERS:
        return isinstance(value, list) and bool(value) and all(map(_is_server, value))
    return word in _KINDS and isinstance(value, dict)


def _is_server(value: JSON) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    transport = value.get(_TRANSPORT)
    return isinstance(transport, dict) and isinstance(transport.get("url"), str)


def _decode(word: str, reader: Reader) -> HostedTool:
    settings: JSONObject = {}
    if word == "googleSearch":
        settings["blocked_domains"] = reader.strings("excludeDomains")
    elif word == "fileSearch":
        settings["store_ids"] = reader.strings("fileSearchStoreNames")
        settings["max_results"] = reader.take("topK", int)
        settings["metadata_filter"] = reader.take("metadataFilter", str)
    extra = Extra(dialect=NAME, fields=reader.rest(), form={"tool": word})
    return HostedTool(kind=_KINDS[word], **settings, extra=extra)


def _decode_server(reader: Reader) -> HostedTool:
    form: JSONObject = {"tool": _SERVERS}
    label = reader.need("name", str)
    transport = Reader(reader.need(_TRANSPORT, dict), reader.at(_TRANSPORT))
    server = McpServer(label=label, url=transport.need("url", str), headers=take_headers(transport))
    keep_rest(reader, _TRANSPORT, transport, form)
    return HostedTool(kind="mcp", server=server, extra=Extra(dialect=NAME, fields=reader.rest(), form=form))


def encode_hosted_tool(tool: HostedTool, where: str, crossing: EncodeContext) -> JSONObject | None:
    """Return the entry of a tool that the dialect has; `None` (and a loss) if the server cannot run it."""
    losses = crossing.losses
    if tool.server is not None:
        return _encode_server(tool, tool.server, where, losses)
    if not crossing.home and not has_store(tool, where, losses):
        return None
    note_settings(tool, where, losses, *_WRITTEN.get(tool.kind, ()))
    own: JSONObject = {}
    if tool.kind == "web_search" and tool.blocked_domains is not None:
        own["excludeDomains"] = list(tool.blocked_domains)
    elif tool.kind == "file_search":
        stores = None if tool.store_ids is None else list(tool.store_ids)
        with_said(own, fileSearchStoreNames=stores, topK=tool.max_results, metadataFilter=tool.metadata_filter)
    return {_WORDS[tool.kind]: with_rest(own, tool.extra, where, losses)}


def _encode_server(tool: HostedTool, server: McpServer, where: str, losses: Losses) -> JSONObject | None:
    if server.url is None:
        losses.dropped(where, "mcp", "the dialect reaches servers by their URLs")
        return None
    note_settings(tool, where, losses)
    note_server(server, where, losses)
    losses.carry(server.extra, where, NAME)
    transport = with_said({"url": server.url}, headers=headers_of(server))
    return {_SERVERS: [with_rest({"name": server.label, _TRANSPORT: transport}, tool.extra, where, losses)]}


def add_tool(entry: JSONObject, tool: JSONObject) -> None:
    """Add a tool to an entry; a further MCP server joins those of the entry."""
    held, added = entry.get(_SERVERS), tool.get(_SERVERS)
    entry.update(tool)
    if isinstance(added, list):
        servers = held if isinstance(held, list) else []
        servers.extend(added)
        entry[_SERVERS] = servers
