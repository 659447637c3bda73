"""`xenoglot ask`, beside what `tests/test_cli.py` has of it: what goes along, and what a terminal is shown."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.terminal.tmux import XENOGLOT, Terminal
from xenoglot.testing.canned import answers
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.terminal.conftest import Home


@pytest.fixture
def upstream() -> Generator[Upstream]:
    """A server whose answer would clear the screen."""
    with Upstream(*answers("chat", text="\x1b[2JHello.").rules()) as served:
        yield served


def run_ask(upstream: Upstream, *flags: str) -> tuple[int, str, str]:
    """How one question went."""
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", "Well?", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_files_go_along(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    (tmp_path / "b.gif").write_bytes(b"GIF89a")
    flags = ("--file", str(tmp_path / "a.txt"), "--image", str(tmp_path / "b.gif"))
    assert run_ask(upstream, *flags) == (0, "\x1b[2JHello.\n", "")
    (message,) = upstream.requests[0].json["messages"]
    assert message["content"] == [
        {"type": "text", "text": "a.txt:\n```\none\n```"},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}},
        {"type": "text", "text": "Well?"},
    ]


def test_a_file_that_is_not_there_is_a_mistake(upstream: Upstream) -> None:
    assert run_ask(upstream, "--file", "/no/such") == (
        2,
        "",
        "xenoglot: `/no/such` cannot be read: No such file or directory\n",
    )
    assert upstream.requests == []


def test_json_is_the_whole_answer(upstream: Upstream) -> None:
    code, out, err = run_ask(upstream, "--json")
    told: dict[str, Any] = json.loads(out)
    assert (code, err, told["losses"]) == (0, "", [])
    assert told["response"]["candidates"][0]["content"][0]["text"] == "\x1b[2JHello."
    assert told["response"]["usage"]["output_tokens"] == 3


def test_a_terminal_does_not_obey(upstream: Upstream, home: Home) -> None:
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", "Well?"]
    with Terminal(command, home=home) as terminal:
        assert terminal.until("exit code") == "�[2JHello.\n[exit code 0]"
