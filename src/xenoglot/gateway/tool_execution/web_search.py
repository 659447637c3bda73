"""Executors of web searches over HTTP: SearXNG, Brave, Tavily, and any endpoint that answers with a JSON list.

The address is the operator's and may be on this machine; redirects are not followed. Neither the client nor the model
learns more of a failure than its kind: the address may hold a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from xenoglot.backends.http.client import Deadlines, Transport, TransportLimits
from xenoglot.backends.http.timeouts import TransportError
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.gateway.tool_execution.executor import LONGEST_QUERY, ToolUse
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed, search_results
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from xenoglot.gateway.config.tools.settings import SearchSettings
    from xenoglot.model.json import JSON, JSONObject

MOST_BYTES: Final = 2 * 1024 * 1024
"""Bytes of an answer of a search service."""
OK: Final = 200
TOO_MANY: Final = 429
_JSON: Final = ("accept", "application/json")
MOST_BRAVE_RESULTS: Final = 20


class SearchRequest:
    """A request to a search service: method, URL, headers, body."""

    def __init__(self, url: str, headers: list[tuple[str, str]], body: bytes = b"") -> None:
        self.method = "POST" if body else "GET"
        self.url = url
        self.headers = headers
        self.body = body


def search_request(settings: SearchSettings, key: str, query: str, tool: HostedTool) -> SearchRequest:
    """Return the request for a search, as the service of `settings` expects it."""
    address, most = settings.address, settings.max_results
    bearer = [_JSON, *([("authorization", f"Bearer {key}")] if key else [])]
    if settings.executor == "url":
        url = address.replace("{query}", quote(query, safe="")).replace("{max_results}", str(most))
        return SearchRequest(url, bearer)
    if settings.executor == "brave":
        count = min(most, MOST_BRAVE_RESULTS)
        return SearchRequest(_with(address, {"q": query, "count": str(count)}), [_JSON, ("x-subscription-token", key)])
    if settings.executor == "tavily":
        asked: JSONObject = {"query": query, "max_results": most}
        if tool.allowed_domains:
            asked["include_domains"] = list(tool.allowed_domains)
        if tool.blocked_domains:
            asked["exclude_domains"] = list(tool.blocked_domains)
        return SearchRequest(address, [*bearer, ("content-type", "application/json")], encode_json(asked))
    return SearchRequest(_with(address, {"q": query, "format": "json"}), bearer)


def _with(address: str, fields: dict[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(fields)}"


class SearchExecutor:
    """Runs searches at a service; `key` is the operator's key for it, and `seconds` the time of one."""

    def __init__(self, settings: SearchSettings, key: str, seconds: float) -> None:
        self._settings = settings
        self._key = key
        self._transport = Transport(
            deadlines=Deadlines(connect=seconds, first_byte=seconds, idle=seconds, total=seconds),
            limits=TransportLimits(body_bytes=MOST_BYTES, decoded_bytes=MOST_BYTES, idle_connections=8),
        )

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Search."""
        query = use.text("query")
        if not query:
            return failed("invalid_tool_input", "`query` is required")
        if len(query) > LONGEST_QUERY:
            return failed("query_too_long", f"the query is longer than {LONGEST_QUERY} characters")
        try:
            status, found = await self._answer(query, use.tool)
        except (TransportError, WireError):
            return failed("unavailable", "the search did not answer")
        if status == TOO_MANY:
            return failed("too_many_requests", "the search is overloaded")
        if status != OK:
            return failed("unavailable", f"the search answered with status {status}")
        return ToolOutcome(search_results(found, use.tool, self._settings.max_results))

    async def check(self) -> str:
        """Return how many results a search for one word has.

        Raises:
            ConfigurationError: there is no such answer.
        """
        tool = HostedTool(kind="web_search")
        try:
            status, found = await self._answer("test", tool)
        except TransportError as error:
            raise ConfigurationError(f"no answer: {error}") from None
        except WireError:
            raise ConfigurationError("the answer is not JSON") from None
        if status != OK:
            raise ConfigurationError(f"status {status}")
        return f"{len(search_results(found, tool, self._settings.max_results))} results"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _answer(self, query: str, tool: HostedTool) -> tuple[int, JSON]:
        """Return the status of the answer, and what a good one holds."""
        asked = search_request(self._settings, self._key, query, tool)
        reply = await self._transport.send(asked.method, asked.url, asked.headers, asked.body)
        async with reply:
            if reply.status != OK:
                return reply.status, None
            return OK, decode_json(await reply.read(MOST_BYTES))
