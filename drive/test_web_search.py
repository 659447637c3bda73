"""Claude Code and Codex search the web on a model of each dialect, through the gateway's executor."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

import pytest

from drive.conftest import TURNS, DriveSetup, run_drive_setup
from drive.script import Wanted, calls, text_turn
from drive.test_claude_code import claude, results, words
from drive.test_codex import codex, items
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = """
[upstreams.main]
dialect = "{dialect}"
base_url = "{url}"

[upstreams.main.target]
hosted_tools = []

[tools.web_search]
executor = "searxng"
url = "{search}/search"
"""

FOUND = {"url": "https://moon.example/weather", "title": "Weather of the moon", "content": "It is 120 degrees at noon."}


class Search(NamedTuple):
    """A search service, and the paths at which it was asked."""

    url: str
    asked: list[str]


@contextmanager
def search_service() -> Iterator[Search]:
    """Serve the one result that there is, as SearXNG does."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer a search."""
            asked.append(self.path)
            body = json.dumps({"results": [FOUND]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Search(f"http://127.0.0.1:{server.server_port}", asked)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(params=TURNS)
def searching(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[DriveSetup, Search]]:
    """Give a setup whose gateway has an executor, in front of a server that cannot search."""
    with search_service() as search, DialectServer(dialects.get(request.param)) as speaker:
        config = tmp_path / "xenoglot.toml"
        config.write_text(CONFIG.format(dialect=request.param, url=speaker.url, search=search.url))
        with run_drive_setup(tmp_path, speaker, "--config", str(config)) as drive_setup:
            yield drive_setup, search


def test_claude_code_searches(searching: tuple[DriveSetup, Search]) -> None:
    """The search is a request of its own, whose answer is the result of Claude Code's tool."""
    drive_setup, search = searching
    drive_setup.speaker.script(
        calls(Wanted("ToolSearch", {"query": "select:WebSearch"})),
        calls(Wanted("WebSearch", {"query": "weather on the moon"})),
        calls(Wanted("web_search", {"query": "weather on the moon"})),
        text_turn("It is hot at noon [1]."),
        text_turn("The moon is hot at noon."),
    )
    told = claude(drive_setup, "search the web for the weather on the moon")
    assert told[-1]["result"] == "The moon is hot at noon."
    assert len(search.asked) == 1
    assert "weather" in search.asked[0]
    *_, asked, last = drive_setup.speaker.requests
    assert FOUND["content"] in words(results(asked)[-1])
    heard = words(results(last)[-1])
    assert FOUND["url"] in heard
    assert "It is hot at noon" in heard


def test_codex_searches(searching: tuple[DriveSetup, Search]) -> None:
    drive_setup, search = searching
    drive_setup.speaker.script(
        calls(Wanted("web_search", {"query": "weather on the moon"})),
        text_turn("The moon is hot at noon [1]."),
    )
    events = codex(drive_setup, "gpt-5.5", "-c", 'web_search="live"', "what is the weather on the moon?")
    assert [item["text"] for item in items(events, "agent_message")] == ["The moon is hot at noon [1]."]
    assert [item["query"] for item in items(events, "web_search")] == ["weather on the moon"]
    assert events[-1]["type"] == "turn.completed"
    assert len(search.asked) == 1
    *_, asked = drive_setup.speaker.requests
    assert FOUND["content"] in words(results(asked)[-1])
