"""Claude Code on another model: what the program finds, and what stays as it was. A stub stands for the program itself.

The real one is at work in drive/test_claude_code.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gateway.scripted_backends import HELLO
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.personas.new_home import Home

CLAUDE = """#!{python} -IS
import json, os, sys, urllib.request
# As Claude Code does: the address and the token come from the environment, and the prompt after -p.
body = dict(model=os.environ["ANTHROPIC_MODEL"], max_tokens=64, messages=[dict(role="user", content=sys.argv[-1])])
head = {{"content-type": "application/json", "anthropic-version": "2023-06-01"}}
head["authorization"] = "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"]
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), head)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["content"][0]["text"])
sys.exit(7)
"""


@pytest.fixture
def upstream() -> Generator[DialectServer]:
    """A local server with an OpenAI-compatible API, such as vLLM."""
    with DialectServer(dialects.get("chat")) as server:
        yield server


@pytest.fixture
def user(home: Home) -> Home:
    """A home with Claude Code installed, and a login of its own."""
    (home.folder / "bin").mkdir()
    program = home.write("bin/claude", CLAUDE.format(python=sys.executable))
    program.chmod(0o755)
    home.environment["PATH"] = f"{home.folder}/bin{os.pathsep}{home.environment['PATH']}"
    home.environment["ANTHROPIC_API_KEY"] = "sk-ant-of-the-users-own"
    (home.folder / ".claude").mkdir()
    home.write(".claude/settings.json", '{"model": "opus"}')
    return home


def test_claude_code_runs_on_a_local_model(user: Home, upstream: DialectServer) -> None:
    upstream.script(HELLO)
    run = f'xenoglot run claude --upstream {upstream.url} --model qwen3-coder -- -p "Mend the tests."'
    assert user.run(run, code=7).endswith("Hello\n")  # its exit code is the program's
    [request] = upstream.requests
    assert request.model == "qwen3-coder"
    sent = " ".join(f"{name}: {value}" for headers in upstream.headers for name, value in headers.items())
    assert "of-the-users-own" not in sent
    assert (user.folder / ".claude" / "settings.json").read_text() == '{"model": "opus"}'
    assert [path.name for path in (user.folder / ".claude").iterdir()] == ["settings.json"]


def test_what_would_be_set_is_shown_without_keys(user: Home, upstream: DialectServer) -> None:
    shown = user.run(f"xenoglot run claude --print --upstream {upstream.url} --model qwen3-coder")
    assert "ANTHROPIC_BASE_URL" in shown
    assert "of-the-users-own" not in shown
    assert upstream.requests == []


def test_a_program_that_is_not_installed_is_named(home: Home, upstream: DialectServer) -> None:
    home.environment["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    told = home.run(f"xenoglot run claude --upstream {upstream.url} --model m", code=2)
    assert "claude" in told
    assert "Traceback" not in told
