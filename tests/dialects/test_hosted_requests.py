"""A tool that the provider runs is the same tool in every dialect that has it (wire-D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot import translate_request
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

PLACE: JSONObject = {"type": "approximate", "city": "Oslo", "country": "NO", "timezone": "Europe/Oslo"}
SERVER: JSONObject = {"type": "url", "name": "s", "url": "https://mcp.example", "authorization_token": "t"}
MCP: JSONObject = {
    "type": "mcp",
    "server_label": "s",
    "server_url": "https://mcp.example",
    "authorization": "t",
    "require_approval": "never",
}


def messages(*tools: JSONObject, **fields: JSON) -> JSONObject:
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
        **({"tools": [*tools]} if tools else {}),
        **fields,
    }


def responses(*tools: JSONObject, **fields: JSON) -> JSONObject:
    return {"model": "m", "input": [{"role": "user", "content": "Hi"}], "tools": [*tools], **fields}


CHAT_BODY: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def toolset(**selection: JSON) -> JSONObject:
    """Return the tools of a server, of which some are selected."""
    return {"type": "mcp_toolset", "mcp_server_name": "s", **selection}


ON: JSONObject = {"enabled": True}
OFF: JSONObject = {"enabled": False}
LATER: JSONObject = {"defer_loading": True}
SELECTIONS: tuple[tuple[JSONObject, tuple[str, ...] | None, tuple[str, ...] | None], ...] = (
    ({"default_config": OFF, "configs": {"f": ON}}, ("f",), None),
    ({"default_config": OFF}, (), None),
    ({"default_config": {**OFF, **LATER}, "configs": {"f": {**ON, **LATER}, "g": LATER}}, ("f",), None),
    ({"configs": {"f": OFF}}, None, ("f",)),
    ({"default_config": LATER, "configs": {"f": OFF, "g": LATER}}, None, ("f",)),
    ({"default_config": ON, "configs": {"f": OFF}}, None, ("f",)),
    ({"default_config": LATER}, None, None),
)
"""Selections of tools, with the names of those that are allowed or blocked by them."""

HOME: list[tuple[str, JSONObject]] = [
    (
        "messages",
        messages(
            {
                "type": "web_search_20260318",
                "name": "web_search",
                "allowed_domains": ["a.example"],
                "blocked_domains": None,
                "max_uses": 3,
                "user_location": {**PLACE, "street": "x"},
                "cache_control": {"type": "ephemeral"},
                "response_inclusion": "excluded",
            },
            {
                "type": "web_fetch_20250910",
                "name": "web_fetch",
                "max_content_tokens": 5,
                "citations": {"enabled": True},
            },
            {"type": "code_execution_20250825", "name": "code_execution"},
            {"type": "advisor_20260301", "name": "advisor", "model": "m"},
            {"type": "web_search_new", "name": "web_search"},
        ),
    ),
    ("messages", messages(mcp_servers=[])),
    ("messages", messages(mcp_servers=[{**SERVER, "tool_configuration": {"allowed_tools": ["f"]}}])),
    ("messages", messages(mcp_servers=[{**SERVER, "tool_configuration": {"enabled": True, "allowed_tools": ["f"]}}])),
    (
        "messages",
        messages(
            {"type": "mcp_toolset", "mcp_server_name": "u"},
            {
                "type": "mcp_toolset",
                "mcp_server_name": "s",
                "default_config": {"enabled": False},
                "configs": {"f": {"enabled": True}},
            },
            mcp_servers=[SERVER, {"type": "url", "name": "u", "url": "v"}],
        ),
    ),
    (
        "messages",
        messages(
            {"type": "mcp_toolset", "mcp_server_name": "s", "configs": {"f": {"defer_loading": True}}},
            mcp_servers=[SERVER],
        ),
    ),
    *(("messages", messages(toolset(**selection), mcp_servers=[SERVER])) for selection, _, _ in SELECTIONS),
    (
        "messages",
        messages(mcp_servers=[{**SERVER, "tool_configuration": {"enabled": False, "allowed_tools": ["f"]}}]),
    ),
    ("chat", {**CHAT_BODY, "web_search_options": {}}),
    ("chat", {**CHAT_BODY, "web_search_options": {"user_location": {"type": "exact"}, "x": 1}}),
    (
        "responses",
        responses(
            {
                "type": "web_search_2025_08_26",
                "filters": {"allowed_domains": ["a.example"], "x": 1},
                "user_location": PLACE,
                "search_context_size": "low",
                "external_web_access": False,
            },
            {"type": "web_search_preview", "user_location": None, "filters": None},
            {"type": "web_search", "filters": {}},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "code_interpreter", "container": "cntr_1"},
            {
                **MCP,
                "headers": {"x": "y"},
                "allowed_tools": ["f"],
                "require_approval": {"never": {"tool_names": ["f"]}},
            },
            {"type": "mcp", "server_label": "s", "connector_id": "c", "allowed_tools": {"read_only": True}},
            {**MCP, "allowed_tools": {"tool_names": ["f"]}},
            {"type": "file_search", "vector_store_ids": ["vs_1"]},
            {"type": "image_generation", "size": "1024x1024"},
        ),
    ),
]


@pytest.mark.parametrize(("dialect", "body"), HOME)
def test_at_home_a_tool_is_as_it_came(dialect: str, body: JSONObject) -> None:
    losses = Losses()
    codec = get(dialect)
    assert codec.encode_request(codec.decode_request(body), losses, Target()) == body
    assert [*losses] == []


@pytest.mark.parametrize(("selection", "allowed", "blocked"), SELECTIONS)
def test_a_selection_of_tools_is_read(
    selection: JSONObject, allowed: tuple[str, ...] | None, blocked: tuple[str, ...] | None
) -> None:
    """Also one that has more fields: these stay with the request, but no disabled tool is called."""
    request = get("messages").decode_request(messages(toolset(**selection), mcp_servers=[SERVER]))
    (tool,) = request.tools
    assert isinstance(tool, HostedTool)
    assert tool.server is not None
    assert (tool.server.allowed_tools, tool.server.blocked_tools) == (allowed, blocked)


NEAR: JSONObject = {"type": "approximate", "approximate": {"city": "Oslo", "country": "NO"}}


def test_the_search_of_chat_crosses() -> None:
    """`web_search_options` are the search of a model that always searches, or of a server that does it for any."""
    body: JSONObject = {**CHAT_BODY, "web_search_options": {"search_context_size": "low", "user_location": NEAR}}
    place: JSONObject = {"type": "approximate", "city": "Oslo", "country": "NO"}
    tool: JSONObject = {"type": "web_search", "user_location": place, "search_context_size": "low"}
    losses = Losses()
    assert translate_request(body, "chat", "chat", losses) == body
    assert translate_request(body, "chat", "responses", losses)["tools"] == [tool]
    searching = Target(hosted_tools=("web_search",))
    written = translate_request(responses(tool), "responses", "chat", losses, searching)
    assert written["web_search_options"] == body["web_search_options"]
    assert "tools" not in written
    assert [loss for loss in losses if loss.where.startswith("$.tools")] == []
    with pytest.raises(WireError, match="cannot run `web_search`"):
        translate_request(body, "chat", "ollama")


CROSSINGS: dict[str, tuple[str, str, JSONObject, JSONObject]] = {
    "search": (
        "messages",
        "responses",
        messages(
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "allowed_domains": ["a.example"],
                "user_location": PLACE,
            }
        ),
        {"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "user_location": PLACE}]},
    ),
    "search-back": (
        "responses",
        "messages",
        responses({"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "user_location": PLACE}),
        {
            "tools": [
                {
                    "type": "web_search_20250305",
                    "name": "web_search",
                    "allowed_domains": ["a.example"],
                    "user_location": PLACE,
                }
            ]
        },
    ),
    "fetch": (
        "messages",
        "responses",
        messages({"type": "web_fetch_20250910", "name": "web_fetch"}),
        {"tools": [{"type": "web_search"}]},
    ),
    "search-and-fetch": (
        "messages",
        "responses",
        messages(
            {"type": "web_search_20250305", "name": "web_search"}, {"type": "web_fetch_20250910", "name": "web_fetch"}
        ),
        {"tools": [{"type": "web_search"}]},
    ),
    "code": (
        "messages",
        "responses",
        messages({"type": "code_execution_20250825", "name": "code_execution"}),
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    ),
    "code-back": (
        "responses",
        "messages",
        responses({"type": "code_interpreter", "container": {"type": "auto"}}),
        {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
    ),
    "mcp": (
        "messages",
        "responses",
        messages({"type": "mcp_toolset", "mcp_server_name": "s"}, mcp_servers=[SERVER]),
        {"tools": [MCP]},
    ),
    "mcp-back": (
        "responses",
        "messages",
        responses({**MCP, "allowed_tools": ["f"]}),
        {
            "tools": [
                {
                    "type": "mcp_toolset",
                    "mcp_server_name": "s",
                    "default_config": {"enabled": False},
                    "configs": {"f": {"enabled": True}},
                }
            ],
            "mcp_servers": [SERVER],
        },
    ),
}


@pytest.mark.parametrize("name", CROSSINGS)
def test_a_tool_crosses(name: str) -> None:
    source, target, body, wanted = CROSSINGS[name]
    losses = Losses()
    written = translate_request(body, source, target, losses)
    assert {key: written[key] for key in ("tools", "mcp_servers") if key in written} == wanted
    assert [loss for loss in losses if loss.how == "dropped" and loss.where.startswith("$.tools")] == []


def test_settings_without_a_place_are_told() -> None:
    losses = Losses()
    search: JSONObject = {
        "type": "web_search_20250305",
        "name": "web_search",
        "blocked_domains": ["b.example"],
        "max_uses": 3,
    }
    translate_request(messages(search), "messages", "responses", losses)
    assert {loss.what for loss in losses if loss.where == "$.tools[0]"} == {"blocked_domains", "max_uses"}


def test_a_server_whose_calls_need_consent_is_refused_where_nobody_asks() -> None:
    for approval in ("always", None):
        tool = {key: value for key, value in (MCP | {"require_approval": approval}).items() if value is not None}
        with pytest.raises(WireError, match="without asking") as caught:
            translate_request(responses(tool), "responses", "messages")
        assert caught.value.path == "$.tools[0].require_approval"


def test_alone_a_tool_that_nobody_runs_is_refused() -> None:
    """pitfall-30: an answer without a search would pass for one with it."""
    search: JSONObject = {"type": "web_search"}
    with pytest.raises(WireError, match="cannot run `web_search`"):
        translate_request(responses(search), "responses", "chat")
    losses = Losses()
    function: JSONObject = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    written = translate_request(responses(search, function), "responses", "chat", losses)
    assert len(written["tools"]) == 1
    assert [(loss.what, loss.how) for loss in losses if loss.where == "$.tools[0]"] == [("web_search", "dropped")]


def test_facts_about_a_server_decide_what_it_runs() -> None:
    body = responses({"type": "web_search"})
    with pytest.raises(WireError, match="cannot run `web_search`"):
        translate_request(body, "responses", "messages", server=Target(hosted_tools=()))


def test_a_token_is_in_no_repr() -> None:
    request = get("messages").decode_request(messages(mcp_servers=[SERVER | {"authorization_token": "SECRET"}]))
    (tool,) = request.tools
    assert isinstance(tool, HostedTool)
    assert "SECRET" not in repr(tool) + repr(request.tools)
