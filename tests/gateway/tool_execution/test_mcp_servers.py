"""MCP servers in requests: the operator's alone, over their own protocol, by the official package's server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.tool_execution.test_rounds import ASKED, ScriptedCall, answer
from tests.tools.mcp.test_tools import Http
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.tools.settings import (
    CodeSettings,
    HostedToolSettings,
    McpServerSettings,
    McpSettings,
    SearchSettings,
)
from xenoglot.gateway.tool_execution.service import open_tool_execution
from xenoglot.model.content import CodeOutput, HostedCall, HostedResult, Text, ToolCall
from xenoglot.model.fold import fold
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import Tool
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from xenoglot.gateway.tool_execution.service import ToolExecution

KEY = "key-of-the-operator"


@pytest.fixture(scope="module")
def server() -> Iterator[Http]:
    """Give an MCP server."""
    running = Http()
    yield running
    running.stop()


@pytest.fixture
async def execution(server: Http) -> AsyncGenerator[ToolExecution]:
    """Give what executes tools, with that server."""
    settings = HostedToolSettings(mcp=McpSettings(servers={"docs": McpServerSettings(url=server.url, key_env="KEY")}))
    async with open_tool_execution(settings, Secrets({"KEY": KEY})) as opened:
        assert opened is not None
        yield opened


def tool_of(server: McpServer) -> HostedTool:
    """Return the tool that a request has for a server."""
    return HostedTool(kind="mcp", server=server)


async def answered_by(execution: ToolExecution, tool: HostedTool, *answers: Response) -> tuple[Response, ScriptedCall]:
    """Return the folded answer to a request with one tool, and the call."""
    call = ScriptedCall(replace(ASKED, tools=(tool,)), *answers)
    answered = await execution.answer(call, execution.kinds(call.request), call.ask)
    events = [event async for batch in answered.batches for event in batch]  # type: ignore[union-attr]
    await answered.aclose()
    folded = fold(events)
    assert isinstance(folded, Response)
    return folded, call


async def test_a_server_of_the_operator_is_called(execution: ToolExecution, server: Http) -> None:
    tool = tool_of(McpServer(label="sums", url=server.url + "/", allowed_tools=("add",), approval="never"))
    add = ToolCall(id="c1", name="sums__add", arguments='{"a":2,"b":3}')
    response, call = await answered_by(execution, tool, answer(add, reason="tool_calls"), answer(Text(text="5")))
    called, result, _ = response.candidates[0].content
    assert called == HostedCall(id="c1", kind="mcp", name="add", server="sums", arguments='{"a":2,"b":3}')
    assert isinstance(result, HostedResult)
    assert (result.kind, result.name, result.error) == ("mcp", "add", None)
    assert '"total": 5' in "".join(part.text for part in result.content if isinstance(part, Text))
    assert [one.name for one in call.requests[0].tools if isinstance(one, Tool)] == ["sums__add"]
    assert {head.get("authorization") for head in server.shown} == {f"Bearer {KEY}"}


async def test_a_failed_tool_is_an_error(execution: ToolExecution, server: Http) -> None:
    tool = tool_of(McpServer(label="docs", url=server.url))
    fail = ToolCall(id="c1", name="docs__fail", arguments="{}")
    response, _ = await answered_by(execution, tool, answer(fail, reason="tool_calls"), answer(Text(text="no")))
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert result.error == "tool_error"


async def test_a_token_of_the_client_is_sent_on_a_session_of_its_own(server: Http) -> None:
    settings = HostedToolSettings(mcp=McpSettings(servers={"docs": McpServerSettings(url=server.url)}))
    async with open_tool_execution(settings, Secrets({})) as execution:
        assert execution is not None
        server.shown.clear()
        tool = tool_of(McpServer(label="docs", url=server.url, token="of-the-client"))
        shout = ToolCall(id="c1", name="docs__shout", arguments='{"text":"hi"}')
        response, _ = await answered_by(execution, tool, answer(shout, reason="tool_calls"), answer(Text(text="HI")))
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert result.content == (Text(text="HI"),)
    assert {head.get("authorization") for head in server.shown} == {"Bearer of-the-client"}


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        pytest.param(
            McpServer(label="docs", url="https://other.example/mcp"), r"\[tools.mcp.servers\]", id="other-url"
        ),
        pytest.param(McpServer(label="other"), r"\[tools.mcp.servers\]", id="other-label"),
        pytest.param(McpServer(label="docs", approval="always"), "require_approval", id="approval"),
    ],
)
async def test_what_is_refused(execution: ToolExecution, named: McpServer, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        await answered_by(execution, tool_of(named), answer(Text(text="x")))


async def test_a_server_that_cannot_be_reached_refuses_the_request() -> None:
    servers = {"docs": McpServerSettings(url="http://127.0.0.1:9/mcp")}
    async with open_tool_execution(HostedToolSettings(mcp=McpSettings(servers=servers)), Secrets({})) as execution:
        assert execution is not None
        with pytest.raises(WireError, match="cannot be reached") as raised:
            await answered_by(execution, tool_of(McpServer(label="docs")), answer(Text(text="x")))
    assert "127.0.0.1" not in str(raised.value)


async def test_a_tool_of_a_server_is_an_executor(server: Http) -> None:
    settings = HostedToolSettings(
        code_execution=CodeSettings(executor="mcp", server="docs", tool="shout", argument="text"),
        web_search=SearchSettings(executor="mcp", server="docs", tool="no_such_tool"),
        mcp=McpSettings(servers={"docs": McpServerSettings(url=server.url)}),
    )
    async with open_tool_execution(settings, Secrets({})) as execution:
        assert execution is not None
        code = ToolCall(id="c1", name="code_execution", arguments='{"code":"print(1)"}')
        tool = HostedTool(kind="code_execution")
        response, _ = await answered_by(execution, tool, answer(code, reason="tool_calls"), answer(Text(text="ok")))
        assert await execution.executors["code_execution"].check() == "docs: shout"
        with pytest.raises(ConfigurationError, match="has no tool `no_such_tool`"):
            await execution.executors["web_search"].check()
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert result.content == (CodeOutput(stdout="PRINT(1)", exit_code=0),)
