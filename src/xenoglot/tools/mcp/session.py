"""Session with one MCP server: opened, listed, called and closed on one event loop."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.model.json import JSONObject
from xenoglot.tools.mcp.results import output_of, resource_output
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import TextIO

    from mcp import Client

    from xenoglot.tools.mcp.servers import McpServer
    from xenoglot.tools.tool_output import ToolOutput

MOST_PAGES: Final = 100
MOST_ROWS: Final = 5_000
"""Most tools, or resources, that are listed of one server."""

UNBOUNDED: Final = 86_400.0
"""Seconds for a call: the caller has a limit of its own, and cancels."""

LONGEST_REASON: Final = 500
"""Most characters of a server's error text."""

CHANGED: Final = "notifications/tools/list_changed"

_AUTH_STATUSES: Final = {401: "it asks for a key", 403: "it does not take the key"}
_DISCARD: Final = logging.NullHandler()
"""Without configured logging, the package's logs (with servers' output) stay off the terminal."""


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool as the server lists it; `schema` is unchanged."""

    name: str
    description: str | None
    schema: JSONObject


class McpSession:
    """Session with one server. `serve` is its task; everything else is called on the same loop meanwhile."""

    def __init__(self, name: str, server: McpServer, patience: float, log: TextIO | None) -> None:
        self.name = name
        self.tools: Sequence[McpTool] = ()
        self.has_resources = False
        self.instructions: str | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.title = f"the MCP server `{name}`" if name else "the MCP server"
        self._server = server
        self._timeout = patience
        self._log = log
        self._client: Client | None = None
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._status = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Start and return the task that runs `serve`."""
        self._task = asyncio.create_task(self.serve())
        return self._task

    async def serve(self) -> None:
        """Open the session, set `opened`, and close it on request. An error while opening is set in `opened`."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._timeout):
                    client = await self._open(stack)
                    await self._list(client)
                self.has_resources = await _has_resources(client)
                self._client = client
                if not self.opened.done():
                    self.opened.set_result(None)
                await self._attend(client)
        except asyncio.CancelledError:
            self.opened.cancel()
            raise
        except ConfigurationError as error:
            if not self.opened.done():
                self.opened.set_exception(error)
        except Exception as error:  # noqa: BLE001  of servers and their transports: whatever they raise
            if not self.opened.done():
                self.opened.set_exception(ConfigurationError(f"{self.title} {self._unopened(error)}"))
        finally:
            self._client = None

    def close(self) -> None:
        """End `serve`; at once if the session is still being opened."""
        self._closing.set()
        if self._task is not None and self._client is None:
            self._task.cancel()

    async def aclose(self) -> None:
        """Close, and wait until the session is closed."""
        self.close()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def call(self, name: str, arguments: JSONObject, tell: Callable[[str], None]) -> ToolOutput:
        """Call a tool.

        Raises:
            ToolError: the server refused, disconnected, or returned an invalid result.
        """

        async def told(progress: float, total: float | None, message: str | None) -> None:
            tell(_progress(progress, total, message))

        client = self._connected()
        called = client.call_tool(name, arguments, read_timeout_seconds=UNBOUNDED, progress_callback=told)
        return output_of(_plain(await self._answered(called)))

    async def resources(self) -> Sequence[JSONObject]:
        """Return the server's resources and resource templates.

        Raises:
            ToolError: see `call`.
        """
        client = self._connected()
        listed = await self._answered(_pages(client.list_resources, "resources"))
        with suppress(ToolError):  # few servers have any
            listed += await self._answered(_pages(client.list_resource_templates, "resource_templates"))
        return [_plain(one) for one in listed]

    async def read(self, uri: str) -> ToolOutput:
        """Return the content of a resource.

        Raises:
            ToolError: see `call`.
        """
        return resource_output(_plain(await self._answered(self._connected().read_resource(uri))))

    async def _open(self, stack: AsyncExitStack) -> Client:
        try:
            from mcp import Client  # noqa: PLC0415  an extra, and it takes a second
        except ModuleNotFoundError:
            raise ConfigurationError(missing_extra("mcp")) from None

        logging.getLogger("mcp").addHandler(_DISCARD)
        client = Client(
            await self._transport(stack),
            read_timeout_seconds=self._timeout,
            message_handler=self._on_message,
            cache=None,
        )
        await stack.enter_async_context(client)
        self.instructions = client.instructions
        return client

    async def _transport(self, stack: AsyncExitStack) -> Any:  # noqa: ANN401  the package's own
        from mcp import StdioServerParameters, stdio_client  # noqa: PLC0415  as above
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  as above
        from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: PLC0415  it is in no other place

        server = self._server
        if server.url is not None:
            http = await stack.enter_async_context(create_mcp_http_client(headers=dict(server.headers)))
            http.event_hooks = {"response": [self._on_response]}
            return streamable_http_client(server.url, http_client=http)
        log = self._log
        if log is None:
            log = stack.enter_context(_nowhere())
        started = StdioServerParameters(
            command=server.command or "", args=list(server.args), env=server.env or None, cwd=server.cwd
        )
        return stdio_client(started, errlog=log)

    async def _attend(self, client: Client) -> None:
        """Wait until the session is closed, and handle reports of changes until then."""
        tasks = [asyncio.create_task(self._listen(client)), asyncio.create_task(self._follow(client))]
        try:
            await self._closing.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes on servers that require it (since the revision of 2026-07-28)."""
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  as above

        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with suppress(MCPError, RuntimeError, TimeoutError):  # an older server tells without being asked
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._changed.set()

    async def _on_message(self, message: object) -> None:
        if getattr(message, "method", None) == CHANGED:
            self._changed.set()

    async def _follow(self, client: Client) -> None:
        """List the tools again after a change: once, however many changes were reported meanwhile."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(Exception):  # what there was is kept
                async with asyncio.timeout(self._timeout):
                    await self._list(client)

    async def _list(self, client: Client) -> None:
        if client.server_capabilities.tools is None:
            return
        listed = await _pages(client.list_tools, "tools")
        named: dict[str, McpTool] = {}
        for tool in listed:  # a call says no more than a name: of several it means the first
            described = tool.description or tool.title
            named.setdefault(tool.name, McpTool(name=tool.name, description=described, schema=tool.input_schema))
        self.tools = tuple(named.values())

    def _connected(self) -> Client:
        if self._client is None:
            raise ToolError(f"{self.title} is gone")
        return self._client

    async def _answered(self, asked: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401  a result of the package
        """Return the answer; any error becomes a one-line `ToolError`."""
        try:
            return await asked
        except Exception as error:
            raise ToolError(f"{self.title}: {_reason(error)}") from error

    async def _on_response(self, response: Any) -> None:  # noqa: ANN401  of the package's own HTTP client
        self._status = response.status_code

    def _unopened(self, error: BaseException) -> str:
        leaf = _leaf(error)
        if isinstance(leaf, TimeoutError):
            return f"does not answer within {self._timeout:g} seconds"
        if isinstance(leaf, OSError) and leaf.strerror:
            return f"cannot be reached: {leaf.strerror}"
        return f"does not answer: {_AUTH_STATUSES.get(self._status) or _reason(leaf)}"


async def _has_resources(client: Client) -> bool:
    """Whether the server has any resource: servers announce support and then list none."""
    if client.server_capabilities.resources is None:
        return False
    with suppress(Exception):  # what cannot be listed is not there
        if (await client.list_resources()).resources:
            return True
        return bool((await client.list_resource_templates()).resource_templates)
    return False


async def _pages(listing: Callable[..., Coroutine[Any, Any, Any]], rows: str) -> list[Any]:
    """Return the rows of all pages of a list."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        found += getattr(page, rows)
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_ROWS:
            break
    return found[:MOST_ROWS]


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  it is no file


def _plain(result: Any) -> JSONObject:  # noqa: ANN401  a result of the package
    plain: JSONObject = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def _progress(done: float, total: float | None, message: str | None) -> str:
    count = f"{done:g}" if total is None else f"{done:g}/{total:g}"
    return f"{count} {message}" if message else count


def _reason(error: BaseException) -> str:
    """Return the error in one line: the text of a protocol error, of other errors the class.

    The text of other errors may contain what was sent, keys included.
    """
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415  as above

    leaf = _leaf(error)
    said = leaf.error.message if isinstance(leaf, MCPError) else type(leaf).__name__
    line = "".join(c if c.isprintable() else "?" for c in " ".join(said.split()))
    return line if len(line) <= LONGEST_REASON else line[:LONGEST_REASON] + " ..."


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
