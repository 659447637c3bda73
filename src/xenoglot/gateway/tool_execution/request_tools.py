"""The hosted tools of one request that are executed here: functions towards the model, and their calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.requests.names import fit
from xenoglot.errors import WireError
from xenoglot.gateway.config.tools.settings import HostedToolSettings
from xenoglot.gateway.tool_execution.executor import FUNCTIONS, Executor, ToolUse, mcp_outcome
from xenoglot.gateway.tool_execution.mcp_connections import McpConnections
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed, shortened
from xenoglot.model.content import HostedResult, SearchResult, Text, ToolResult
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import Tool, ToolChoice
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import HostedContent, HostedKind, Opaque
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Message, Request
    from xenoglot.tools.mcp.session import McpSession, McpTool
    from xenoglot.tools.tool_output import ToolOutput

LONGEST_NAME: Final = 64
MOST_SERVERS: Final = 8
"""MCP servers of one request."""
MOST_FUNCTIONS: Final = 256
"""Tools of all MCP servers of one request."""

_SETTINGS: Final = ("location", "context_size")
"""Settings of tools that no executor takes."""

_SELECTION: Final = "allowed_tools"
"""A field that selects tools of a server; a filter that only its own dialect understands is refused."""

_OWN_HEADERS: Final = frozenset(
    {"connection", "content-length", "content-type", "expect", "host", "keep-alive", "te", "trailer", "upgrade"}
)
"""Headers that a request cannot set: they are those of the connection. So are all of the protocol's own."""
_OWN_PREFIXES: Final = ("mcp-", "proxy-", "transfer-")

Run: TypeAlias = Callable[[ToolUse], Awaitable[ToolOutcome]]


class HostedFunction(Struct, frozen=True):
    """A function of the model's whose calls are executed here: `name` and `server` are those of a tool of MCP."""

    tool: HostedTool
    definition: Tool
    run: Run
    name: str | None = None
    server: str | None = None

    @property
    def kind(self) -> HostedKind:
        """The kind of the tool."""
        return self.tool.kind


class ExecutionServices(Struct, frozen=True):
    """What executes calls: an executor for each kind, connections to MCP servers, limits, a counter, and a clock."""

    settings: HostedToolSettings
    executors: Mapping[str, Executor]
    connections: McpConnections | None
    count: Callable[[str, str], None]
    clock: Callable[[], float]


class RequestTools:
    """The executed tools of one request, and what is left of its limits."""

    def __init__(self, services: ExecutionServices, request: Request, kinds: frozenset[HostedKind]) -> None:
        self.functions: dict[str, HostedFunction] = {}
        self.sources: list[SearchResult] = []
        """All results so far: the first has the number 1."""
        self._services = services
        self._request = request
        self._kinds = kinds
        self._uses: Counter[str] = Counter()
        self._seconds = services.settings.seconds
        self._sessions: list[McpSession] = []
        self._executed_tools: list[tuple[str, HostedTool]] = []

    @property
    def exhausted(self) -> bool:
        """Whether no further call is executed."""
        return self._uses.total() >= self._services.settings.max_calls or self._seconds <= 0

    @property
    def most_rounds(self) -> int:
        """How many rounds there may be after the first."""
        return self._services.settings.max_calls + 1

    @property
    def max_tokens(self) -> int:
        """How many tokens all rounds may have."""
        return self._services.settings.max_tokens

    async def prepare(self) -> Request:
        """Return the request with functions in place of its executed tools.

        Raises:
            WireError: it names an MCP server that may not be used, or cannot be.
        """
        request = self._request
        servers = sum(isinstance(tool, HostedTool) and tool.server is not None for tool in request.tools)
        if servers > MOST_SERVERS:
            raise WireError("$.tools", f"found {servers} MCP servers; the gateway connects to {MOST_SERVERS} at most")
        if (request.sampling.n or 1) > 1:
            raise WireError("$.n", "with tools that the gateway runs, one answer at a time can be requested")
        taken = {tool.name for tool in request.tools if isinstance(tool, Tool)}
        tools: list[Tool | HostedTool | Opaque] = []
        for index, tool in enumerate(request.tools):
            if not isinstance(tool, HostedTool) or tool.kind not in self._kinds:
                tools.append(tool)
                continue
            for function in await self._functions_of(tool, f"$.tools[{index}]"):
                name = _unique(function.definition.name, taken)
                taken.add(name)
                definition = replace(function.definition, name=name, cache=tool.cache)
                self.functions[name] = replace(function, definition=definition)
                tools.append(definition)
            self._executed_tools.append((f"$.tools[{index}]", tool))
        if len(self.functions) > MOST_FUNCTIONS:
            raise WireError("$.tools", f"the MCP servers have more than {MOST_FUNCTIONS} tools: set the allowed ones")
        return replace(request, tools=tuple(tools), tool_choice=self._choice(request.tool_choice))

    def note_losses(self, losses: Losses) -> None:
        """Report that tools are executed here, and their settings that have no effect."""
        for where, tool in self._executed_tools:
            losses.emulated(where, tool.kind, "the target does not run it: the gateway does")
            for name in _SETTINGS:
                if getattr(tool, name) is not None:
                    losses.dropped(where, name, "the gateway's tool has no such setting")
            losses.carry(tool.extra, where, "")
            if tool.server is not None:
                losses.carry(tool.server.extra, where, "")
                if tool.server.description is not None:
                    losses.dropped(where, "description", "the model sees the descriptions of the server's tools")

    def start(self, name: str, arguments: str) -> asyncio.Task[ToolOutcome]:
        """Begin to execute a call."""
        return asyncio.create_task(self._execute(self.functions[name], arguments))

    def context(self) -> str:
        """Return all texts of the conversation and of results so far, but not those that the model wrote.

        A page could have it write a URL with what it knows in one turn, and fetch that in the next.
        """
        found = [*_texts(self._request.messages)]
        found += [f"{one.url}\n{one.text or ''}" for one in self.sources]
        return "\n".join(found)

    async def aclose(self) -> None:
        """Close the sessions of the request."""
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.aclose()

    def _choice(self, choice: ToolChoice | None) -> ToolChoice | None:
        """Return the choice in names of functions; a tool of the request is chosen by its kind."""
        if choice is None or not choice.names:
            return choice
        kinds: dict[str, str] = {
            function.kind: name for name, function in self.functions.items() if function.name is None
        }
        return replace(choice, names=tuple(kinds.get(name, name) for name in choice.names))

    async def _functions_of(self, tool: HostedTool, where: str) -> Sequence[HostedFunction]:
        executor = self._services.executors.get(tool.kind)
        if executor is None:
            return await self._of_server(tool, where)
        if any(function.kind == tool.kind for function in self.functions.values()):
            return ()  # two versions of one tool
        return (HostedFunction(tool, FUNCTIONS[tool.kind], executor.run),)

    async def _of_server(self, tool: HostedTool, where: str) -> Sequence[HostedFunction]:
        server, connections = tool.server, self._services.connections
        name = None if server is None or connections is None else connections.named(server.url, server.label)
        if server is None or connections is None or name is None:
            problem = "the gateway does not connect to this MCP server; its URL has to be under `[tools.mcp.servers]`"
            raise WireError(where, problem)
        if server.approval not in (None, "never"):
            raise WireError(where, "the gateway cannot ask for approval of calls: set `require_approval` to `never`")
        if tool.extra is not None and tool.extra.fields.get(_SELECTION) is not None:
            problem = "the gateway cannot apply this selection of tools: list the names of the allowed ones"
            raise WireError(f"{where}.{_SELECTION}", problem)
        headers = _headers(server, where)
        try:
            session = await (connections.own(name, headers) if headers else connections.session(name))
        except ToolError:
            raise WireError(where, "the MCP server cannot be reached") from None
        if headers:
            self._sessions.append(session)
        allowed, blocked = server.allowed_tools, server.blocked_tools or ()
        listed = [one for one in session.tools if (allowed is None or one.name in allowed) and one.name not in blocked]
        return [
            _mcp_function(tool, one, server.label, self._caller(name, session, one, own=bool(headers)))
            for one in listed
        ]

    def _caller(self, name: str, session: McpSession, tool: McpTool, *, own: bool) -> Run:
        connections = self._services.connections

        async def run(use: ToolUse) -> ToolOutcome:
            try:
                return mcp_outcome(await _call(use.arguments))
            except ToolError:
                return failed("unavailable", "the MCP server failed")

        async def _call(arguments: JSONObject) -> ToolOutput:
            if own or connections is None:
                return await session.call(tool.name, arguments, _no_progress)
            return await connections.call(name, tool.name, arguments)

        return run

    async def _execute(self, function: HostedFunction, arguments: str) -> ToolOutcome:
        settings = self._services.settings
        outcome = self._refusal(function)
        if outcome is None:
            self._uses[function.kind] += 1
            outcome = await self._executed(function, arguments)
        self._services.count(function.kind, outcome.error or "ok")
        return shortened(outcome, settings.max_bytes)

    def _refusal(self, function: HostedFunction) -> ToolOutcome | None:
        most = function.tool.max_uses
        if self.exhausted or (most is not None and self._uses[function.kind] >= most):
            return failed("max_uses_exceeded", "no more calls are allowed: answer with what you have")
        return None

    async def _executed(self, function: HostedFunction, arguments: str) -> ToolOutcome:
        try:
            decoded = decode_json(arguments.encode() or b"{}")
        except WireError:
            decoded = None
        if not isinstance(decoded, dict):
            return failed("invalid_tool_input", "the arguments are not a JSON object")
        seconds = min(self._services.settings.call_seconds, self._seconds)
        started = self._services.clock()
        try:
            async with asyncio.timeout(seconds):
                return await function.run(ToolUse(decoded, function.tool, self.context))
        except TimeoutError:
            word = "execution_time_exceeded" if function.kind == "code_execution" else "unavailable"
            return failed(word, f"no result within {seconds:g} seconds")
        except Exception as error:  # noqa: BLE001  whatever an executor raises: the model is told, and goes on
            return failed("unavailable", f"the tool failed: {type(error).__name__}")
        finally:
            self._seconds -= self._services.clock() - started


def _headers(server: McpServer, where: str) -> dict[str, str]:
    """Return the headers that a request has for a server.

    Raises:
        WireError: one of them is the connection's or the protocol's own.
    """
    headers = dict(server.headers or {})
    for name in headers:
        if name.lower() in _OWN_HEADERS or name.lower().startswith(_OWN_PREFIXES):
            raise WireError(f"{where}.headers", f"`{name}` cannot be set: leave it out")
    if server.token is not None:
        headers["authorization"] = f"Bearer {server.token}"
    return headers


def _mcp_function(tool: HostedTool, listed: McpTool, label: str, run: Run) -> HostedFunction:
    name = fit(f"{label}__{listed.name}", LONGEST_NAME)
    definition = Tool(name=name, description=listed.description, parameters=listed.schema)
    return HostedFunction(tool, definition, run, listed.name, label)


def _unique(name: str, taken: set[str]) -> str:
    """Return the name, changed where a function of the client has it."""
    found, again = name, 1
    while found in taken:
        again += 1
        found = fit(f"{name}_{again}", LONGEST_NAME)
    return found


def _no_progress(_: str) -> None:
    """Ignore the progress of a call."""


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        written = message.role == "assistant"
        yield from _texts_of([part for part in message.content if not (written and isinstance(part, Text))])


def _texts_of(parts: Sequence[HostedContent]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text=text):
                yield text
            case SearchResult():
                yield f"{part.url}\n{part.text or ''}"
            case ToolResult(content=inner) | HostedResult(content=inner):
                yield from _texts_of(inner)
            case _:
                pass
