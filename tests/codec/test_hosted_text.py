"""What tools of a provider did, in words for a history that has no place for them (wire-D4)."""

from __future__ import annotations

import pytest

from xenoglot.codec.hosted_text import hosted_words, words_of_hosted
from xenoglot.codec.loss import Losses
from xenoglot.model.content import (
    CodeOutput,
    File,
    HostedCall,
    HostedKind,
    HostedResult,
    Image,
    Plain,
    Remote,
    SearchResult,
    Text,
)
from xenoglot.model.hosted import HostedTool, McpServer

CALLS: list[tuple[HostedKind, str, str | None]] = [
    ("web_search", '{"query": "news"}', "Searched for: news"),
    ("web_search", '{"queries": ["news", "today"]}', "Searched for: news, today"),
    ("web_fetch", '{"url": "https://example.com"}', "Page opened: https://example.com"),
    ("code_execution", '{"code": "1 + 1"}', "Code run:\n1 + 1"),
    ("code_execution", '{"command": "ls"}', "Command run: ls"),
    ("mcp", '{"a": 1}', 'Tool called: f {"a": 1}'),
    ("web_search", "not JSON", None),
    ("image_generation", "", None),
]


@pytest.mark.parametrize(("kind", "arguments", "words"), CALLS)
def test_a_call_says_what_was_done(kind: HostedKind, arguments: str, words: str | None) -> None:
    assert words_of_hosted(HostedCall(id="1", kind=kind, name="f", arguments=arguments)) == words


def test_a_result_says_what_was_found() -> None:
    content = (
        SearchResult(url="https://example.com", title="Title", text="Found."),
        CodeOutput(stdout="2", stderr="warned"),
        Text(text="said"),
        File(source=Plain(text="page")),
        Image(source=Remote(url="https://example.com/a.png")),
    )
    result = HostedResult(call_id="1", kind="web_search", content=content, error="unavailable")
    found = "Title\nhttps://example.com\nFound.\n2\nwarned\nsaid\npage"
    assert words_of_hosted(result) == f"The tool failed: unavailable\n{found}"


def test_what_says_nothing_is_dropped() -> None:
    losses = Losses()
    assert hosted_words(HostedResult(call_id="1", kind="image_generation"), "$.x", losses) is None
    assert [(loss.how, loss.what) for loss in losses] == [("dropped", "hosted_result")]


def test_no_repr_shows_a_token_of_a_server() -> None:
    server = McpServer(label="s", url="https://example.com", token="SECRET", headers={"x": "SECRET"})
    assert "SECRET" not in repr(HostedTool(kind="mcp", server=server)) + repr(server)
    assert "https://example.com" in repr(HostedTool(kind="mcp", server=server))
