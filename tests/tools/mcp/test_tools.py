"""MCP servers as tools, against real ones: over the pipes of a process, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import mcp
import pytest
import uvicorn

from tests.architecture.tree import ROOT
from tests.tools.mcp_server import LONG, PNG, served
from xenoglot.backends.scripted import Scripted
from xenoglot.client.sync import Client
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.process.serve import bind
from xenoglot.model.content import Audio, File, Image, Inline, Text, ToolCall, ToolResult
from xenoglot.model.request import Tool
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.tools.context import ToolContext
from xenoglot.tools.mcp.servers import McpServer
from xenoglot.tools.mcp.tools import LIST, READ, mcp_tools
from xenoglot.tools.tool_output import ToolError, ToolOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from xenoglot.model.json import JSON
    from xenoglot.tools.mcp.tools import McpTools
    from xenoglot.tools.tool import LocalTool

SERVER = [sys.executable, "-m", "tests.tools.mcp_server"]
PATIENCE = 120.0


def tool(tools: McpTools, name: str) -> LocalTool:
    """Return the tool of that name."""
    return next(one for one in tools if one.spec.name == name)


async def call(tools: McpTools, name: str, tell: Callable[[str], None] | None = None, **arguments: JSON) -> Any:  # noqa: ANN401  what it gives
    """Call a tool as a loop does."""
    context = ToolContext(ToolCall(id="call_1", name=name), tell=tell)
    result: Any = tool(tools, name).run(arguments, context)
    return await result


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another process is to do."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  it is told by another thread, or process
            await asyncio.sleep(0.01)


class Http:
    """A server over HTTP, in a thread; `shown` are the headers that it was sent."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        app = served().streamable_http_app()

        async def noting(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401  as ASGI has it
            if scope["type"] == "http":
                self.shown.append({name.decode(): value.decode() for name, value in scope["headers"]})
            await app(scope, receive, send)

        self._listener = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        self._server = uvicorn.Server(uvicorn.Config(noting, log_level="critical", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]})
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


@pytest.fixture
def http() -> Iterator[Http]:
    server = Http()
    yield server
    server.stop()


def words(output: ToolOutput) -> str:
    """Return what an output says."""
    return "".join(part.text for part in output.content if isinstance(part, Text))


async def test_a_server_that_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tools, their schemas and all that they can give; what it can see; its resources."""
    monkeypatch.setenv("SECRET_OF_MINE", "sk-mine")
    with (tmp_path / "log").open("w") as log:
        async with mcp_tools(SERVER, cwd=str(ROOT), env={"GIVEN": "1"}, name="my", log=log, time_limit=9) as tools:
            names = [one.spec.name for one in tools]
            assert names[:4] == [LIST, READ, "my__shout", "my__add"]
            assert {one.time_limit for one in tools} == {9}
            assert tools.instructions == {"my": "Add before you shout."}
            add = tool(tools, "my__add").spec
            assert add.description == "Add two numbers."
            assert isinstance(add.parameters, dict)
            assert add.parameters["properties"]["a"] == {"title": "A", "type": "integer"}
            await call_all(tools, next(name for name in names if name.startswith("my__a_tool")))
            await read_resources(tools)
    assert "no such thing" in (tmp_path / "log").read_text()


async def call_all(tools: McpTools, shortened: str) -> None:
    """Call each of the tools."""
    added = await call(tools, "my__add", a=1, b=2)
    assert (json.loads(words(added)), added.data, added.is_error) == ({"total": 3}, {"total": 3}, False)
    assert await call(tools, "my__everything") == EVERYTHING
    failed = await call(tools, "my__fail")
    assert (words(failed), failed.is_error) == ("Error executing tool fail", True)
    wrong = await call(tools, "my__add", a="x")
    assert wrong.is_error
    seen = words(await call(tools, "my__variables"))
    assert "GIVEN=1" in seen
    assert "SECRET_OF_MINE" not in seen
    assert words(await call(tools, shortened, text="a")) == "A"


EVERYTHING = ToolOutput(
    content=(
        Text(text="words"),
        Image(source=Inline(PNG, "image/png")),
        Audio(source=Inline(PNG, "audio/mpeg"), format="mp3"),
        Text(text="a note"),
        File(source=Inline(PNG, "application/pdf"), name="b.pdf"),
        Text(text="[resource note://c: c, text/plain]"),
    )
)


async def read_resources(tools: McpTools) -> None:
    """List and read the resources (c-s6)."""
    listed = await call(tools, LIST)
    assert [one.get("uri", one.get("uriTemplate")) for one in listed] == ["note://hello", "note://of/{name}"]
    assert {one["server"] for one in listed} == {"my"}
    assert words(await call(tools, READ, uri="note://hello")) == "Hello from a resource."
    assert words(await call(tools, READ, uri="note://of/Ann", server="my")) == "A note of Ann."
    with pytest.raises(ToolError, match="the MCP server `my`: Unknown resource"):
        await call(tools, READ, uri="note://nowhere")
    with pytest.raises(ToolError, match="no MCP server `other` has resources; these have: `my`"):
        await call(tools, READ, uri="note://hello", server="other")
    with pytest.raises(ToolError, match="`uri`: required"):
        tool(tools, READ).check({})


async def test_a_call_that_nobody_waits_for_is_cancelled_and_a_server_that_dies_is_told(tmp_path: Path) -> None:
    marker, told = tmp_path / "marker", list[str]()
    async with mcp_tools(SERVER, cwd=str(ROOT)) as tools:
        waiting = asyncio.ensure_future(call(tools, "slow", tell=told.append, marker=str(marker)))
        await until(lambda: bool(told))
        assert told == ["1/2 half"]
        waiting.cancel()
        await until(marker.exists)
        for _ in range(2):  # in the middle of a call, and ever after
            with pytest.raises(ToolError, match="the MCP server: Connection closed"):
                await call(tools, "die")
    with pytest.raises(ToolError, match="are closed"):
        await asyncio.wrap_future(tools.call(lambda: asyncio.sleep(0)))
    assert list(tools) == []


def test_tools_may_change_and_need_no_loop(http: Http) -> None:
    """`with` does as well; a server that has another tool says so, and is heard."""
    with mcp_tools(url=http.url, headers={"X-Mine": "yes"}, needs_approval=True) as tools:
        assert {one.needs_approval for one in tools} == {True}
        before = list(tools)
        assert words(asyncio.run(call(tools, "shout", text="a"))) == "A"
        asyncio.run(call(tools, "grow"))
        asyncio.run(until(lambda: any(one.spec.name == "grown" for one in tools)))
        assert words(asyncio.run(call(tools, "grown", text="b"))) == "B"
        assert len(tools) == len(before) + 1
        assert list(tools[:2]) == list(tools)[:2]
    assert {head.get("x-mine") for head in http.shown} == {"yes"}


async def test_a_server_of_an_earlier_revision_tells_without_being_asked(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "Client", partial(mcp.Client, mode="legacy"))
    async with mcp_tools(url=http.url) as tools:
        await call(tools, "grow")
        await until(lambda: any(one.spec.name == "grown" for one in tools))


async def test_a_server_over_http_that_goes_away() -> None:
    server = Http()
    async with mcp_tools(url=server.url) as tools:
        server.stop()
        with pytest.raises(ToolError, match="the MCP server: "):
            await call(tools, "shout", text="a")


def test_a_model_calls_them(http: Http) -> None:
    """End to end, in the loop: what the model asks for is what the server did, pictures and errors included."""
    calls = (("add", '{"a": 1, "b": 2}'), ("everything", "{}"), ("fail", "{}"))
    content = tuple(ToolCall(id=f"call_{name}", name=name, arguments=arguments) for name, arguments in calls)
    turns = (
        Response(candidates=(Candidate(content=content, finish=Finish(reason="tool_calls")),)),
        Response(candidates=(Candidate(content=(Text(text="Three."),), finish=Finish(reason="stop")),)),
    )
    backend = Scripted(*turns)
    with Client(backend) as client, mcp_tools(url=http.url) as tools:
        result = client.run("What is 1 + 2?", tools)
    assert (result.outcome, result.text, result.calls) == ("answered", "Three.", 3)
    first, second = backend.requests
    assert {tool.name for tool in first.tools if isinstance(tool, Tool)} >= {"add", "everything", READ}
    answers = [part for message in second.messages for part in message.content if isinstance(part, ToolResult)]
    assert [one.call_id for one in answers] == ["call_add", "call_everything", "call_fail"]
    assert answers[1].content == EVERYTHING.content
    assert [one.is_error for one in answers] == [None, None, True]


async def test_several_servers_and_names_that_meet(http: Http) -> None:
    one = McpServer(url=http.url)
    long = "server-" * 9
    async with mcp_tools(servers={"a b": one, "a_b": one, f"{long}1": one, f"{long}2": one}) as tools:
        names = [each.spec.name for each in tools]
        assert len(set(names)) == len(names) == 2 + 4 * 9
        assert [name for name in names if len(name) > 64] == []
        assert LONG not in names


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        pytest.param(["/no/such/program"], "the MCP server `x` cannot be reached: No such file", id="missing"),
        pytest.param([sys.executable, "-c", ""], "the MCP server `x` does not answer: ", id="ends"),
        pytest.param([sys.executable, "-c", "print('hello'); input()"], "`x` does not answer: ", id="speaks-otherwise"),
    ],
)
async def test_a_server_that_does_not_answer(command: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        async with mcp_tools(command, name="x", patience=120):
            pytest.fail("it is there")


async def test_nobody_at_the_url() -> None:
    with pytest.raises(ConfigurationError, match="the MCP server does not answer: "):
        async with mcp_tools(url="http://127.0.0.1:9/mcp?key=sk-secret", patience=120):
            pytest.fail("it is there")


def test_what_names_no_server() -> None:
    with pytest.raises(ConfigurationError, match="name a server by its command"):
        mcp_tools()
    with pytest.raises(ConfigurationError, match="expected either `command` or `url`"):
        mcp_tools(["a"], url="http://b")
    with pytest.raises(ConfigurationError, match="a URL that begins with"):
        mcp_tools(url="file:///etc/passwd")
