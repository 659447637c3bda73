"""MCP servers that mean ill, or are ill: each ends in a line that says so, in time, and nothing is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tools.mcp.test_tools import call, words
from xenoglot.errors import ConfigurationError
from xenoglot.tools.mcp.tools import mcp_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = [sys.executable, "-IS", str(Path(__file__).parents[1] / "mcp_hostile.py")]


@pytest.mark.parametrize(
    ("way", "patience", "problem"),
    [
        pytest.param("silent", 0.5, " within 0.5 seconds", id="silent"),
        pytest.param("endless", 0.5, " within 0.5 seconds", id="list-without-end"),
        pytest.param("escapes", 120, ": ?[31mno such", id="escapes"),
        pytest.param("wrong", 120, ": ValidationError", id="no-list"),
    ],
)
async def test_it_is_told_in_a_line_and_in_time(way: str, patience: float, problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        async with mcp_tools([*SERVER, way], patience=patience):
            pytest.fail("it is there")
    assert str(raised.value) == f"the MCP server does not answer{problem}"


async def test_nobody_waits_for_one_that_is_no_longer_wanted() -> None:
    """Whoever gives up while a server is being opened is not held, and the server ends."""

    async def opened() -> None:
        async with mcp_tools([*SERVER, "silent"], patience=3600):
            pytest.fail("it is there")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(opened(), 0.3)
    assert [thread for thread in threading.enumerate() if thread.name == "xenoglot-mcp"] == []


async def test_changes_without_end_are_one_change() -> None:
    """The server is asked again once for what it says thousands of times meanwhile, and can be closed."""
    async with mcp_tools([*SERVER, "flood"]) as tools:
        await call(tools, "t")
        assert int(words(await call(tools, "t"))) < 200
    assert list(tools) == []


async def test_tools_of_one_name_are_one() -> None:
    async with mcp_tools([*SERVER, "same"]) as tools:
        assert [tool.spec.name for tool in tools] == ["t"]


def test_what_it_writes_is_not_on_the_terminal() -> None:
    """The package logs what it cannot read; where no logging is set up, Python would print it."""
    program = "import sys; from xenoglot import mcp_tools\nwith mcp_tools(sys.argv[1:]) as tools: print(len(tools))"
    done = subprocess.run([sys.executable, "-c", program, *SERVER, "junk"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


@contextmanager
def refusing(status: int, **head: str) -> Iterator[str]:
    """Give the URL of a server that answers everything with `status`."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            for name, value in {**head, "content-length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "head", "problem"),
    [
        pytest.param(401, {"www-authenticate": "Bearer"}, "it asks for a key", id="no-key"),
        pytest.param(403, {}, "it does not take the key", id="forbidden"),
        pytest.param(307, {"location": "http://127.0.0.1:9/"}, "Redirect to http://127.0.0.1:9/ not", id="redirect"),
    ],
)
async def test_a_server_that_lets_nobody_in(status: int, head: dict[str, str], problem: str) -> None:
    with refusing(status, **head) as url, pytest.raises(ConfigurationError, match=f"does not answer: {problem}"):
        async with mcp_tools(url=f"{url}?key=sk-1", headers={"Authorization": "Bearer sk-2"}, patience=120):
            pytest.fail("it is there")


async def test_a_key_that_cannot_be_sent_is_not_shown() -> None:
    with pytest.raises(ConfigurationError) as raised:
        async with mcp_tools(url="http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer sk-1\nx"}, patience=120):
            pytest.fail("it is there")
    assert "sk-1" not in str(raised.value)
