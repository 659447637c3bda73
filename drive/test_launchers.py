"""Claude Code and Codex, started by `xenoglot run` in a home whose own settings would send them elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from drive.conftest import CLIENTS, PATIENCE, furnished, gateway
from drive.script import Wanted, calls, says
from tests.matrix.speaker import Speaker
from xenoglot import dialect_registry as dialects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ELSEWHERE = "http://127.0.0.1:9"
QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
CODEX = f"""
model = "gpt-5.5"
model_provider = "elsewhere"
[model_providers.elsewhere]
name = "elsewhere"
base_url = "{ELSEWHERE}/v1"
wire_api = "responses"
[analytics]
enabled = false
"""
SETTINGS = {
    "env": {"ANTHROPIC_BASE_URL": ELSEWHERE, "ANTHROPIC_API_KEY": "sk-of-theirs", "CLAUDE_CODE_USE_BEDROCK": "1"},
    "model": "opus",
}


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    with Speaker(dialects.get("chat")) as speaker:
        yield speaker


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with settings of its owner."""
    home, _ = furnished(tmp_path)
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps(SETTINGS))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX)
    return home


def started(home: Path, *arguments: str) -> str:
    """Return what a program printed that `xenoglot run` started; it must have ended well."""
    path = os.pathsep.join((str(CLIENTS / "bin"), str(CLIENTS / "node_modules" / ".bin"), os.environ["PATH"]))
    data = {"HOME": str(home), "PATH": path, "XDG_DATA_HOME": str(home / "data"), "HTTP_PROXY": ELSEWHERE}
    process = subprocess.Popen(
        [sys.executable, "-m", "xenoglot.cli", "run", *arguments],
        cwd=home.parent / "work",
        env={**data, **QUIET},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            printed, complained = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, f"{printed}\n{complained}"
    return printed


def test_claude_code(speaker: Speaker, home: Path) -> None:
    speaker.will(
        calls(Wanted("Bash", {"command": "echo one > one.txt", "description": "Write one"})), says("All done.")
    )
    flags = ("--output-format", "stream-json", "--verbose", "--allowedTools", "Bash")
    printed = started(home, "claude", "--upstream", speaker.url, "--model", "large", "--", "-p", "write a file", *flags)
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert told[-1]["result"] == "All done."
    assert (home.parent / "work" / "one.txt").read_text() == "one\n"
    assert {request.model for request in speaker.requests} == {"large"}
    assert json.loads((home / ".claude" / "settings.json").read_text()) == SETTINGS


def test_claude_code_knows_the_context_window(speaker: Speaker, home: Path) -> None:
    """findings-clients-3: it assumed a million tokens for a model that it does not know, and said so."""
    speaker.will(says("Here."))
    flags = ("--upstream", speaker.url, "--model", "large", "--context", "32768")
    assert started(home, "claude", *flags, "--", "-p", "are you there?") == "Here.\n"


def test_codex(speaker: Speaker, home: Path) -> None:
    speaker.will(calls(Wanted("exec_command", {"cmd": "echo one > one.txt"})), says("All done."))
    flags = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    printed = started(
        home, "codex", "--upstream", speaker.url, "--model", "large", "--", "exec", *flags, "write a file"
    )
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert [one["item"]["text"] for one in told if one.get("item", {}).get("type") == "agent_message"] == ["All done."]
    assert (home.parent / "work" / "one.txt").read_text() == "one\n"
    assert {request.model for request in speaker.requests} == {"large"}
    assert (home / ".codex" / "config.toml").read_text() == CODEX


def test_a_gateway_that_runs(speaker: Speaker, home: Path) -> None:
    speaker.will(says("Here."))
    with gateway(home, "--upstream", speaker.url, "--model", "large") as running:
        printed = started(home, "claude", "--gateway", running.url, "--model", "other", "--", "-p", "are you there?")
    assert printed == "Here.\n"
