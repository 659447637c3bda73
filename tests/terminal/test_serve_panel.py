"""`xenoglot serve` at a terminal: the panel, the command in it, pasted, and the line of each request."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.terminal.tmux import GLANCE, PATIENCE, XENOGLOT, Terminal
from xenoglot.testing.canned import answers
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.terminal.conftest import Home


@pytest.fixture
def upstream() -> Generator[Upstream]:
    """A server that answers with a word."""
    with Upstream(*answers("chat").rules()) as served:
        yield served


def pasted(screen: str) -> str:
    """Run the command that the panel shows in a shell; return its output."""
    command = re.search(r"Try:\n\n(.*?)\n\nStop with Ctrl-C\.", screen, re.DOTALL)
    assert command
    done = subprocess.run(["sh", "-c", command[1]], capture_output=True, text=True, check=True)
    return done.stdout


def panel_of(screen: str) -> str:
    """The panel with a port that is always the same."""
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", screen[: screen.index("Try:")]).strip()


def test_the_embedded_model_greets_and_answers(home: Home) -> None:
    with Terminal([XENOGLOT, "serve", "--port", "0"], home=home, width=160) as terminal:
        screen = terminal.until("Stop with Ctrl-C")
        assert panel_of(screen).splitlines() == [
            "Xenoglot is listening on http://127.0.0.1:8080",
            "",
            "  OpenAI clients     http://127.0.0.1:8080/v1",
            "  Anthropic clients  http://127.0.0.1:8080",
            "  Models             smollm2-135m-instruct, all-minilm-l6-v2 (embeddings)",
            "                     other names: answered by smollm2-135m-instruct",
            "  API key            not needed; any value works",
            "  Console            http://127.0.0.1:8080/console",
        ]
        assert json.loads(pasted(screen))["choices"][0]["message"]["content"]
        line = (
            r"^\d\d:\d\d:\d\d POST /v1/chat/completions  smollm2-135m-instruct -> embedded/smollm2-135m-instruct  200  "
        )
        terminal.until(line + r"\d+\.\d s  \d+ in \d+ out$")
        url = re.search(r"http://127\.0\.0\.1:\d+", screen)
        assert url
        ask = ["ask", "--upstream", url[0], "--model", "gpt-x", "--max-tokens", "4", "Hello!"]
        subprocess.run([XENOGLOT, *ask], capture_output=True, check=True)
        terminal.until(r"gpt-x -> embedded/smollm2-135m-instruct \(unknown model, answered by another\)  200")
        terminal.type("", "C-c")
        terminal.until(r"\[exit code 0\]")


def test_an_upstream_whose_models_are_not_known_lists_them(home: Home, upstream: Upstream) -> None:
    command = [XENOGLOT, "serve", "--port", "0", "--upstream", upstream.url]
    with Terminal(command, home=home, width=160) as terminal:
        screen = terminal.until("Stop with Ctrl-C")
        assert "all names: sent to upstream unchanged" in screen
        assert [model["id"] for model in json.loads(pasted(screen))["data"]] == ["scripted"]
        terminal.until(r"^\d\d:\d\d:\d\d GET /v1/models  200  \d+\.\d s$")


def test_a_key_of_clients_is_in_the_command(home: Home, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_KEYS", "sk-of-the-client")
    command = [XENOGLOT, "serve", "--port", "0", "--upstream", upstream.url, "--model", "large"]
    environ = {"CLIENT_KEYS": "sk-of-the-client"}
    with Terminal([*command, "--client-key-env", "CLIENT_KEYS"], home=home, width=160, environ=environ) as terminal:
        screen = terminal.until("Stop with Ctrl-C")
        assert "  API key            required: a key in $CLIENT_KEYS" in screen.splitlines()
        assert "other names: answered by large" in screen
        assert "sk-of-the-client" not in screen
        assert json.loads(pasted(screen))["choices"][0]["message"]["content"] == "Hello."
        assert upstream.requests[-1].json["model"] == "large"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_terminal_that_is_closed_ends_it(home: Home, upstream: Upstream, workers: int) -> None:
    """It went on without anybody who could see or stop it: SIGHUP is a reload everywhere else."""
    program = f"echo $$ > {home}/pid; exec {XENOGLOT} serve --port 0 --workers {workers} --upstream {upstream.url}"
    with Terminal(["sh", "-c", program], home=home, width=160) as terminal:
        screen = terminal.until("Stop with Ctrl-C")
        assert "  Models             all names: sent to upstream unchanged" in screen.splitlines()
        pid = int((home / "pid").read_text())
        os.kill(pid, signal.SIGHUP)
        url = re.search(r"http://127\.0\.0\.1:\d+", terminal.until("configuration"))
        assert url
        port = int(url[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)):  # a reload does not end it
            pass
    deadline = time.monotonic() + PATIENCE
    with suppress(ConnectionRefusedError):
        while time.monotonic() < deadline:
            socket.create_connection(("127.0.0.1", port)).close()
            time.sleep(GLANCE)
        pytest.fail("it still listens")


def test_a_model_of_ones_own_greets(home: Home) -> None:
    (home / "shouting.py").write_text("def shout(prompt: str) -> str:\n    return prompt.upper()\n", encoding="utf-8")
    command = [XENOGLOT, "serve", "--port", "0", "--python", "shouting:shout"]
    with Terminal(command, home=home, width=160) as terminal:
        screen = terminal.until("Stop with Ctrl-C")
        assert json.loads(pasted(screen))["choices"][0]["message"]["content"] == "HELLO!"
