"""Settings of the tools that the gateway runs in place of an upstream: `[tools]`, an executor for each, MCP servers.

[tools]
max_calls = 10                      # of one request

[tools.web_search]
executor = "searxng"
url = "http://127.0.0.1:8888/search"

[tools.web_fetch]
executor = "http"

[tools.mcp.servers.docs]            # clients may name this server in requests
url = "https://mcp.example/mcp"
key_env = "DOCS_KEY"
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

_Few: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=3_600)]
_Bytes: TypeAlias = Annotated[int, Meta(ge=1024, le=64 * 1024 * 1024)]

PUBLIC_URLS: Final = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
}
"""The addresses of search services that have one."""


class SearchSettings(Struct, frozen=True, kw_only=True):
    """Runs `web_search`: a search service, a JSON endpoint, a tool of an MCP server, or a Python function.

    `url` is the address of the service; for the executor `url` a template with `{query}`. `key_env` is the environment
    variable with its key. `server` and `tool` name a tool of `[tools.mcp.servers]`, which gets the query as `argument`.
    `use` is `module:object`.
    """

    executor: Literal["searxng", "brave", "tavily", "url", "mcp", "python"]
    url: str | None = None
    key_env: str | None = None
    max_results: Annotated[int, Meta(ge=1, le=50)] = 5
    server: str | None = None
    tool: str | None = None
    argument: str = "query"
    use: str | None = None

    @property
    def address(self) -> str:
        """The address of the service."""
        return self.url or PUBLIC_URLS.get(self.executor, "")


class PageSettings(Struct, frozen=True, kw_only=True):
    """Runs `web_fetch`: HTTPS requests to public hosts, a tool of an MCP server, or a Python function.

    With `known_urls` only URLs are fetched that are in the conversation or in results: a page cannot make the model
    send what it knows to a URL of the page's choice. `max_bytes` bounds the page; `[tools]` bounds what the model gets.
    """

    executor: Literal["http", "mcp", "python"] = "http"
    known_urls: bool = True
    ports: tuple[Annotated[int, Meta(ge=1, le=65535)], ...] = (443,)
    max_bytes: _Bytes = 2 * 1024 * 1024
    server: str | None = None
    tool: str | None = None
    argument: str = "url"
    use: str | None = None


class CodeSettings(Struct, frozen=True, kw_only=True):
    """Runs `code_execution`: a tool of an MCP server, or a Python function."""

    executor: Literal["mcp", "python"]
    server: str | None = None
    tool: str | None = None
    argument: str = "code"
    use: str | None = None


class McpServerSettings(Struct, frozen=True, kw_only=True):
    """An MCP server that clients may name in requests; `key_env` has the key for its `Authorization` header."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    key_env: str | None = None


class McpSettings(Struct, frozen=True, kw_only=True):
    """The MCP servers that the gateway connects to, by name."""

    servers: dict[str, McpServerSettings] = field(default_factory=dict)


class HostedToolSettings(Struct, frozen=True, kw_only=True):
    """The tools that the gateway runs where no upstream does, and their limits.

    A request has `max_calls` calls, `seconds` for all of them, and `max_tokens` of input and output in all rounds; a
    call has `call_seconds`, and `max_bytes` for its result.
    """

    max_calls: _Few = 10
    seconds: _Seconds = 120.0
    call_seconds: _Seconds = 30.0
    max_bytes: _Bytes = 64 * 1024
    max_tokens: Annotated[int, Meta(ge=1)] = 500_000
    web_search: SearchSettings | None = None
    web_fetch: PageSettings | None = None
    code_execution: CodeSettings | None = None
    mcp: McpSettings = McpSettings()

    @property
    def executors(self) -> dict[str, SearchSettings | PageSettings | CodeSettings]:
        """The settings of each executor by the kind of its tool."""
        found = {"web_search": self.web_search, "web_fetch": self.web_fetch, "code_execution": self.code_execution}
        return {kind: settings for kind, settings in found.items() if settings is not None}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of tools that the gateway runs."""
        return frozenset((*self.executors, *(("mcp",) if self.mcp.servers else ())))
