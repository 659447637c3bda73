"""MCP servers in requests: the operator's alone, over their own protocol, by the official package's server."""

from __future__ import annotations

import asyncio
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
from xenoglot.gateway.tool_execution import mcp_connections
from xenoglot.gateway.tool_execution.mcp_connections import McpConnections
from xenoglot.gateway.tool_execution.service import open_tool_execution
from xenoglot.model.content import CodeOutput, Extra, HostedCall, HostedResult, Text, ToolCall
from xenoglot.model.fold import fold
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import Tool
from xenoglot.model.response import Response
from xenoglot.tools.mcp import servers as mcp
from xenoglot.tools.tool_output import ToolError, ToolOutput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from xenoglot.gateway.tool_execution.service import ToolExecution
    from xenoglot.model.json import JSONObject

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
        *(
            pytest.param(McpServer(label="docs", headers={name: "x"}), f"`{name}` cannot be set", id=name)
            for name in ("Host", "mcp-session-id", "Transfer-Encoding", "connection", "content-length")
        ),
    ],
)
async def test_what_is_refused(execution: ToolExecution, server: Http, named: McpServer, problem: str) -> None:
    server.shown.clear()
    with pytest.raises(WireError, match=problem):
        await answered_by(execution, tool_of(named), answer(Text(text="x")))
    assert server.shown == []


async def test_a_selection_that_is_not_understood_is_refused(execution: ToolExecution) -> None:
    """Without it the model could call all tools of the server."""
    extra = Extra(dialect="responses", fields={"allowed_tools": {"read_only": True}})
    tool = replace(tool_of(McpServer(label="docs")), extra=extra)
    with pytest.raises(WireError, match="cannot apply this selection") as raised:
        await answered_by(execution, tool, answer(Text(text="x")))
    assert raised.value.path == "$.tools[0].allowed_tools"


async def test_disabled_tools_are_not_offered(execution: ToolExecution) -> None:
    tool = tool_of(McpServer(label="docs", allowed_tools=("add", "shout"), blocked_tools=("shout", "fail")))
    _, call = await answered_by(execution, tool, answer(Text(text="x")))
    assert [one.name for one in call.requests[0].tools if isinstance(one, Tool)] == ["docs__add"]


async def test_the_servers_of_a_request_are_counted_before_any_is_opened(server: Http) -> None:
    """Each has a session of its own: many under one label, or without any tool, would be many sessions."""
    settings = HostedToolSettings(mcp=McpSettings(servers={"docs": McpServerSettings(url=server.url)}))
    bare = tool_of(McpServer(label="docs", token="t", allowed_tools=()))
    async with open_tool_execution(settings, Secrets({})) as execution:
        assert execution is not None
        server.shown.clear()
        call = ScriptedCall(replace(ASKED, tools=(bare,) * 9), answer(Text(text="x")))
        with pytest.raises(WireError, match="found 9 MCP servers"):
            await execution.answer(call, execution.kinds(call.request), call.ask)
    assert server.shown == []


async def test_what_is_not_applied_is_reported(execution: ToolExecution) -> None:
    named = McpServer(label="docs", description="Sums", extra=Extra(dialect="messages", fields={"x": 1}))
    tool = replace(
        tool_of(named), extra=Extra(dialect="messages", fields={"configs": {"add": {"defer_loading": True}}})
    )
    _, call = await answered_by(execution, tool, answer(Text(text="x")))
    assert [(loss.where, loss.what, loss.how) for loss in call.losses] == [
        ("$.tools[0]", "mcp", "emulated"),
        ("$.tools[0]", "configs", "dropped"),
        ("$.tools[0]", "x", "dropped"),
        ("$.tools[0]", "description", "dropped"),
    ]


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


class ScriptedSession:
    """A session on which the tool `wait` lasts until it is released, and any other fails."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = asyncio.Event()
        self.closed = 0

    async def call(self, name: str, _: JSONObject, __: object) -> ToolOutput:
        """Call a tool."""
        if name != "wait":
            raise ToolError("refused")
        self.waiting.set()
        await self.release.wait()
        return ToolOutput(content=(Text(text="done"),))

    def close(self) -> None:
        """Note it."""
        self.closed += 1


async def test_a_call_that_fails_ends_no_call_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients share the session of a server. A failed call has the next one open another; who waits gets an answer."""
    sessions = [ScriptedSession(), ScriptedSession()]
    unopened = iter(sessions)

    async def opened(*_: object) -> ScriptedSession:
        return next(unopened)

    monkeypatch.setattr(mcp_connections, "_opened", opened)
    connections = McpConnections({"docs": mcp.McpServer(url="http://127.0.0.1:9")}, 1.0)
    other = asyncio.create_task(connections.call("docs", "wait", {}))
    await sessions[0].waiting.wait()
    with pytest.raises(ToolError):
        await connections.call("docs", "fail", {})
    assert sessions[0].closed == 0
    again = asyncio.create_task(connections.call("docs", "wait", {}))
    sessions[0].release.set()
    assert (await other).content == (Text(text="done"),)
    assert sessions[0].closed == 1
    await sessions[1].waiting.wait()
    sessions[1].release.set()
    assert (await again).content == (Text(text="done"),)
    assert sessions[1].closed == 0
