"""`[tools]`: executors, their limits, the MCP servers that clients may name, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import Config, check

if TYPE_CHECKING:
    from xenoglot.gateway.config.tools.settings import HostedToolSettings
    from xenoglot.model.json import JSONObject

UPSTREAM: JSONObject = {"upstreams": {"up": {"dialect": "chat", "base_url": "http://127.0.0.1:1/v1"}}}
SEARXNG: JSONObject = {"executor": "searxng", "url": "http://127.0.0.1:8888/search"}


def config_of(tools: JSONObject) -> Config:
    return check({**UPSTREAM, "tools": tools}, {"KEY": "secret-of-search"}, "the tests")


def settings_of(tools: JSONObject) -> HostedToolSettings:
    found = config_of(tools).tools
    assert found is not None
    return found


def test_nothing_is_run_by_default() -> None:
    assert check(UPSTREAM, {}, "the tests").tools is None
    assert settings_of({}).kinds == frozenset()


def test_the_kinds_that_are_run_are_those_with_an_executor() -> None:
    tools = {"web_search": SEARXNG, "web_fetch": {}, "mcp": {"servers": {"docs": {"url": "http://127.0.0.1:1/mcp"}}}}
    assert settings_of(tools).kinds == {"web_search", "web_fetch", "mcp"}


def test_a_key_stands_in_the_environment() -> None:
    tools: JSONObject = {
        "web_search": {"executor": "brave", "key_env": "KEY"},
        "mcp": {"servers": {"docs": {"url": "https://mcp.example/mcp", "key_env": "KEY"}}},
    }
    config = config_of(tools)
    assert config.secrets["KEY"] == "secret-of-search"
    assert "secret-of-search" not in repr(config)


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        pytest.param({"max_calls": 0}, "tools.max_calls: found 0", id="no-call"),
        pytest.param({"web_search": {"executor": "google"}}, "tools.web_search.executor: found", id="unknown-executor"),
        pytest.param({"web_search": {"executor": "searxng"}}, "tools.web_search.url: required", id="no-address"),
        pytest.param(
            {"web_search": {**SEARXNG, "url": "ftp://a"}}, "tools.web_search.url: found", id="address-of-another-kind"
        ),
        pytest.param({"web_search": {"executor": "tavily"}}, "tools.web_search.key_env: required", id="no-key"),
        pytest.param(
            {"web_search": {"executor": "url", "url": "https://a.example/?q={q}"}},
            "tools.web_search.url: expected `{query}`",
            id="placeholder",
        ),
        pytest.param(
            {"web_search": {"executor": "brave", "key_env": "OTHER"}}, 'environment variable "OTHER"', id="key-not-set"
        ),
        pytest.param({"web_search": {"executor": "python"}}, "tools.web_search.use: required", id="no-function"),
        pytest.param(
            {"code_execution": {"executor": "mcp", "tool": "run"}},
            "tools.code_execution.server: expected a name under [tools.mcp.servers] (none is configured)",
            id="no-server",
        ),
        pytest.param(
            {"mcp": {"servers": {"docs": {"url": "https://key@mcp.example"}}}},
            "tools.mcp.servers.docs.url: holds a user or password",
            id="password-in-a-url",
        ),
        pytest.param(
            {"mcp": {"servers": {"docs": {"url": "https://mcp.example", "headers": {"Authorization": "x"}}}}},
            "tools.mcp.servers.docs.headers.Authorization: a key does not stand in the file",
            id="key-in-the-file",
        ),
        pytest.param(
            {"mcp": {"servers": {"a b": {"url": "https://mcp.example"}}}}, 'tools.mcp.servers."a b": found', id="name"
        ),
    ],
)
def test_mistakes_name_their_place(tools: JSONObject, problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        config_of(tools)
    assert problem in str(raised.value)
