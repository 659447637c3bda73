"""Pages that are fetched for a model: their text, and all that is never opened (R21, S12)."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trustme

from xenoglot import testing
from xenoglot.backends.http.client import Transport
from xenoglot.gateway.config.tools.settings import PageSettings
from xenoglot.gateway.media.fetch_image import is_public
from xenoglot.gateway.tool_execution import page_fetch
from xenoglot.gateway.tool_execution.executor import ToolUse
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed
from xenoglot.gateway.tool_execution.page_fetch import PageExecutor
from xenoglot.model.content import SearchResult
from xenoglot.model.hosted import HostedTool
from xenoglot.testing import Hang, RequestMatcher, Respond, ScriptRule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

HOST = "pages.example"
HTML = (("content-type", "text/html"),)
TEXT = (("content-type", "text/plain"),)
FETCH = HostedTool(kind="web_fetch")
PAGE = b"<title>T</title><p>Hello <a href='/more'>more</a></p><script>steal()</script>"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Give what signs the certificates of the pages' server."""
    return trustme.CA()


async def local_addresses(host: str) -> Sequence[str]:
    """Resolve every name to this machine, some to the service for cloud credentials."""
    return ["169.254.169.254"] if host.startswith("metadata") else ["127.0.0.1"]


@asynccontextmanager
async def executor_of(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, *rules: ScriptRule, seconds: float = 20.0
) -> AsyncGenerator[tuple[PageExecutor, testing.Upstream, str]]:
    """Give an executor, a server of pages that counts as public, and its URL."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(HOST, "other.example").configure_cert(server)
    authority.configure_trust(client)
    monkeypatch.setattr(page_fetch, "is_public", lambda address: address == "127.0.0.1" or is_public(address))
    async with testing.Upstream(*rules, tls=server) as upstream:
        connecting = partial(Transport, ssl_context=client)
        settings = PageSettings(ports=(upstream.port,), max_bytes=100_000)
        executor = PageExecutor(settings, seconds, 10_000, resolve=local_addresses, transport=connecting)
        try:
            yield executor, upstream, f"https://{HOST}:{upstream.port}"
        finally:
            await executor.aclose()


def page(path: str, body: bytes = PAGE, headers: tuple[tuple[str, str], ...] = HTML, status: int = 200) -> ScriptRule:
    """Return a rule for a page."""
    return ScriptRule(steps=(Respond(status, headers, body),), when=RequestMatcher(path=path))


def redirect(location: str) -> ScriptRule:
    """Return a rule for a page that leads elsewhere."""
    return page("/a", b"", (("location", location),), 302)


def use_of(url: str, context: str | None = None, tool: HostedTool = FETCH) -> ToolUse:
    """Return a call for a page, by default of a URL in the conversation."""
    return ToolUse({"url": url}, tool, lambda: url if context is None else context)


async def test_r21_a_page_is_its_text_and_is_told_nothing(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with executor_of(authority, monkeypatch, page("/a")) as (executor, upstream, url):
        outcome = await executor.run(use_of(f"{url}/a#part"))
        (received,) = upstream.requests
    assert outcome == ToolOutcome((SearchResult(url=f"{url}/a", title="T", text=f"Hello [more]({url}/more)"),))
    assert set(dict(received.headers)) == {"host", "accept", "user-agent", "accept-encoding"}


async def test_r21_redirects_are_checked_and_followed(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    async with executor_of(authority, monkeypatch, redirect("/b"), page("/b", b"plain", TEXT)) as (executor, _, url):
        outcome = await executor.run(use_of(f"{url}/a"))
    assert outcome == ToolOutcome((SearchResult(url=f"{url}/b", text="plain"),))


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://metadata.internal/",
        "https://metadata.example/",
        "file:///etc/passwd",
        "//127.0.0.1/",
    ],
)
async def test_s12_a_redirect_to_this_machine_is_not_followed(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    async with executor_of(authority, monkeypatch, redirect(location)) as (executor, upstream, url):
        outcome = await executor.run(use_of(f"{url}/a"))
        assert len(upstream.requests) == 1
    assert outcome.error in ("url_not_allowed", "url_not_accessible")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        pytest.param("", "invalid_tool_input", id="none"),
        pytest.param("http://127.0.0.1/", "url_not_allowed", id="no-tls"),
        pytest.param("ftp://pages.example/", "url_not_allowed", id="other-scheme"),
        pytest.param("https://127.0.0.1/", "url_not_allowed", id="loopback"),
        pytest.param("https://[::1]/", "url_not_allowed", id="loopback-6"),
        pytest.param("https://metadata.google.internal/", "url_not_allowed", id="internal"),
        pytest.param("https://pages.example:22/", "url_not_allowed", id="port"),
        pytest.param("https://user:pass@pages.example/", "url_not_allowed", id="user"),
        pytest.param(f"https://pages.example/{'x' * 9000}", "url_too_long", id="long"),
    ],
)
async def test_s12_urls_that_are_never_opened(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, url: str, error: str
) -> None:
    async with executor_of(authority, monkeypatch, page("*")) as (executor, upstream, _):
        assert (await executor.run(use_of(url))).error == error
        assert len(upstream.connections) == 0


async def test_s12_a_url_that_is_not_in_the_conversation_is_not_opened(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with executor_of(authority, monkeypatch, page("*")) as (executor, upstream, url):
        outcome = await executor.run(use_of(f"{url}/?stolen=secret", f"see {url}/"))
        assert len(upstream.requests) == 0
        assert (await executor.run(use_of(f"{url}/", f"see {url}/"))).error is None
    assert outcome == failed("url_not_in_prior_context", "the URL is neither in the conversation nor in results")


async def test_domains_of_the_tool_are_kept(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = HostedTool(kind="web_fetch", blocked_domains=(HOST,))
    allowed = HostedTool(kind="web_fetch", allowed_domains=(HOST,))
    async with executor_of(authority, monkeypatch, redirect("https://other.example/b")) as (executor, upstream, url):
        assert (await executor.run(use_of(f"{url}/a", tool=blocked))).error == "url_not_allowed"
        outcome = await executor.run(use_of(f"{url}/a", tool=allowed))
        assert len(upstream.requests) == 1
    assert outcome.error == "url_not_allowed"


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        pytest.param(page("/a", status=404), "url_not_accessible", id="not-found"),
        pytest.param(page("/a", b"\x89PNG", (("content-type", "image/png"),)), "unsupported_content_type", id="image"),
        pytest.param(page("/a", b"x" * 200_000), "content_too_large", id="huge"),
        pytest.param(redirect("/a"), "url_not_accessible", id="circle"),
    ],
)
async def test_faults_of_a_page_are_outcomes(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, rule: ScriptRule, error: str
) -> None:
    async with executor_of(authority, monkeypatch, rule) as (executor, _, url):
        assert (await executor.run(use_of(f"{url}/a"))).error == error


async def test_a_page_that_is_silent_is_given_up(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    async with executor_of(authority, monkeypatch, ScriptRule(steps=(Hang(),)), seconds=0.3) as (executor, _, url):
        assert (await executor.run(use_of(f"{url}/a"))).error == "url_not_accessible"


@pytest.mark.parametrize(
    "context", ["see {host}/a for more", "see http://{host}/a", "see https://{host}/a/ .", "<https://{host}/a>"]
)
async def test_a_url_may_be_named_in_several_ways(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, context: str
) -> None:
    async with executor_of(authority, monkeypatch, page("/a", b"plain", TEXT)) as (executor, _, url):
        host = url.removeprefix("https://")
        for named in (url, f"http://{host}"):
            outcome = await executor.run(use_of(f"{named}/a", context.format(host=host)))
            assert outcome == ToolOutcome((SearchResult(url=f"{url}/a", text="plain"),))
