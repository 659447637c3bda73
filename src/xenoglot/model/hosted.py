"""Tools that the provider runs itself, as a request asks for them.

In answers they are parts: `HostedCall` and `HostedResult` in `model.content`. Towards a provider that has
no such tool, it is run for it or refused.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from xenoglot.model.content import CacheMark, Extra, HostedKind
from xenoglot.model.json import JSON
from xenoglot.model.short_repr import short_repr


class Location(Struct, frozen=True, kw_only=True):
    """About where the user is: the country as ISO 3166-1 alpha-2, the time zone as IANA names it."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class McpServer(Struct, frozen=True, kw_only=True):
    """A remote MCP server whose tools the model may call.

    Args:
        label: What the request calls it.
        url: Where it is. `None` for one that the provider knows by the label, or by fields of its own.
        description: What it is for, for the model.
        token: The bearer token to send to it.
        headers: More headers to send to it.
        allowed_tools: Its only tools that may be called. `None` is all.
        blocked_tools: Its tools that must not be called.
        approval: Which calls need the user's consent, as the dialect writes it: `"never"`, `"always"` or an object.
        extra: Fields that only their own dialect has.
    """

    SECRET: ClassVar = frozenset({"token", "headers"})
    """Fields that no `repr()` shows."""

    label: str
    url: str | None = None
    description: str | None = None
    token: str | None = None
    headers: dict[str, str] | None = None
    allowed_tools: tuple[str, ...] | None = None
    blocked_tools: tuple[str, ...] | None = None
    approval: JSON = None
    extra: Extra | None = None

    __repr__ = short_repr


class HostedTool(Struct, frozen=True, kw_only=True):
    """A tool that the provider runs: the model calls it, and the answer has the call and its result.

    Args:
        kind: What it does, like `"web_search"`.
        allowed_domains: The only domains to search or fetch from. `None` is all.
        blocked_domains: Domains never to search or fetch from.
        max_uses: How often it may be called in one request.
        location: Where the user is, for a search.
        context_size: How much of the prompt may be filled with what is found: `"low"`, `"medium"` or `"high"`.
        server: The server of a tool of kind `"mcp"`, which stands for all tools of that server.
        store_ids: The stores of files to search in; each means something to its own provider only.
        max_results: How many pieces of files a search in files returns at most.
        metadata_filter: The condition on the metadata of files, as Google writes it (https://google.aip.dev/160).
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has; its `form` keeps the version of the tool.

    Example:
        >>> from xenoglot.model.hosted import HostedTool
        >>> HostedTool(kind="web_search", allowed_domains=("example.com",), max_uses=3).kind
        'web_search'
    """

    kind: HostedKind
    allowed_domains: tuple[str, ...] | None = None
    blocked_domains: tuple[str, ...] | None = None
    max_uses: int | None = None
    location: Location | None = None
    context_size: str | None = None
    server: McpServer | None = None
    store_ids: tuple[str, ...] | None = None
    max_results: int | None = None
    metadata_filter: str | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr
