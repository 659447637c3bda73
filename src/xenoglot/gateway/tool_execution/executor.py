"""Executors: what runs a tool of one kind, and those that are a tool of an MCP server or a Python function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct

from xenoglot.backends.local_models.load_object import load
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.opaque import name_of
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.gateway.media.fetch_image import LONGEST_URL
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed, is_allowed, outcome_of
from xenoglot.model.content import Image, Text
from xenoglot.model.hosted import HostedTool
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Tool
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from xenoglot.gateway.tool_execution.mcp_connections import McpConnections
    from xenoglot.model.json import JSON
    from xenoglot.tools.tool_output import ToolOutput

LONGEST_QUERY: Final = 1000


class ToolUse(Struct, frozen=True):
    """A call of a tool: its arguments, the tool as the request has it, and the texts in which its URLs may stand."""

    arguments: JSONObject
    tool: HostedTool
    context: Callable[[], str] = str

    def text(self, name: str) -> str:
        """Return an argument, an empty text without it."""
        value = self.arguments.get(name)
        return value.strip() if isinstance(value, str) else ""


class Executor(Protocol):
    """Runs calls of one kind of tool."""

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Run a call. Whatever goes wrong is an outcome; a cancellation ends the call."""
        ...

    async def check(self) -> str:
        """Return, for an operator, what was reached.

        Raises:
            ConfigurationError: the executor cannot run anything; the text has the reason.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


def _schema(name: str, described: str) -> JSONObject:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": described}},
        "required": [name],
        "additionalProperties": False,
    }


FUNCTIONS: Final = {
    "web_search": Tool(
        name="web_search",
        description="Search the web. Returns numbered results with URL, title and text. "
        "Cite the results that you use by their numbers in brackets, like [1].",
        parameters=_schema("query", "What to search for"),
    ),
    "web_fetch": Tool(
        name="web_fetch",
        description="Fetch a web page and return its text. The URL has to be one that is in the conversation or in "
        "search results. Cite the page by its number in brackets, like [1].",
        parameters=_schema("url", "The URL of the page"),
    ),
    "code_execution": Tool(
        name="code_execution",
        description="Run Python code and return what it prints.",
        parameters=_schema("code", "The code"),
    ),
}
"""What the model sees of each tool: a function."""

ARGUMENTS: Final = {"web_search": "query", "web_fetch": "url", "code_execution": "code"}
"""The argument of each function."""


def page_url(use: ToolUse) -> str:
    """Return the URL that a call is of, over HTTPS and without its fragment."""
    named = use.text(ARGUMENTS["web_fetch"]).partition("#")[0]
    return f"https://{named.removeprefix('http://')}" if named.startswith("http://") else named


def page_problem(use: ToolUse, *, known_urls: bool) -> ToolOutcome | None:
    """Return why a page is not fetched, whichever executor does it; `None` if it may be.

    With `known_urls` the URL has to be in the context of the call.
    """
    url = page_url(use)
    if not url:
        return failed("invalid_tool_input", "`url` is required")
    if len(url) > LONGEST_URL:
        return failed("url_too_long", "the URL is too long")
    if not url.lower().startswith("https://") or not is_allowed(url, use.tool):
        return failed("url_not_allowed", "the domain is not allowed")
    if known_urls and url.removeprefix("https://").rstrip("/") not in use.context():
        return failed("url_not_in_prior_context", "the URL is neither in the conversation nor in results")
    return None


class CheckedExecutor:
    """Checks a call before its executor runs it: the argument, and the URL of a page."""

    def __init__(self, kind: str, executor: Executor, *, known_urls: bool) -> None:
        self._kind = kind
        self._executor = executor
        self._known_urls = known_urls

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Run a call, or return why it is not run."""
        if not use.text(ARGUMENTS[self._kind]):
            return failed("invalid_tool_input", f"`{ARGUMENTS[self._kind]}` is required")
        problem = page_problem(use, known_urls=self._known_urls) if self._kind == "web_fetch" else None
        return problem or await self._executor.run(use)

    async def check(self) -> str:
        """Return what the executor reached. `ConfigurationError` as there."""
        return await self._executor.check()

    async def aclose(self) -> None:
        """Close the executor."""
        await self._executor.aclose()


MOST_THREADS: Final = 8
"""Calls of one function that run at the same time; further calls wait, within their time."""


class PythonExecutor:
    """Runs a tool by the operator's function; one that is not a coroutine function runs in a thread.

    The threads are its own: a function that hangs cannot be cancelled, and would take those of the gateway.
    """

    def __init__(self, kind: str, use: str, most: int) -> None:
        self._kind = kind
        self._most = most
        self._name = use
        self._function = load(use)
        if not callable(self._function):
            raise ConfigurationError(f"tools.{kind}.use: `{use}` is not a function")
        self._threads = ThreadPoolExecutor(MOST_THREADS, f"xenoglot-{kind}")

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Call the function with the argument of the call."""
        argument = use.text(ARGUMENTS[self._kind])
        try:
            value = await self._called(argument)
        except Exception as error:  # noqa: BLE001  of the operator's code
            return failed("unavailable", f"the tool failed: {type(error).__name__}")
        return outcome_of(self._kind, value, use.tool, self._most)

    async def check(self) -> str:
        """Return the name of the function: it was loaded."""
        return self._name

    async def aclose(self) -> None:
        """End the threads that are idle; a call that runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _called(self, argument: str) -> Any:  # noqa: ANN401  whatever the function returns
        if inspect.iscoroutinefunction(self._function):
            return await self._function(argument)
        value = await asyncio.get_running_loop().run_in_executor(self._threads, self._function, argument)
        return await value if inspect.isawaitable(value) else value


class McpToolEntry(NamedTuple):
    """A tool of an MCP server of the operator's, and the name of its argument."""

    server: str
    tool: str
    argument: str


class McpExecutor:
    """Runs a tool of one kind by a tool of an MCP server, which gets the argument under a name of its own."""

    def __init__(self, kind: str, connections: McpConnections, place: McpToolEntry, most: int) -> None:
        self._kind = kind
        self._connections = connections
        self._server, self._tool, self._argument = place
        self._most = most

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Call the tool of the server."""
        argument = use.text(ARGUMENTS[self._kind])
        try:
            output = await self._connections.call(self._server, self._tool, {self._argument: argument})
        except ToolError:
            return failed("unavailable", "the tool failed")
        if output.is_error:
            return failed("unavailable", plain_text(output) or "the tool failed")
        return outcome_of(self._kind, _value(output), use.tool, self._most)

    async def check(self) -> str:
        """Return the tool, if the server lists it."""
        names = await self._connections.names(self._server)
        if self._tool not in names:
            raise ConfigurationError(f"the server has no tool `{self._tool}`; it has {', '.join(names) or 'none'}")
        return f"{self._server}: {self._tool}"

    async def aclose(self) -> None:
        """Close nothing: the connections are shared."""


def _value(output: ToolOutput) -> JSON:
    """Return what a server returned: structured content, JSON in a text, or the text.

    A value that is no object is structured content as `{"result": value}` (the official SDK writes it so).
    """
    if isinstance(output.data, dict) and output.data.keys() == {"result"}:
        return output.data["result"]
    if output.data is not None:
        return output.data
    text = plain_text(output)
    if text[:1] in ("[", "{"):
        try:
            return decode_json(text.encode())
        except WireError:
            pass
    return text


def plain_text(output: ToolOutput) -> str:
    """Return the texts of an output."""
    return "\n".join(part.text for part in output.content if isinstance(part, Text))


def mcp_outcome(output: ToolOutput) -> ToolOutcome:
    """Return the outcome of a call of an MCP tool that the model itself chose: texts and images.

    Content of any other kind is replaced by a text about that.
    """
    content = tuple(
        part if isinstance(part, (Text, Image)) else Text(text=f"[{name_of(part)} that cannot be shown]")
        for part in output.content
    )
    if output.is_error:
        return failed("tool_error", plain_text(output) or "the tool failed")
    return ToolOutcome(content)
