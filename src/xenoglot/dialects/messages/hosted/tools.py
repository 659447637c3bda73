"""Encodes and decodes tools that the server runs: web search, page fetch, code execution, and servers of MCP.

Source: `anthropic/types/beta/beta_web_search_tool_20250305_param.py`, `beta_web_fetch_tool_20250910_param.py`,
`beta_code_execution_tool_20250825_param.py`, `beta_mcp_toolset_param.py` and
`beta_request_mcp_server_url_definition_param.py` of the official SDK, and the later versions of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.hosted_tools import encode_location, note_settings, take_location
from xenoglot.dialects.messages.extras import NAME, encode_cache, take_cache, with_rest, with_said
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.hosted import HostedTool, McpServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import HostedKind
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import RequestTool

TOOLSET: Final = "mcp_toolset"
SERVERS: Final = "mcp_servers"

KINDS: Final[frozenset[HostedKind]] = frozenset({"web_search", "web_fetch", "code_execution", "mcp", "tool_search"})

_VERSIONS: Final[dict[HostedKind, str]] = {
    "web_search": "web_search_20250305",
    "web_fetch": "web_fetch_20250910",
    "code_execution": "code_execution_20250825",
    "tool_search": "tool_search_tool_bm25_20251119",
}
"""The versions that are written for tools of other dialects: those that the most models have."""

_WRITTEN: Final[dict[HostedKind, tuple[str, ...]]] = {
    "web_search": ("allowed_domains", "blocked_domains", "max_uses", "location", "cache"),
    "web_fetch": ("allowed_domains", "blocked_domains", "max_uses", "cache"),
    "code_execution": ("cache",),
    "mcp": ("cache",),
    "tool_search": ("cache",),
}

NEVER: Final = "never"
"""The one `approval` that this dialect can hold to: it calls the tools of a server without asking."""


_SEARCHES: Final = frozenset({"tool_search_tool_bm25", "tool_search_tool_regex"})
"""Types of searches for tools, with a version or without (`tool_search_tool_bm25_20251119_param.py`)."""


def hosted_kind(kind: str) -> HostedKind | None:
    """Return what a tool of type `kind` does; `None` for one that no other dialect has."""
    if _unversioned(kind) in _SEARCHES:
        return "tool_search"
    name, _, version = kind.rpartition("_")
    found: dict[str, HostedKind] = {known.rpartition("_")[0]: kind for kind, known in _VERSIONS.items()}
    return found.get(name) if version.isdecimal() else None


def _unversioned(kind: str) -> str:
    name, _, version = kind.rpartition("_")
    return name if version.isdecimal() else kind


def _name_of(kind: str, does: HostedKind) -> str:
    """Return the name that a tool of a type has to have."""
    return _unversioned(kind) if does == "tool_search" else does


def decode_hosted_tool(reader: Reader, kind: str, does: HostedKind) -> HostedTool:
    """Return the tool of a type `kind`, which is taken."""
    form: JSONObject = {"type": kind}
    if reader.take_word("name", (_name_of(kind, does),)) is None:
        form["name"] = "kept"
    return HostedTool(
        kind=does,
        allowed_domains=reader.strings("allowed_domains"),
        blocked_domains=reader.strings("blocked_domains"),
        max_uses=reader.take("max_uses", int),
        location=take_location(reader, "user_location", NAME),
        cache=take_cache(reader),
        extra=reader.extra(NAME, **form),
    )


def decode_mcp_toolset(reader: Reader) -> HostedTool:
    """Return the tools of a server, of which no more is known yet than its name."""
    label = reader.need("mcp_server_name", str)
    allowed, blocked = _take_selection(reader)
    return HostedTool(
        kind="mcp",
        server=McpServer(label=label, allowed_tools=allowed, blocked_tools=blocked),
        cache=take_cache(reader),
        extra=reader.extra(NAME, type=TOOLSET),
    )


_ON: Final[JSONObject] = {"enabled": True}
_OFF: Final[JSONObject] = {"enabled": False}


def _take_selection(reader: Reader) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the names of the only tools that are enabled, or of those that are disabled.

    A tool of `configs` without `enabled` is as `default_config` has it. Fields with more in them are not taken.
    """
    default, configs = reader.peek("default_config"), reader.peek("configs")
    if not isinstance(default or {}, dict) or not isinstance(configs or {}, dict):
        return None, None
    chosen: JSONObject = {name: one for name, one in (configs or {}).items() if isinstance(one, dict)}
    if (default or {}).get("enabled") is False:
        if default == _OFF and isinstance(configs, dict) and all(one == _ON for one in configs.values()):
            reader.take("default_config", dict)
            reader.take("configs", dict)
        return tuple(name for name, one in chosen.items() if one.get("enabled") is True), None
    blocked = tuple(name for name, one in chosen.items() if one.get("enabled") is False)
    if blocked and default is None and all(one == _OFF for one in (configs or {}).values()):
        reader.take("configs", dict)
    return None, blocked or None


def with_servers(reader: Reader, tools: Sequence[RequestTool], form: JSONObject) -> tuple[RequestTool, ...]:
    """Take `mcp_servers`, and return the tools with the settings of each server; one without a toolset is added.

    Raises:
        WireError: a server is malformed.
    """
    if reader.peek(SERVERS) == []:
        form[SERVERS] = "empty"
        reader.take(SERVERS, list)
    known = {server.label: server for server in map(_decode_server, reader.objects(SERVERS))}
    if not known:
        return tuple(tools)
    form[SERVERS] = list(known)
    placed: list[RequestTool] = []
    for tool in tools:
        server = tool.server if isinstance(tool, HostedTool) else None
        if isinstance(tool, HostedTool) and server is not None and server.label in known:
            found = known.pop(server.label)
            allowed = found.allowed_tools if server.allowed_tools is None else server.allowed_tools
            selected = replace(found, allowed_tools=allowed, blocked_tools=server.blocked_tools)
            placed.append(replace(tool, server=selected))
        else:
            placed.append(tool)
    bare = (
        HostedTool(kind="mcp", server=one, extra=Extra(dialect=NAME, form={"type": "bare"})) for one in known.values()
    )
    return (*placed, *bare)


def _decode_server(reader: Reader) -> McpServer:
    form: JSONObject = {"server": True}
    reader.take_word("type", ("url",))
    label = reader.need("name", str)
    allowed: tuple[str, ...] | None = None
    configured = reader.peek("tool_configuration")
    if isinstance(configured, dict) and configured.keys() == {"allowed_tools"}:
        allowed = Reader(reader.take("tool_configuration", dict), reader.path).strings("allowed_tools")
        form["allowed_tools"] = True
    elif isinstance(configured, dict) and ("allowed_tools" in configured or configured.get("enabled") is False):
        listed = Reader(configured, reader.at("tool_configuration")).strings("allowed_tools")
        allowed = () if configured.get("enabled") is False else listed
        form["allowed_tools"] = "kept"
    return McpServer(
        label=label,
        url=reader.take("url", str),
        token=reader.take("authorization_token", str),
        allowed_tools=allowed,
        approval=NEVER,
        extra=reader.extra(NAME, **form),
    )


def encode_hosted_tool(tool: HostedTool, where: str, losses: Losses, *, home: bool) -> JSONObject | None:
    """Return the entry of a tool; `None` for a server that has none, and for a tool that the dialect lacks."""
    form = form_of(tool.extra, NAME)
    if form.get("type") == "bare":
        return None
    own: JSONObject = {"type": form.get("type", _VERSIONS.get(tool.kind, TOOLSET))}
    if tool.server is not None:
        own["mcp_server_name"] = tool.server.label
        own |= _selection(tool, tool.server)
    elif "name" not in form:
        own["name"] = _name_of(own["type"], tool.kind)
    written = _WRITTEN[tool.kind]
    if "max_uses" in written:
        with_said(own, max_uses=tool.max_uses, **_domains(tool, where, losses, home=home))
    if "location" in written and tool.location is not None:
        own["user_location"] = {"type": "approximate", **encode_location(tool.location, where, losses, NAME)}
    if tool.cache is not None:
        own["cache_control"] = encode_cache(tool.cache, where, losses, home=home)
    note_settings(tool, where, losses, *written)
    return with_rest(own, tool.extra, where, losses)


def _selection(tool: HostedTool, server: McpServer) -> JSONObject:
    """Return the fields that select tools of a server, unless those of the client are written again."""
    rest = tool.extra.fields if tool.extra is not None and tool.extra.dialect == NAME else {}
    if "configs" in rest or "default_config" in rest:
        return {}
    blocked = server.blocked_tools or ()
    if server.allowed_tools is not None and not form_of(server.extra, NAME).get("allowed_tools"):
        enabled = {name: _ON for name in server.allowed_tools if name not in blocked}
        return {"default_config": _OFF, "configs": enabled}
    return {"configs": dict.fromkeys(blocked, _OFF)} if blocked else {}


def _domains(tool: HostedTool, where: str, losses: Losses, *, home: bool) -> JSONObject:
    blocked = tool.blocked_domains
    if not home and tool.allowed_domains is not None and blocked is not None:
        losses.dropped(where, "blocked_domains", "not allowed together with `allowed_domains`")
        blocked = None
    return {"allowed_domains": _listed(tool.allowed_domains), "blocked_domains": _listed(blocked)}


def _listed(values: tuple[str, ...] | None) -> list[str] | None:
    return None if values is None else list(values)


def encode_servers(tools: Sequence[RequestTool], form: JSONObject, losses: Losses) -> JSONObject:
    """Return `mcp_servers`, in the field of its name.

    Raises:
        WireError: a call of a server's tool needs approval, for which the dialect has no request.
    """
    servers: dict[str, JSONObject] = {}
    for index, tool in enumerate(tools):
        server = tool.server if isinstance(tool, HostedTool) else None
        if server is None or (server.url is None and server.extra is None):
            continue
        where = f"$.tools[{index}]"
        if server.approval != NEVER:
            problem = "the model's server calls the tools of an MCP server without asking; set `never` to allow that"
            raise WireError(f"{where}.require_approval", problem)
        for name in ("description", "headers"):
            if getattr(server, name) is not None:
                losses.dropped(where, name, "a server of MCP has no such field")
        own: JSONObject = {"type": "url", "name": server.label}
        with_said(own, url=server.url, authorization_token=server.token)
        if form_of(server.extra, NAME).get("allowed_tools") is True and server.allowed_tools is not None:
            own["tool_configuration"] = {"allowed_tools": list(server.allowed_tools)}
        servers[server.label] = with_rest(own, server.extra, where, losses)
    order = form.get(SERVERS, ())
    if order == "empty" and not servers:
        return {SERVERS: []}
    places = {label: place for place, label in reversed([*enumerate(order)])}
    placed = sorted(servers, key=lambda label: places.get(label, len(order)))
    return {SERVERS: [servers[label] for label in placed]} if servers else {}
