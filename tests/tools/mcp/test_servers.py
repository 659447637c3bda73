"""Files of MCP servers, as everybody writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.tools.mcp.servers import LONGEST_FILE, McpServer, read_servers, servers_of
from xenoglot.tools.mcp.tools import mcp_tools

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.model.json import JSON

SAID = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "${TOKEN}"}, "autoApprove": ["read"]},
        "far": {
            "type": "http",
            "url": "https://${HOST:-a.example}/mcp",
            "headers": {"Authorization": "Bearer ${env:TOKEN}"},
        },
        "off": {"command": "x", "disabled": True},
    },
    "inputs": [],
}
READ = {
    "files": McpServer(command="npx", args=("-y", "files"), env={"TOKEN": "t"}),
    "far": McpServer(type="http", url="https://a.example/mcp", headers={"Authorization": "Bearer t"}),
}


@pytest.mark.parametrize("table", ["mcpServers", "servers"])
def test_servers_are_read_and_variables_put_in(table: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({table: SAID["mcpServers"]}))
    assert read_servers(file, {"TOKEN": "t"}) == READ
    assert read_servers(file, {"TOKEN": "t", "HOST": "b.example"})["far"].url == "https://b.example/mcp"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        pytest.param([], 'f: expected an object with "mcpServers"', id="list"),
        pytest.param({}, 'f: expected an object with "mcpServers"', id="nothing"),
        pytest.param({"mcpServers": []}, 'f: expected an object with "mcpServers"', id="list-of-servers"),
        pytest.param({"mcpServers": {"a": 1}}, "f: mcpServers.a: Expected `object`", id="number"),
        pytest.param({"mcpServers": {"a": {}}}, "f: mcpServers.a: expected either `command` or `url`", id="neither"),
        pytest.param({"mcpServers": {"a": {"command": 1}}}, "f: mcpServers.a: Expected `str", id="type"),
        pytest.param({"mcpServers": {"a": {"url": "ws://b"}}}, "f: mcpServers.a.url: expected a URL", id="scheme"),
        pytest.param(
            {"mcpServers": {"a": {"type": "sse", "url": "http://b"}}}, 'f: mcpServers.a.type: found "sse"', id="sse"
        ),
        pytest.param(
            {"mcpServers": {"a": {"command": "b", "env": {"C": "${D}"}}}},
            "f: mcpServers.a: the environment variable `D` is not set",
            id="unset",
        ),
    ],
)
def test_what_is_no_such_file(said: JSON, problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        servers_of(said, "f", {})
    assert str(error.value).startswith(problem)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{")
    with pytest.raises(ConfigurationError, match="json`: "):
        read_servers(tmp_path / "no.json")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        mcp_tools(file=tmp_path / "none.json")
    (tmp_path / "large.json").write_text(" " * (LONGEST_FILE + 1))
    with pytest.raises(ConfigurationError, match="is larger than"):
        read_servers(tmp_path / "large.json")


def test_a_file_without_servers_gives_no_tools(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"mcpServers": {}}')
    with mcp_tools(file=tmp_path / "none.json") as tools:
        assert list(tools) == []
