"""Encodes and decodes tools that the server runs: web search, code interpreter, MCP, file search, images.

Source: `openai/types/responses/web_search_tool_param.py`, `web_search_preview_tool_param.py`,
`file_search_tool_param.py` and `tool_param.py` (`Mcp`, `CodeInterpreter`, `ImageGeneration`) of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.codec.requests.hosted_tools import encode_location, note_settings, take_location
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import HostedKind
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import RequestTool

TYPES: Final[Mapping[str, HostedKind]] = {
    "web_search": "web_search",
    "web_search_2025_08_26": "web_search",
    "web_search_preview": "web_search",
    "web_search_preview_2025_03_11": "web_search",
    "code_interpreter": "code_execution",
    "mcp": "mcp",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "tool_search": "tool_search",
}
KINDS: Final = frozenset({*TYPES.values(), "web_fetch"})

_WORDS: Final[Mapping[HostedKind, str]] = {
    "web_search": "web_search",
    "web_fetch": "web_search",
    "code_execution": "code_interpreter",
    "mcp": "mcp",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "tool_search": "tool_search",
}

_CONTAINER: Final[JSONObject] = {"type": "auto"}


def hosted_names(tools: Sequence[RequestTool]) -> dict[str, str]:
    """Return the types of tools that the server runs by their kinds, which are their names in a choice.

    A function of the client's may have that name: then the function is meant. A tool of an MCP server is chosen by its
    own name, so these have none here.
    """
    functions = {tool.name for tool in tools if isinstance(tool, Tool)}
    kinds = {tool.kind for tool in tools if isinstance(tool, HostedTool)} - functions - {"mcp"}
    return {kind: word for kind, word in _WORDS.items() if kind in kinds}


def decode_hosted_tool(reader: Reader, kind: str) -> HostedTool:
    """Return the tool of a type `kind`, which is taken."""
    does = TYPES[kind]
    form: JSONObject = {"type": kind}
    if does == "mcp":
        return HostedTool(kind=does, server=_take_server(reader, form), extra=extra_of(reader, form))
    if reader.peek("container") == _CONTAINER:
        form["container"] = "auto"
        reader.take("container", dict)
    domains: tuple[str, ...] | None = None
    if isinstance(reader.peek("filters"), dict) and does == "web_search":
        filters = Reader(reader.take("filters", dict), reader.at("filters"))
        domains = filters.strings("allowed_domains")
        form["filters"] = leave(reader, "filters", filters)
    return HostedTool(
        kind=does,
        allowed_domains=domains,
        location=take_location(reader, "user_location", NAME),
        context_size=reader.take("search_context_size", str),
        extra=extra_of(reader, form),
    )


def _take_server(reader: Reader, form: JSONObject) -> McpServer:
    headers = reader.peek("headers")
    plain = isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values())
    return McpServer(
        label=reader.need("server_label", str),
        url=reader.take("server_url", str),
        description=reader.take("server_description", str),
        token=reader.take("authorization", str),
        headers=reader.take("headers", dict) if plain else None,
        allowed_tools=_take_allowed(reader, form),
        approval=reader.take_any("require_approval"),
    )


def _take_allowed(reader: Reader, form: JSONObject) -> tuple[str, ...] | None:
    """Take the names of a list, or of a filter by names alone (`McpAllowedToolsMcpToolFilter`)."""
    allowed = reader.peek("allowed_tools")
    names = allowed.get("tool_names") if isinstance(allowed, dict) and allowed.keys() == {"tool_names"} else allowed
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    if names is not allowed:
        form["filter"] = True
    reader.take_any("allowed_tools")
    return tuple(names)


def encode_hosted_tools(tools: Sequence[RequestTool], crossing: EncodeContext) -> dict[int, JSONObject]:
    """Return the entries of the hosted tools by their places; a page fetch is part of the search here."""
    encoded: dict[int, JSONObject] = {}
    searches = any(isinstance(tool, HostedTool) and tool.kind == "web_search" for tool in tools)
    for index, tool in enumerate(tools):
        if not isinstance(tool, HostedTool):
            continue
        where = f"$.tools[{index}]"
        if tool.kind not in _WORDS:
            note_left_out(tool, where, crossing.losses)
            continue
        if tool.kind == "file_search" and (tool.extra is None or tool.extra.dialect != NAME):
            crossing.losses.dropped(where, "file_search", "it names no vector store of the dialect")
            continue
        if tool.kind == "web_fetch":
            crossing.losses.emulated(where, "web_fetch", "pages are opened by the search of the dialect")
            if searches:
                note_settings(tool, where, crossing.losses)
                own_fields(tool.extra, where, crossing.losses)
                continue
            searches = True
        encoded[index] = _encode(tool, where, crossing)
    return encoded


def _encode(tool: HostedTool, where: str, crossing: EncodeContext) -> JSONObject:
    losses = crossing.losses
    form, own = form_of(tool.extra, NAME), own_fields(tool.extra, where, losses)
    entry: JSONObject = {"type": form.get("type", _WORDS[tool.kind])}
    written: tuple[str, ...] = ()
    if tool.server is not None:
        entry |= _server(tool.server, where, crossing, form)
    elif tool.kind == "code_execution":
        if "container" in form or "type" not in form:
            entry["container"] = _CONTAINER
    elif tool.kind in ("web_search", "web_fetch"):
        written = ("allowed_domains", "location", "context_size")
        entry |= _search(tool, form, own, where, crossing)
    note_settings(tool, where, losses, *written)
    return entry | own


def _search(tool: HostedTool, form: JSONObject, own: JSONObject, where: str, crossing: EncodeContext) -> JSONObject:
    entry: JSONObject = {}
    if tool.allowed_domains is not None or "filters" in form:
        listed = {} if tool.allowed_domains is None else {"allowed_domains": list(tool.allowed_domains)}
        entry["filters"] = listed | left(own, form, "filters")
    if tool.location is not None:
        place = encode_location(tool.location, where, crossing.losses, NAME)
        entry["user_location"] = {"type": "approximate", **place}
    if tool.context_size is not None:
        entry["search_context_size"] = tool.context_size
    return entry


def _server(server: McpServer, where: str, crossing: EncodeContext, form: JSONObject) -> JSONObject:
    if server.blocked_tools is not None:
        crossing.losses.dropped(where, "blocked_tools", "the dialect has no list of disabled tools")
    names = None if server.allowed_tools is None else [*server.allowed_tools]
    said: JSONObject = {
        "server_url": server.url,
        "server_description": server.description,
        "authorization": server.token,
        "headers": server.headers,
        "allowed_tools": {"tool_names": names} if names is not None and "filter" in form else names,
        "require_approval": server.approval,
    }
    if "type" not in form:
        crossing.losses.carry(server.extra, where, NAME)
    return {"server_label": server.label, **{key: value for key, value in said.items() if value is not None}}
