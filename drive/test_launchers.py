"""Claude Code and Codex, started by `xenoglot run` in a home whose own settings would send them elsewhere."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from drive.conftest import CLIENTS, PATIENCE, Place, furnished, gateway
from drive.home_folder import OURS, WRITTEN, contents, is_written_by
from drive.script import Wanted, calls, text_turn
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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


OWN = {"hasCompletedOnboarding": True, "tipsHistory": {"new-user-warmup": 1}}
"""What the owner has in the file that Claude Code writes to."""

TURNS = {
    "claude": ("-p", "are you there?"),
    "codex": (
        *("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        "are you there?",
    ),
}
SECRET = re.compile(rb"xg-[A-Za-z0-9_-]{40}|http://127\.0\.0\.1:(?!9\b)\d+")
"""The key of a run, and the address of its gateway or of the server behind."""

UNSURE = {".claude/backups*", ".codex/*.sqlite-shm", ".codex/*.sqlite-wal", ".codex/shell_snapshots*"}
"""Patterns of what is gone again at times when a client has ended."""


@pytest.fixture
def speaker() -> Iterator[DialectServer]:
    with DialectServer(dialects.get("chat")) as speaker:
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


def found_new(home: Path, before: Mapping[str, tuple[int, bytes | None]], client: str) -> dict[str, bytes | None]:
    """Return what is new in a home that a client was run in; nothing that was there may be gone or have changed."""
    after = contents(home)
    kept = {path: found for path, found in before.items() if not is_written_by(client, path)}
    assert {path: after.get(path) for path in kept} == kept
    return {path: data for path, (_, data) in after.items() if path not in before}


@pytest.mark.parametrize("client", TURNS)
def test_findings_clients_1_the_home_is_what_the_client_makes_of_it(
    speaker: DialectServer, home: Path, client: str
) -> None:
    """Settings of any program stay as they are; new is what the client writes by itself, and no key or address."""
    (home / ".zshrc").write_text("export EDITOR=vi\n")
    (home / ".claude.json").write_text(json.dumps(OWN))
    (home / ".config" / "opencode").mkdir(parents=True)
    (home / ".config" / "opencode" / "opencode.json").write_text("{}")
    before = contents(home)
    speaker.script(text_turn("Here."))
    assert "Here." in started(home, client, "--upstream", speaker.url, "--model", "large", "--", *TURNS[client])
    new = found_new(home, before, client)
    assert [path for path in new if path not in OURS and not is_written_by(client, path)] == []
    written = [data for data in new.values() if data is not None]
    assert written
    assert not any(SECRET.search(data) for data in written)
    said = json.loads((home / ".claude.json").read_text())
    assert OWN.items() <= said.items()


@pytest.mark.parametrize("client", TURNS)
def test_findings_clients_1_a_client_writes_as_much_by_itself(tmp_path: Path, client: str) -> None:
    """What is allowed above is what it writes when it is started without us."""
    dialect = {"claude": "messages", "codex": "responses"}[client]
    with DialectServer(dialects.get(dialect)) as speaker:
        speaker.script(text_turn("Here."))
        home, work = furnished(tmp_path)
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(CODEX.replace(ELSEWHERE, speaker.url))
        before = contents(home)
        place = Place(url=speaker.url, home=home, work=work)
        owned = {"ANTHROPIC_BASE_URL": speaker.url, "ANTHROPIC_API_KEY": "none", **QUIET}
        assert "Here." in place.run(client, *TURNS[client], **owned)
        new = found_new(home, before, client)
    assert {path for path in new if not is_written_by(client, path)} <= {f".{client}"}
    assert {pattern for pattern in WRITTEN[client] if not any(fnmatchcase(path, pattern) for path in new)} <= UNSURE


def test_claude_code(speaker: DialectServer, home: Path) -> None:
    speaker.script(
        calls(Wanted("Bash", {"command": "echo one > one.txt", "description": "Write one"})), text_turn("All done.")
    )
    flags = ("--output-format", "stream-json", "--verbose", "--allowedTools", "Bash")
    printed = started(home, "claude", "--upstream", speaker.url, "--model", "large", "--", "-p", "write a file", *flags)
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert told[-1]["result"] == "All done."
    assert (home.parent / "work" / "one.txt").read_text() == "one\n"
    assert {request.model for request in speaker.requests} == {"large"}
    assert json.loads((home / ".claude" / "settings.json").read_text()) == SETTINGS


def test_claude_code_knows_the_context_window(speaker: DialectServer, home: Path) -> None:
    """findings-clients-3: it assumed a million tokens for a model that it does not know, and said so."""
    speaker.script(text_turn("Here."))
    flags = ("--upstream", speaker.url, "--model", "large", "--context", "32768")
    assert started(home, "claude", *flags, "--", "-p", "are you there?") == "Here.\n"


def test_codex(speaker: DialectServer, home: Path) -> None:
    speaker.script(calls(Wanted("exec_command", {"cmd": "echo one > one.txt"})), text_turn("All done."))
    flags = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    printed = started(
        home, "codex", "--upstream", speaker.url, "--model", "large", "--", "exec", *flags, "write a file"
    )
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert [one["item"]["text"] for one in told if one.get("item", {}).get("type") == "agent_message"] == ["All done."]
    assert (home.parent / "work" / "one.txt").read_text() == "one\n"
    assert {request.model for request in speaker.requests} == {"large"}
    assert (home / ".codex" / "config.toml").read_text() == CODEX


def test_a_gateway_that_runs(speaker: DialectServer, home: Path) -> None:
    speaker.script(text_turn("Here."))
    with gateway(home, "--upstream", speaker.url, "--model", "large") as running:
        printed = started(home, "claude", "--gateway", running.url, "--model", "other", "--", "-p", "are you there?")
    assert printed == "Here.\n"
