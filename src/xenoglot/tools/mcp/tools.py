"""Tools of MCP servers as tools for a model.

    async with mcp_tools(["mcp-server-git"]) as tools:
        result = await client.run("What changed last?", tools=tools)

Theory of operation. The sessions run on an event loop in a thread of their own, so the tools can be called from any
loop, from threads and without one; a server that dies affects no other. No server is started because a request names
it: only those in the program or its configuration file are.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TextIO, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct

from xenoglot.codec.requests.names import fit
from xenoglot.errors import ConfigurationError
from xenoglot.model.request import Tool
from xenoglot.model.short_repr import described
from xenoglot.signatures import defaults_of, show_options
from xenoglot.tools.mcp.servers import McpServer, checked, read_servers
from xenoglot.tools.mcp.session import McpSession
from xenoglot.tools.tool import LocalTool
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from concurrent.futures import Future

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.tools.context import ToolContext

__all__ = ["McpServer", "McpTools", "mcp_tools"]

T = TypeVar("T")

LONGEST_NAME: Final = 64
"""Characters of a tool's name that every model accepts."""

TIME_LIMIT: Final = 120.0
"""Default seconds for a call."""

TIMEOUT: Final = 30.0
"""Default seconds for a server to start or connect, and to list its tools."""

LIST, READ = "mcp_list_resources", "mcp_read_resource"


class McpOptions(TypedDict, total=False):
    """Keyword options of `mcp_tools`: one server, or several; and those of all tools."""

    url: str | None
    name: str | None
    env: Mapping[str, str] | None
    cwd: str | None
    headers: Mapping[str, str] | None
    servers: Mapping[str, McpServer] | None
    file: str | Path | None
    needs_approval: bool
    time_limit: float | None
    patience: float
    log: TextIO | None


class _McpSettings(Struct, frozen=True, kw_only=True):
    url: str | None = None
    name: str | None = None
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    headers: Mapping[str, str] | None = None
    servers: Mapping[str, McpServer] | None = None
    file: str | Path | None = None
    needs_approval: bool = False
    time_limit: float | None = TIME_LIMIT
    patience: float = TIMEOUT
    log: TextIO | None = None


@show_options(McpOptions, defaults_of(_McpSettings))
def mcp_tools(command: Sequence[str] | None = None, **options: Unpack[McpOptions]) -> McpTools:
    """Return the tools of one or several MCP servers. It needs the extra `mcp`.

    Enter the result with `with` or `async with`; then it is a sequence of tools for `Client.run`. If a server has
    resources, two more tools list and read them.

    Args:
        command: The program of a server and its arguments. A started server gets `HOME`, `PATH` and a few other
            variables of this process, and `env`.

    Keyword Args:
        url: The URL of a running server, instead of `command`.
        name: The server's name. Tools of a named server are called `name__tool`, at most 64 characters.
        env: Environment variables of a started server.
        cwd: The working directory of a started server.
        headers: Header fields of each request to `url`, for example with a token.
        servers: Further servers by name.
        file: A JSON file with further servers, of the form `{"mcpServers": {...}}`.
        needs_approval: Whether each call needs approval. Default: `False`.
        time_limit: Seconds for one call. `None` is no limit. Default: `120.0`.
        patience: Seconds for a server to start or connect, and to list its tools. Default: `30.0`.
        log: A file for the standard error of started servers. `None` discards it.

    Returns:
        The tools, a sequence that changes when a server reports changed tools.

    Raises:
        ConfigurationError: No server is named, or the file is unreadable. On entry: a server does not answer.
        TypeError: An option has an unknown name.

    Example:
        >>> import xenoglot
        >>> tools = xenoglot.mcp_tools(["mcp-server-git", "--repository", "."], name="git")
        >>> tools  # the server starts in `with tools:`
        McpTools(servers=('git',))
    """
    settings = _McpSettings(**options)
    named = dict(settings.servers or {})
    if settings.file is not None:
        named |= read_servers(settings.file)
    if command is not None or settings.url is not None:
        words = list(command or ())
        one = McpServer(
            command=words[0] if words else None,
            args=tuple(words[1:]),
            env=dict(settings.env or {}),
            cwd=settings.cwd,
            url=settings.url,
            headers=dict(settings.headers or {}),
        )
        named[settings.name or ""] = one
    if not named and settings.file is None:
        raise ConfigurationError("mcp_tools: name a server by its command, its `url`, `servers` or a `file`")
    for called, server in named.items():
        checked(server, f"mcp_tools: the server `{called}`" if called else "mcp_tools")
    return McpTools(
        named,
        needs_approval=settings.needs_approval,
        time_limit=settings.time_limit,
        patience=settings.patience,
        log=settings.log,
    )


class McpTools(Sequence[LocalTool]):
    """The tools of MCP servers while it is entered; see `mcp_tools`. It changes when a server reports changed tools."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        needs_approval: bool,
        time_limit: float | None,
        patience: float,
        log: TextIO | None,
    ) -> None:
        self._servers = dict(servers)
        self._needs_approval = needs_approval
        self._time_limit = time_limit
        self._timeout = patience
        self._log = log
        self._thread: _LoopThread | None = None
        self._sessions: Sequence[McpSession] = ()
        self._listed: tuple[object, ...] = ()
        self._tools: tuple[LocalTool, ...] = ()

    @property
    def instructions(self) -> dict[str, str]:
        """The servers' instructions for use, by name; they are untrusted text."""
        return {session.name: session.instructions for session in self._sessions if session.instructions}

    def __repr__(self) -> str:
        return described(self, servers=tuple(self._servers), tools=tuple(tool.spec.name for tool in self._current()))

    @overload
    def __getitem__(self, index: int) -> LocalTool: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LocalTool]: ...

    def __getitem__(self, index: int | slice) -> LocalTool | Sequence[LocalTool]:
        """Return a tool, or several."""
        return self._current()[index]

    def __len__(self) -> int:
        """Return the current number of tools."""
        return len(self._current())

    def __enter__(self) -> Self:
        """Open the conversations.

        Raises:
            ConfigurationError: a server cannot be started or reached.
        """
        try:
            self._start().result()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close them; servers that were started end."""
        self.close()

    async def __aenter__(self) -> Self:
        """Open the conversations; see `__enter__`."""
        try:
            await asyncio.wrap_future(self._start())
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self.aclose()

    def close(self) -> None:
        """Close the conversations; servers that were started end."""
        thread, self._thread, self._sessions = self._thread, None, ()
        if thread is not None:
            thread.stop()

    async def aclose(self) -> None:
        """Close the sessions without blocking the event loop."""
        closing = asyncio.ensure_future(asyncio.to_thread(self.close))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing
            raise

    def call(self, asked: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run a coroutine function on the loop of the sessions.

        Raises:
            ToolError: the sessions are closed.
        """
        if self._thread is None:
            raise ToolError("the conversations with MCP servers are closed")
        return self._thread.submit(asked)

    def of(self, server: str | None) -> Sequence[McpSession]:
        """Return the sessions with servers that have resources: all, or the named one.

        Raises:
            ToolError: no such server.
        """
        having = [session for session in self._sessions if session.has_resources]
        found = [session for session in having if server is None or session.name == server]
        if not found:
            names = ", ".join(f"`{session.name}`" for session in having if session.name)
            raise ToolError(f"no MCP server `{server}` has resources{f'; these have: {names}' if names else ''}")
        return found

    def _start(self) -> Future[None]:
        if self._thread is not None:
            raise ConfigurationError("mcp_tools: it is entered already")
        self._thread = _LoopThread()
        return self._thread.submit(self._open)

    async def _open(self) -> None:
        """Open all sessions in parallel; each in a task of its own, which also closes it."""
        thread = self._thread
        if thread is None:
            return
        sessions = [McpSession(name, one, self._timeout, self._log) for name, one in self._servers.items()]
        for session in sessions:
            thread.register(session.start(), session.close)
        results = await asyncio.gather(*(session.opened for session in sessions), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        self._sessions = sessions

    def _current(self) -> Sequence[LocalTool]:
        """Return the tools; those that are still the same are the same objects."""
        listed = tuple(session.tools for session in self._sessions)
        if len(listed) != len(self._listed) or any(a is not b for a, b in zip(listed, self._listed, strict=True)):
            self._listed, self._tools = listed, tuple(self._build_tools())
        return self._tools

    def _build_tools(self) -> Iterator[LocalTool]:
        taken: set[str] = set()
        if any(session.has_resources for session in self._sessions):
            taken |= {LIST, READ}
            yield self._settled(_ListResources(self))
            yield self._settled(_ReadResource(self))
        for session in self._sessions:
            for tool in session.tools:
                name = _name(session.name, tool.name, taken)
                taken.add(name)
                spec = Tool(name=name, description=tool.description, parameters=tool.schema)
                yield self._settled(_McpTool(self, session, tool.name, spec))

    def _settled(self, tool: LocalTool) -> LocalTool:
        tool.needs_approval, tool.time_limit = self._needs_approval, self._time_limit
        return tool


class _McpTool(LocalTool):
    """A tool of a server."""

    asynchronous = True

    def __init__(self, tools: McpTools, session: McpSession, name: str, spec: Tool) -> None:
        self.spec = spec
        self._tools = tools
        self._session = session
        self._name = name

    def run(self, arguments: JSONObject, context: ToolContext) -> object:
        """Have the server run it."""
        asked = self._tools.call(lambda: self._session.call(self._name, arguments, context.progress))
        return asyncio.wrap_future(asked)


class _ListResources(LocalTool):
    """The tool that lists resources."""

    asynchronous = True
    spec = Tool(
        name=LIST,
        description="List the resources of the MCP servers: documents and data that can be read by their URI.",
        parameters={
            "type": "object",
            "properties": {"server": {"type": "string", "description": "Only those of this server"}},
        },
    )

    def __init__(self, tools: McpTools) -> None:
        self._tools = tools

    def run(self, arguments: JSONObject, context: ToolContext) -> object:  # noqa: ARG002  as every tool
        """List them."""
        sessions = self._tools.of(_text_argument(arguments, "server"))

        async def listed() -> list[JSON]:
            return [
                ({"server": session.name} if session.name else {}) | one
                for session in sessions
                for one in await session.resources()
            ]

        return asyncio.wrap_future(self._tools.call(listed))


class _ReadResource(LocalTool):
    """The tool that reads a resource."""

    asynchronous = True
    spec = Tool(
        name=READ,
        description="Read a resource of an MCP server by its URI.",
        parameters={
            "type": "object",
            "properties": {
                "uri": {"type": "string", "description": "The URI, as it is listed"},
                "server": {"type": "string", "description": "The server that has it, where there are several"},
            },
            "required": ["uri"],
        },
    )

    def __init__(self, tools: McpTools) -> None:
        self._tools = tools

    def check(self, arguments: JSONObject) -> None:
        """Check that there is a URI."""
        if not _text_argument(arguments, "uri"):
            raise ToolError("`uri`: required, a text")

    def run(self, arguments: JSONObject, context: ToolContext) -> object:  # noqa: ARG002  as every tool
        """Read a resource; of several servers, from the first that has it."""
        sessions = self._tools.of(_text_argument(arguments, "server"))
        uri = _text_argument(arguments, "uri") or ""

        async def read() -> object:
            for session in sessions[:-1]:
                try:
                    return await session.read(uri)
                except ToolError:
                    continue
            return await sessions[-1].read(uri)

        return asyncio.wrap_future(self._tools.call(read))


class _LoopThread:
    """An event loop in a thread, and the tasks to end before it stops."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._registered: list[tuple[asyncio.Task[None], Callable[[], None]]] = []
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="xenoglot-mcp", daemon=True)
        self._thread.start()
        self._started.wait()

    def submit(self, asked: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Have a coroutine run there."""
        if self._loop is None or self._loop.is_closed():
            raise ToolError("the conversations with MCP servers are closed")
        return asyncio.run_coroutine_threadsafe(asked(), self._loop)

    def register(self, task: asyncio.Task[None], close: Callable[[], None]) -> None:
        """Have `close` called at the end, and `task` waited for."""
        self._registered.append((task, close))

    def stop(self) -> None:
        """End, when all tasks have."""
        if self._loop is not None and self._ending is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        self._started.set()
        await self._ending.wait()
        for _, close in self._registered:
            close()
        if self._registered:
            await asyncio.gather(*(task for task, _ in self._registered), return_exceptions=True)


def _name(server: str, tool: str, taken: set[str]) -> str:
    """Return the name of a tool: the server's name, then its own, shortened and unique."""
    full = f"{server}__{tool}" if server else tool
    name = fit(full, LONGEST_NAME)
    again = 0
    while name in taken:
        again += 1
        name = fit(f"{full}#{again}", LONGEST_NAME)
    return name


def _text_argument(arguments: JSONObject, name: str) -> str | None:
    value = arguments.get(name)
    return value if isinstance(value, str) and value else None
