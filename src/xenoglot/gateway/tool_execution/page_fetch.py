"""Executor of page fetches: HTTPS requests to public hosts alone, and the text of what they answer (R21, S12).

The model chooses the URL, maybe by the instructions of a page. So the URL is checked as that of an image is, every
redirect is checked again, each address of the host has to be public, and the request carries nothing of the client or
the operator.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from xenoglot.backends.http.client import Deadlines, Transport, TransportLimits
from xenoglot.backends.http.connect import AddressLookup
from xenoglot.backends.http.timeouts import TransportError
from xenoglot.gateway.media.fetch_image import (
    MOST_REDIRECTS,
    OK,
    REDIRECTS,
    BlockedError,
    checked,
    is_public,
    onward,
)
from xenoglot.gateway.tool_execution.executor import page_problem, page_url
from xenoglot.gateway.tool_execution.html_text import decoded, page_text
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed, is_allowed
from xenoglot.model.content import SearchResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.backends.http.connect import Resolve
    from xenoglot.gateway.config.tools.settings import PageSettings
    from xenoglot.gateway.tool_execution.executor import ToolUse

HEADERS: Final = [
    ("accept", "text/html, application/xhtml+xml, text/plain, text/markdown, application/json, application/xml;q=0.9"),
    ("user-agent", "xenoglot"),
]
"""The headers of a request: nothing of the client, and no key."""
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
TEXTS: Final = ("text/", "application/json", "application/xml", "application/rss+xml", "application/atom+xml")


class PageExecutor:
    """Fetches pages, each within `seconds`; of their text `most` bytes are wanted."""

    def __init__(
        self,
        settings: PageSettings,
        seconds: float,
        most: int,
        *,
        resolve: Resolve | None = None,
        transport: Callable[..., Transport] = Transport,
    ) -> None:
        self._settings = settings
        self._most = most
        self._resolve = resolve or AddressLookup()
        self._transport = transport(
            deadlines=Deadlines(connect=seconds, first_byte=seconds, idle=seconds, total=seconds),
            limits=TransportLimits(
                body_bytes=settings.max_bytes, decoded_bytes=settings.max_bytes, idle_connections=1, idle_seconds=1.0
            ),
            resolve=self._public,
        )

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Fetch a page."""
        problem = page_problem(use, known_urls=self._settings.known_urls)
        if problem is not None:
            return problem
        try:
            return await self._page(page_url(use), use)
        except BlockedError as error:
            return failed("url_not_allowed", str(error))
        except TransportError as error:
            if error.kind == "too_large":
                return failed("content_too_large", "the page is too large")
            return failed("url_not_accessible", "the page cannot be reached")

    async def check(self) -> str:
        """Return that there is nothing to reach."""
        return "public pages over https"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _page(self, url: str, use: ToolUse) -> ToolOutcome:
        """Return the page after redirects; each URL is checked as the first was."""
        for _ in range(MOST_REDIRECTS + 1):
            checked(url, self._settings.ports)
            if not is_allowed(url, use.tool):
                raise BlockedError("it leads to a domain that is not allowed")
            async with await self._transport.send("GET", url, HEADERS) as reply:
                if reply.status in REDIRECTS:
                    url = onward(url, reply.header("location") or "")
                    continue
                if reply.status != OK:
                    return failed("url_not_accessible", f"status {reply.status}")
                kind = (reply.header("content-type") or "text/plain").partition(";")[0].strip().lower()
                if kind not in HTML and not kind.startswith(TEXTS):
                    return failed("unsupported_content_type", "the page is not a text")
                data = await reply.read(self._settings.max_bytes)
                declared = reply.header("content-type") or ""
            title, text = await asyncio.to_thread(self._text, data, declared, kind, url)
            return ToolOutcome((SearchResult(url=url, title=title or None, text=text),))
        return failed("url_not_accessible", "too many redirects")

    def _text(self, data: bytes, declared: str, kind: str, url: str) -> tuple[str, str]:
        text = decoded(data, declared)
        return page_text(text, url, self._most) if kind in HTML else ("", text)

    async def _public(self, host: str) -> Sequence[str]:
        """Return the addresses of `host`: they are what is connected to. One that is not public spoils them all."""
        addresses = await self._resolve(host)
        if not addresses or not all(is_public(address) for address in addresses):
            raise TransportError("connect", "connect", "the host is not a public one", sent=False)
        return addresses
