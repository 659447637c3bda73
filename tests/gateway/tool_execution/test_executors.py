"""Executors that are functions of the operator's: what is checked before they are called, and what they return."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.tools.settings import CodeSettings, HostedToolSettings, PageSettings, SearchSettings
from xenoglot.gateway.tool_execution.executor import ToolUse, mcp_outcome
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed, is_allowed
from xenoglot.gateway.tool_execution.service import tool_execution
from xenoglot.model.content import Audio, CodeOutput, File, HostedKind, Image, Inline, SearchResult, Text
from xenoglot.model.hosted import HostedTool
from xenoglot.tools.tool_output import ToolOutput

if TYPE_CHECKING:
    from xenoglot.gateway.tool_execution.executor import Executor

CALLED: list[str] = []
PLACE = "tests.gateway.tool_execution.test_executors"
URL = "https://a.example/1"


def page(url: str) -> str:
    """Return a page."""
    CALLED.append(url)
    return "Hello"


async def search(query: str) -> str:
    """Return what was found, as one text."""
    return f"all about {query}"


def run_code(code: str) -> dict[str, object]:
    """Return what code prints."""
    return {"stdout": code.upper(), "exit_code": 0}


def thread_name(_: str) -> str:
    """Return the name of the thread that this runs in."""
    return threading.current_thread().name


def executor(kind: HostedKind, *, known_urls: bool = True) -> Executor:
    """Return the executor of a kind of tool as the configuration has it."""
    settings = HostedToolSettings(
        web_search=SearchSettings(executor="python", use=f"{PLACE}:search"),
        web_fetch=PageSettings(executor="python", use=f"{PLACE}:page", known_urls=known_urls),
        code_execution=CodeSettings(executor="python", use=f"{PLACE}:run_code"),
    )
    return tool_execution(settings, Secrets({})).executors[kind]


def use_of(context: str = "", tool: HostedTool | None = None, **arguments: str) -> ToolUse:
    """Return a call of a tool."""
    return ToolUse({**arguments}, tool or HostedTool(kind="web_fetch"), lambda: context)


@pytest.mark.parametrize(
    ("kind", "use", "outcome"),
    [
        pytest.param("web_fetch", use_of(URL, url=URL), ToolOutcome((SearchResult(text="Hello"),)), id="page"),
        pytest.param("web_search", use_of(query="x"), ToolOutcome((Text(text="all about x"),)), id="search"),
        pytest.param(
            "code_execution", use_of(code="x"), ToolOutcome((CodeOutput(stdout="X", exit_code=0),)), id="code"
        ),
        pytest.param("web_search", use_of(), failed("invalid_tool_input", "`query` is required"), id="no-argument"),
    ],
)
async def test_a_function_is_an_executor(kind: HostedKind, use: ToolUse, outcome: ToolOutcome) -> None:
    assert await executor(kind).run(use) == outcome


async def test_a_function_runs_in_a_thread_of_its_tool() -> None:
    """One that hangs cannot be cancelled: it must not take the threads that the gateway needs."""
    settings = HostedToolSettings(code_execution=CodeSettings(executor="python", use=f"{PLACE}:thread_name"))
    execution = tool_execution(settings, Secrets({}))
    (output,) = (await execution.executors["code_execution"].run(use_of(code="x"))).content
    await execution.aclose()
    assert isinstance(output, CodeOutput)
    assert output.stdout.startswith("xenoglot-code_execution")


@pytest.mark.parametrize(
    ("url", "context", "tool", "error"),
    [
        pytest.param(f"{URL}?stolen=1", URL, None, "url_not_in_prior_context", id="unknown-url"),
        pytest.param("file:///etc/passwd", "file:///etc/passwd", None, "url_not_allowed", id="file"),
        pytest.param(f"https://a.example/{'x' * 9000}", "", None, "url_too_long", id="long"),
        pytest.param(
            URL, URL, HostedTool(kind="web_fetch", blocked_domains=("a.example",)), "url_not_allowed", id="blocked"
        ),
        pytest.param(
            URL, URL, HostedTool(kind="web_fetch", allowed_domains=("b.example",)), "url_not_allowed", id="not-allowed"
        ),
    ],
)
async def test_a_function_gets_no_url_that_the_gateway_would_not_fetch(
    url: str, context: str, tool: HostedTool | None, error: str
) -> None:
    """Domains and `known_urls` are those of the tool, whichever executor runs it."""
    CALLED.clear()
    assert (await executor("web_fetch").run(use_of(context, tool, url=url))).error == error
    assert CALLED == []


async def test_any_url_may_be_fetched_where_the_operator_allows_it() -> None:
    outcome = await executor("web_fetch", known_urls=False).run(use_of(url=URL))
    assert outcome == ToolOutcome((SearchResult(text="Hello"),))


async def test_a_text_of_a_search_is_no_result_where_domains_are_limited() -> None:
    tool = HostedTool(kind="web_search", allowed_domains=("a.example",))
    outcome = await executor("web_search").run(use_of(tool=tool, query="x"))
    assert outcome == failed("unavailable", "the search returned a text: its domains cannot be checked")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/blog", True),
        ("/blog/a", True),
        ("/blog/a/../b", True),
        ("/blogs", False),
        ("/blog/../admin", False),
        ("/blog/%2e%2e/admin", False),
        ("/blog/..%2fadmin", False),
        ("//blog/a", True),
        ("", False),
    ],
)
def test_a_path_of_a_domain_is_that_which_the_server_reads(path: str, *, allowed: bool) -> None:
    url = f"https://a.example{path}"
    assert is_allowed(url, HostedTool(kind="web_fetch", allowed_domains=("a.example/blog",))) is allowed
    assert is_allowed(url, HostedTool(kind="web_fetch", blocked_domains=("a.example/blog",))) is not allowed


def test_the_model_is_told_of_content_that_it_cannot_be_shown() -> None:
    sound = Audio(source=Inline(data="AAAA", media_type="audio/wav"))
    image = Image(source=Inline(data="AAAA", media_type="image/png"))
    file = File(source=Inline(data="AAAA", media_type="application/pdf"))
    outcome = mcp_outcome(ToolOutput(content=(Text(text="a"), sound, image, file)))
    assert outcome == ToolOutcome(
        (Text(text="a"), Text(text="[audio that cannot be shown]"), image, Text(text="[file that cannot be shown]"))
    )
