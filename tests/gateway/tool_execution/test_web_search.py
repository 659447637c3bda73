"""Searches at services: what each is sent, what is read of its answer, and how it fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import testing
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.tools.settings import SearchSettings
from xenoglot.gateway.tool_execution.executor import ToolUse
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed, search_results
from xenoglot.gateway.tool_execution.web_search import MOST_BYTES, SearchExecutor, search_request
from xenoglot.model.content import SearchResult
from xenoglot.model.hosted import HostedTool
from xenoglot.testing import Close, Hang, Respond

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing import Step

SEARCH = HostedTool(kind="web_search")
KEY = "key-of-the-operator"
TWO: JSONObject = {
    "query": "rivers",
    "results": [
        {"url": "https://a.example/1", "title": "One", "content": "First text", "publishedDate": "2026-01-02"},
        {"url": "https://b.example/2", "title": "Two", "content": "Second text"},
    ],
}
FOUND = (
    SearchResult(url="https://a.example/1", title="One", text="First text", age="2026-01-02"),
    SearchResult(url="https://b.example/2", title="Two", text="Second text"),
)


def json_answer(value: JSON) -> Respond:
    """Return a response with JSON."""
    return Respond(200, (("content-type", "application/json"),), json.dumps(value).encode())


async def outcome_of(*steps: Step, query: str = "rivers", seconds: float = 20.0) -> ToolOutcome:
    """Return the outcome of a search at a service that answers by `steps`."""
    async with testing.Upstream(steps) as upstream:
        executor = SearchExecutor(SearchSettings(executor="searxng", url=f"{upstream.url}/search"), KEY, seconds)
        try:
            return await executor.run(ToolUse({"query": query}, SEARCH))
        finally:
            await executor.aclose()


@pytest.mark.parametrize(
    ("settings", "method", "url", "header", "body"),
    [
        pytest.param(
            SearchSettings(executor="searxng", url="http://127.0.0.1:8888/search"),
            "GET",
            "http://127.0.0.1:8888/search?q=two+rivers&format=json",
            ("authorization", f"Bearer {KEY}"),
            b"",
            id="searxng",
        ),
        pytest.param(
            SearchSettings(executor="brave", max_results=50),
            "GET",
            "https://api.search.brave.com/res/v1/web/search?q=two+rivers&count=20",
            ("x-subscription-token", KEY),
            b"",
            id="brave",
        ),
        pytest.param(
            SearchSettings(executor="tavily", max_results=3),
            "POST",
            "https://api.tavily.com/search",
            ("authorization", f"Bearer {KEY}"),
            b'{"query":"two rivers","max_results":3,"include_domains":["a.example"]}',
            id="tavily",
        ),
        pytest.param(
            SearchSettings(executor="url", url="https://s.example/?n={max_results}&q={query}"),
            "GET",
            "https://s.example/?n=5&q=two%20rivers",
            ("authorization", f"Bearer {KEY}"),
            b"",
            id="url",
        ),
    ],
)
def test_what_each_service_is_sent(
    settings: SearchSettings, method: str, url: str, header: tuple[str, str], body: bytes
) -> None:
    asked = search_request(settings, KEY, "two rivers", HostedTool(kind="web_search", allowed_domains=("a.example",)))
    assert (asked.method, asked.url, asked.body) == (method, url, body)
    assert header in asked.headers


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        pytest.param(TWO, FOUND, id="searxng"),
        pytest.param({"type": "search", "web": TWO}, FOUND, id="brave"),
        pytest.param(
            [{"link": "https://a.example/1", "name": "One", "snippet": "First text", "date": "2026-01-02"}],
            FOUND[:1],
            id="list",
        ),
        pytest.param({"results": [{"url": "javascript:alert(1)"}, {"url": "/x"}, 3, None]}, (), id="no-page"),
        pytest.param({"answer": "no list"}, (), id="nothing"),
        pytest.param("text", (), id="text"),
    ],
)
def test_what_is_read_of_an_answer(answer: JSON, found: tuple[SearchResult, ...]) -> None:
    assert search_results(answer, SEARCH, 5) == found


@pytest.mark.parametrize(
    ("allowed", "blocked", "urls"),
    [
        pytest.param(("a.example",), None, ["https://a.example/1"], id="allowed"),
        pytest.param(None, ("a.example",), ["https://b.example/2"], id="blocked"),
        pytest.param(("example",), None, ["https://a.example/1", "https://b.example/2"], id="domain-above"),
        pytest.param(("a.example/2", "b.example/2"), None, ["https://b.example/2"], id="path"),
        pytest.param(("evil-a.example",), None, [], id="end-of-a-name"),
    ],
)
def test_domains_of_the_tool_are_kept(
    allowed: tuple[str, ...] | None, blocked: tuple[str, ...] | None, urls: list[str]
) -> None:
    tool = HostedTool(kind="web_search", allowed_domains=allowed, blocked_domains=blocked)
    assert [one.url for one in search_results(TWO, tool, 5)] == urls


async def test_a_search_finds() -> None:
    assert await outcome_of(json_answer(TWO)) == ToolOutcome(FOUND)


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        pytest.param(Respond(500), failed("unavailable", "the search answered with status 500"), id="error"),
        pytest.param(Respond(429), failed("too_many_requests", "the search is overloaded"), id="overloaded"),
        pytest.param(
            Respond(302, (("location", "http://169.254.169.254/"),)),
            failed("unavailable", "the search answered with status 302"),
            id="redirect",
        ),
        pytest.param(Respond(200, (), b"<html>"), failed("unavailable", "the search did not answer"), id="no-json"),
        pytest.param(
            Respond(200, (), b" " * (MOST_BYTES + 1)), failed("unavailable", "the search did not answer"), id="huge"
        ),
        pytest.param(Close(), failed("unavailable", "the search did not answer"), id="closed"),
    ],
)
async def test_faults_of_a_service_are_outcomes(step: Step, outcome: ToolOutcome) -> None:
    assert await outcome_of(step) == outcome


async def test_a_service_that_is_silent_is_given_up() -> None:
    assert await outcome_of(Hang(), seconds=0.05) == failed("unavailable", "the search did not answer")


@pytest.mark.parametrize(
    ("query", "error"),
    [pytest.param(" ", "invalid_tool_input", id="none"), pytest.param("x" * 2000, "query_too_long", id="long")],
)
async def test_a_query_that_is_none_is_not_sent(query: str, error: str) -> None:
    assert (await outcome_of(query=query)).error == error


async def test_the_check_of_an_operator_names_what_is_wrong() -> None:
    for step, expected in ((json_answer(TWO), "2 results"), (Respond(403), "status 403")):
        async with testing.Upstream((step,)) as upstream:
            executor = SearchExecutor(SearchSettings(executor="searxng", url=f"{upstream.url}/search"), "", 20.0)
            try:
                assert await executor.check() == expected
            except ConfigurationError as error:
                assert str(error) == expected  # noqa: PT017  one of the two raises
            await executor.aclose()
