"""Encodes and decodes the tools of a request: functions, and tools that the server runs.

Source: `Tool` in `google/genai/_gaos/types/interactions/tool.py` of the official SDK. A tool that no other dialect has
(`computer_use`, `retrieval`) stays as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.custom_tools import as_function
from xenoglot.codec.requests.hosted_tools import note_settings
from xenoglot.codec.requests.provider_tools import note_lacking
from xenoglot.dialects.google.hosted_tools import FILE_SEARCH, has_store, headers_of, note_server, take_headers
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.interactions.extras import NAME, extra_of, own_fields
from xenoglot.dialects.interactions.step_encoder import fitted
from xenoglot.model.content import Opaque
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import RequestTool, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import HostedKind
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

_FUNCTION: Final = "function"
_MCP: Final = "mcp_server"

_TYPES: Final[Mapping[str, HostedKind]] = {
    "google_search": "web_search",
    "url_context": "web_fetch",
    "code_execution": "code_execution",
    "file_search": "file_search",
    "tool_search": "tool_search",
    "google_maps": "google_maps",
    _MCP: "mcp",
}
KINDS: Final = frozenset(_TYPES.values())
_WORDS: Final = {kind: word for word, kind in _TYPES.items()}


def take_tools(reader: Reader) -> tuple[RequestTool, ...]:
    """Take the tools.

    Raises:
        WireError: one is no object, or has no type.
    """
    path = reader.at("tools")
    listed = reader.take("tools", list) or ()
    return tuple(_decode(item, f"{path}[{index}]") for index, item in enumerate(listed))


def _decode(item: JSON, path: str) -> RequestTool:
    reader = Reader(item, path)
    kind = reader.need("type", str)
    if kind == _FUNCTION:
        return Tool(
            name=reader.need("name", str),
            description=reader.take("description", str),
            parameters=reader.take_any("parameters"),
            defer_loading=reader.take("defer_loading", bool),
            extra=extra_of(reader, {}),
        )
    if kind == _MCP and isinstance(item.get("name") or item.get("url"), str):
        server = _take_server(reader)
        return HostedTool(kind="mcp", server=server, extra=extra_of(reader, {"type": kind}))
    if kind in _TYPES and kind != _MCP:
        stores = _take_stores(reader) if kind == "file_search" else {}
        return HostedTool(kind=_TYPES[kind], **stores, extra=extra_of(reader, {"type": kind}))
    return Opaque(dialect=NAME, data=item)


def _take_stores(reader: Reader) -> JSONObject:
    return {
        "store_ids": reader.strings("file_search_store_names"),
        "max_results": reader.take("top_k", int),
        "metadata_filter": reader.take("metadata_filter", str),
    }


def _take_server(reader: Reader) -> McpServer:
    url, name = reader.take("url", str), reader.take("name", str)
    return McpServer(
        label=name or url or "",
        url=url,
        headers=take_headers(reader),
        allowed_tools=_take_allowed(reader),
        extra=extra_of(Reader({}), {"name": name is None and "absent"}),
    )


def _take_allowed(reader: Reader) -> tuple[str, ...] | None:
    """Take the names of the only tools, where they are listed plainly; anything else stays where it was."""
    match reader.peek("allowed_tools"):
        case [{"tools": [*names], **rest}] if not rest and all(isinstance(name, str) for name in names):
            reader.take_any("allowed_tools")
            return tuple(names)
        case _:
            return None


def encode_tools(request: Request, crossing: EncodeContext) -> list[JSONObject]:
    """Return the tools."""
    encoded: list[JSONObject] = []
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if isinstance(tool, Tool):
            encoded.append(_encode_function(tool, where, crossing))
        elif isinstance(tool, Opaque) and tool.dialect == NAME and isinstance(tool.data, dict):
            encoded.append(tool.data)
        elif isinstance(tool, HostedTool) and tool.kind in _WORDS:
            if crossing.home or has_store(tool, where, crossing.losses):
                encoded.append(_encode_hosted(tool, where, crossing.losses))
        else:
            note_left_out(tool, where, crossing.losses)
    return encoded


def _encode_function(tool: Tool, where: str, crossing: EncodeContext) -> JSONObject:
    losses = crossing.losses
    if tool.kind == "custom":
        tool = as_function(tool, where, losses)
    own = own_fields(tool.extra, where, losses)
    name = tool.name if crossing.home else fitted(tool.name, tool.namespace, where, crossing.target, losses)
    written: JSONObject = {"type": _FUNCTION, "name": name}
    with_said(written, description=tool.description, parameters=tool.parameters, defer_loading=tool.defer_loading)
    note_lacking(tool, where, losses, "defer_loading")
    if tool.strict is not None:
        losses.dropped(where, "strict", "the dialect has no such field")
    if tool.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    return written | own


def _encode_hosted(tool: HostedTool, where: str, losses: Losses) -> JSONObject:
    own = own_fields(tool.extra, where, losses)
    written: JSONObject = {"type": _WORDS[tool.kind]}
    if tool.server is not None:
        written |= _server(tool.server, where, losses)
    searched = FILE_SEARCH if tool.kind == "file_search" else ()
    if searched:
        stores = None if tool.store_ids is None else [*tool.store_ids]
        with_said(written, file_search_store_names=stores, top_k=tool.max_results, metadata_filter=tool.metadata_filter)
    note_settings(tool, where, losses, *searched)
    return written | own


def _server(server: McpServer, where: str, losses: Losses) -> JSONObject:
    form = form_of(server.extra, NAME)
    own_fields(server.extra, where, losses)
    note_server(server, where, losses, "allowed_tools")
    allowed = None if server.allowed_tools is None else [{"tools": list(server.allowed_tools)}]
    return with_said(
        {},
        name=None if "name" in form else server.label,
        url=server.url,
        headers=headers_of(server),
        allowed_tools=allowed,
    )
