"""Execution of hosted tools: which requests it concerns, and what runs their calls."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.gateway.config.tools.settings import CodeSettings, PageSettings, SearchSettings
from xenoglot.gateway.tool_execution.executor import CheckedExecutor, McpExecutor, McpToolEntry, PythonExecutor
from xenoglot.gateway.tool_execution.mcp_connections import McpConnections
from xenoglot.gateway.tool_execution.page_fetch import PageExecutor
from xenoglot.gateway.tool_execution.request_tools import ExecutionServices, RequestTools
from xenoglot.gateway.tool_execution.rounds import ToolRounds
from xenoglot.gateway.tool_execution.web_search import SearchExecutor
from xenoglot.model.hosted import HostedTool
from xenoglot.tools.mcp.servers import McpServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from xenoglot.backends.backend import Answer
    from xenoglot.gateway.config.file_permissions import Secrets
    from xenoglot.gateway.config.tools.settings import HostedToolSettings
    from xenoglot.gateway.tool_execution.executor import Executor
    from xenoglot.gateway.tool_execution.rounds import RoundCall
    from xenoglot.model.content import HostedKind
    from xenoglot.model.request import Request


class ToolExecution:
    """Executes the hosted tools of requests."""

    def __init__(
        self,
        settings: HostedToolSettings,
        executors: Mapping[str, Executor],
        connections: McpConnections | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.executors = executors
        self.connections = connections
        self.calls: Counter[tuple[str, str]] = Counter()
        """Executed calls by kind and outcome."""
        self._kinds = cast("frozenset[HostedKind]", settings.kinds)
        self._services = ExecutionServices(settings, executors, connections, self._count, clock)

    def kinds(self, request: Request) -> frozenset[HostedKind]:
        """Return the kinds of tools of a request that can be executed here."""
        found = {tool.kind for tool in request.tools if type(tool) is HostedTool}
        return self._kinds.intersection(found)

    async def answer(
        self, call: RoundCall, kinds: frozenset[HostedKind], ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Return the answer to a call as it begins, all rounds as one; `ask` gives the first.

        Tools of these `kinds` are executed here.

        Raises:
            FailureError: there is none. `WireError` and `LossError` alike.
        """
        return await ToolRounds(RequestTools(self._services, call.request, kinds), call).begin(ask)

    async def listed(self, name: str) -> str:
        """Return, for an operator, how many tools an MCP server has.

        Raises:
            ConfigurationError: it cannot be reached.
        """
        if self.connections is None:
            raise ConfigurationError(f"tools.mcp.servers: no server `{name}`")
        return f"{len(await self.connections.names(name))} tools"

    def _count(self, kind: str, outcome: str) -> None:
        self.calls[kind, outcome] += 1

    async def aclose(self) -> None:
        """Close all connections."""
        for executor in self.executors.values():
            await executor.aclose()
        if self.connections is not None:
            await self.connections.aclose()


@asynccontextmanager
async def open_tool_execution(
    settings: HostedToolSettings | None, secrets: Secrets
) -> AsyncGenerator[ToolExecution | None]:
    """Give what executes hosted tools; `None` where nothing is configured.

    Raises:
        ConfigurationError: a function cannot be loaded, or the extra for MCP is not installed.
    """
    if settings is None or not settings.kinds:
        yield None
        return
    if settings.mcp.servers:
        if importlib.util.find_spec("mcp") is None:
            raise ConfigurationError(missing_extra("mcp"))
        await asyncio.to_thread(importlib.import_module, "mcp")  # it takes a second
    execution = tool_execution(settings, secrets)
    try:
        yield execution
    finally:
        await execution.aclose()


def tool_execution(settings: HostedToolSettings, secrets: Secrets) -> ToolExecution:
    """Return what executes the tools of `settings`.

    Raises:
        ConfigurationError: a function cannot be loaded.
    """
    servers = {
        name: McpServer(url=one.url, headers=_headers(one.headers, one.key_env, secrets))
        for name, one in settings.mcp.servers.items()
    }
    connections = McpConnections(servers, settings.call_seconds) if servers else None
    executors = {kind: _executor(kind, one, settings, secrets, connections) for kind, one in settings.executors.items()}
    return ToolExecution(settings, executors, connections)


def _headers(headers: Mapping[str, str], variable: str | None, secrets: Secrets) -> dict[str, str]:
    key = {} if variable is None else {"Authorization": f"Bearer {secrets[variable]}"}
    return {**headers, **key}


def _executor(
    kind: str,
    one: SearchSettings | PageSettings | CodeSettings,
    settings: HostedToolSettings,
    secrets: Secrets,
    connections: McpConnections | None,
) -> Executor:
    most = one.max_results if isinstance(one, SearchSettings) else 1
    known = isinstance(one, PageSettings) and one.known_urls
    if one.executor == "python":
        return CheckedExecutor(kind, PythonExecutor(kind, one.use or "", most), known_urls=known)
    if one.executor == "mcp" and connections is not None:
        entry = McpToolEntry(one.server or "", one.tool or "", one.argument)
        return CheckedExecutor(kind, McpExecutor(kind, connections, entry, most), known_urls=known)
    if isinstance(one, SearchSettings):
        key = "" if one.key_env is None else secrets[one.key_env]
        return SearchExecutor(one, key, settings.call_seconds)
    if isinstance(one, PageSettings):
        return PageExecutor(one, settings.call_seconds, settings.max_bytes)
    raise ConfigurationError(f"tools.{kind}.executor: `{one.executor}` needs a server under [tools.mcp.servers]")
