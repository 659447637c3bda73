"""The first ten minutes of somebody who lives in a terminal: an empty home, a shell, and the commands of the page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.terminal.tmux import XENOGLOT, Terminal
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.terminal.conftest import Home

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
SECTION = re.compile(r"^## Ten minutes in a terminal\n.*?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENDED = re.compile(r"Traceback|command not found|xenoglot: ")
READS = answers("chat", text="", tool=("read_file", '{"path": "note.txt"}'))


def lines_of_the_page() -> list[str]:
    """The commands of the page, without comments."""
    found = SECTION.search(PAGE.read_text(encoding="utf-8"))
    assert found
    return [re.sub(r" +# .*", "", line) for line in found[1].splitlines() if line.strip()]


@pytest.fixture
def upstream() -> Generator[Upstream]:
    """A server with one model; the agent's first answer is a call."""
    agent = RequestMatcher(contains=b"What is in this folder?", stream=True)
    with Upstream(ScriptRule(steps=READS.streamed(), when=agent, times=1), *answers("chat").rules()) as served:
        yield served


class Shell:
    """A shell in a terminal; its prompt counts the commands."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.count = 1

    def enter(self, line: str) -> None:
        """Wait for the prompt, and type a command."""
        self.terminal.until(rf"^{self.count}\$ *$")
        self.terminal.type("clear", "Enter")
        self.terminal.until(rf"^{self.count + 1}\$ *$")
        self.terminal.type(line, "Enter")
        self.count += 2

    def result(self) -> str:
        """Wait for the next prompt; return what the command printed."""
        screen = self.terminal.until(rf"^{self.count}\$ *$", all_of_it=True)
        assert not ENDED.search(screen), screen
        return screen

    def run(self, line: str) -> str:
        """Type a command, and return what it printed."""
        self.enter(line)
        return self.result()


def test_the_first_ten_minutes(home: Home, upstream: Upstream) -> None:
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    path = f"{Path(XENOGLOT).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {"HOME": str(home), "PS1": "\\#$ ", "PATH": path, "XDG_CACHE_HOME": cache, "XDG_STATE_HOME": ""}
    lines = iter(lines_of_the_page())
    with Terminal(["bash", "--norc", "-i"], home=home, environ=environ, width=110, height=50) as terminal:
        shell = Shell(terminal)
        assert "Use a model:" in shell.run(next(lines))
        assert len(shell.run(next(lines)).splitlines()) > 1  # the embedded model needs no server
        export = next(lines)
        shell.run(re.sub(r"http://\S+", upstream.url, export))
        assert "scripted" in shell.run(next(lines))
        assert "Hello." in shell.run(next(lines))
        shell.run(next(lines))
        assert "Hello." in shell.run(next(lines))
        assert prompts(upstream) == ["What is the secret word?\n\nThe secret word is banana.\n"]
        assert "Hello." in shell.run(next(lines))
        assert prompts(upstream) == ["What is the secret word?\n\nThe secret word is banana.\n", "Spell it."]
        shell.enter(next(lines))
        terminal.until(r"^> *$")
        for typed in (next(lines), "/usage"):
            terminal.type(typed.removeprefix("> "), "Enter")
            terminal.until(rf"{re.escape(typed.removeprefix('> '))}(.|\n)*^> *$")
        terminal.type(next(lines).removeprefix("> "), "Enter")
        assert "Hello." in shell.result()
        told = shell.run(next(lines))
        assert "read_file" in told
        assert "Hello." in told
        tools = {tool["function"]["name"] for tool in upstream.requests[-1].json["tools"]}
        assert tools & {"edit_file", "write_file", "run"} == set()
        assert "banana" in str(upstream.requests[-1].json["messages"][-1]["content"])
        shell.enter(next(lines))
        terminal.until(r"\[exit code 0\]")
    assert next(lines, None) is None
    kept = sorted(path.name for path in (home / ".local" / "state" / "xenoglot").iterdir())
    assert kept == ["agent", "ask-conversation.json", "chat-history"]
    assert (home / "note.txt").read_text(encoding="utf-8") == "The secret word is banana.\n"


def prompts(upstream: Upstream) -> list[str]:
    """What the user said in the last request."""
    return [turn["content"] for turn in upstream.requests[-1].json["messages"] if turn["role"] == "user"]
