"""Connections to MCP servers: those of the operator, kept while the gateway runs, and those of one request.

A request may only name a server that the operator allows, by its URL. With headers or a token of its own it gets a
connection of its own, which ends with it; else it shares the operator's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.tools.mcp.servers import McpServer
from xenoglot.tools.mcp.session import McpSession
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.tools.mcp.session import McpTool
    from xenoglot.tools.tool_output import ToolOutput


class McpConnections:
    """Connections to the operator's `servers` by name, each opened when it is first needed, within `seconds`."""

    def __init__(self, servers: Mapping[str, McpServer], seconds: float) -> None:
        self._servers = servers
        self._seconds = seconds
        self._open: dict[str, asyncio.Task[McpSession]] = {}
        self._calls: Counter[McpSession] = Counter()
        """The calls that are being made on each session."""

    def named(self, url: str | None, label: str) -> str | None:
        """Return the name of the operator's server with this URL, without one with this label; `None` for no other."""
        if url is None:
            return label if label in self._servers else None
        return next((name for name, one in self._servers.items() if _same(one.url or "", url)), None)

    async def session(self, name: str) -> McpSession:
        """Return the session with a server of the operator; one that is being opened is waited for.

        Raises:
            ToolError: it cannot be opened.
        """
        opening = self._open.get(name)
        if opening is None or (opening.done() and _opened_by(opening) is None):
            opening = self._open[name] = asyncio.create_task(_opened(name, self._servers[name], self._seconds))
        return await asyncio.shield(opening)

    async def own(self, name: str, headers: Mapping[str, str]) -> McpSession:
        """Return a new session with a server of the operator and more headers; the caller closes it.

        Raises:
            ToolError: it cannot be opened.
        """
        server = self._servers[name]
        merged = {field.lower(): value for one in (headers, server.headers) for field, value in one.items()}
        return await _opened(name, McpServer(url=server.url, headers=merged), self._seconds)

    async def tools(self, name: str) -> Sequence[McpTool]:
        """Return the tools of a server. `ToolError` as `session`."""
        return (await self.session(name)).tools

    async def names(self, name: str) -> list[str]:
        """Return the names of the tools of a server, for an operator.

        Raises:
            ConfigurationError: it cannot be reached.
        """
        try:
            return [tool.name for tool in await self.tools(name)]
        except ToolError as error:
            raise ConfigurationError(str(error)) from None

    async def call(self, name: str, tool: str, arguments: JSONObject) -> ToolOutput:
        """Call a tool of a server; after a failure the next call opens a new session.

        The other calls on the session continue: they may be those of other clients.

        Raises:
            ToolError: it failed.
        """
        session = await self.session(name)
        self._calls[session] += 1
        try:
            return await session.call(tool, arguments, _ignore)
        except ToolError:
            if self._is_current(name, session):
                del self._open[name]
            raise
        finally:
            self._calls[session] -= 1
            if not self._calls[session]:
                del self._calls[session]
                if not self._is_current(name, session):
                    session.close()

    async def aclose(self) -> None:
        """Close all sessions."""
        for session in [*self._calls]:
            await session.aclose()
        for opening in [*self._open.values()]:
            opened = _opened_by(opening)
            if opened is None:
                opening.cancel()
            else:
                await opened.aclose()
        self._open.clear()

    def _is_current(self, name: str, session: McpSession) -> bool:
        """Return whether the next call is made on this session."""
        opening = self._open.get(name)
        return opening is not None and _opened_by(opening) is session


def _opened_by(opening: asyncio.Task[McpSession]) -> McpSession | None:
    """Return the session that was opened; `None` as long as it is being opened, and where that failed."""
    done = opening.done() and not opening.cancelled() and opening.exception() is None
    return opening.result() if done else None


def _ignore(_: str) -> None:
    """Ignore the progress of a call."""


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


async def _opened(name: str, server: McpServer, seconds: float) -> McpSession:
    session = McpSession(name, server, seconds, None)
    task = session.start()
    try:
        await session.opened
    except ConfigurationError as error:
        raise ToolError(str(error)) from None
    except asyncio.CancelledError:
        task.cancel()
        raise
    return session
