"""The tool that runs commands: what it tells, what it bounds, and that nothing outlives it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from xenoglot.agent.sandbox import subreaper
from xenoglot.agent.sandbox.environment import for_command
from xenoglot.agent.sandbox.redact_stream import StreamRedactor
from xenoglot.agent.tools import run as module
from xenoglot.agent.tools.run import LONGEST, RunTool
from xenoglot.backends.redaction import Redactor
from xenoglot.model.content import ToolCall
from xenoglot.testing import interrupt
from xenoglot.tools.tool import ToolContext, ToolError, tool

if TYPE_CHECKING:
    from collections.abc import Callable

DEADLINE = 120.0
CALL = ToolCall(id="1", name="run")
ENVIRON = for_command(os.environ)

# Writes its number into a file and sleeps: ended from outside, or never.
SLEEPER = "echo $$ >> pids; exec sleep 1000"


@pytest.fixture
def commanding(tmp_path: Path) -> RunTool:
    return RunTool(str(tmp_path), ENVIRON)


def context(heard: Callable[[str], None] = lambda _: None) -> ToolContext:
    return ToolContext(CALL, 1, heard)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not reaped yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state != b"Z"


def started(folder: Path, count: int) -> list[int]:
    """Return the processes that have written down their numbers, once there are so many."""
    deadline = time.monotonic() + DEADLINE
    path = folder / "pids"
    while time.monotonic() < deadline:
        if path.exists() and len(pids := path.read_text().split()) == count:
            return [int(pid) for pid in pids]
        time.sleep(0.01)
    raise AssertionError(f"no {count} processes have started")


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if not any(map(is_alive, pids)):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("command", "text", "is_error"),
    [
        pytest.param("echo hello", "hello", False, id="output"),
        pytest.param("true", "[no output]", False, id="silent"),
        pytest.param("echo no >&2; exit 3", "no\n[exit code 3]", True, id="c-w16-exit-code-is-an-error"),
        pytest.param("kill -9 $$", "[exit code 137]", True, id="killed"),
        pytest.param("no-such-program 2>/dev/null", "[exit code 127]", True, id="no-such-program"),
        pytest.param("cat; echo end", "end", False, id="no-input"),
        pytest.param("test -t 0 || test -t 1 || tty || true", "not a tty", False, id="no-terminal"),
        pytest.param(r"printf 'a\377b'", "a\N{REPLACEMENT CHARACTER}b", False, id="c-w16-bytes-that-are-no-text"),
    ],
)
async def test_a_command_is_told_of(commanding: RunTool, command: str, text: str, is_error: bool) -> None:  # noqa: FBT001  a case
    output = await commanding.run(context(), command)
    assert (output.text, output.is_error) == (text, is_error)


async def test_output_comes_as_it_is_made_and_programs_see_how_it_ended(commanding: RunTool) -> None:
    heard: list[str] = []
    output = await commanding.run(context(heard.append), "echo one; exit 2")
    assert heard == ["one\n"]
    assert output.data == {"command": "echo one; exit 2", "exit_code": 2, "timed_out": False}


async def test_a_flood_is_cut_in_the_middle(commanding: RunTool) -> None:
    heard: list[str] = []
    output = await commanding.run(context(heard.append), "echo first; yes | head -c 3000000; echo last")
    assert output.text.startswith("first\ny\n")
    assert output.text.endswith("y\nlast")
    assert "\n[... 2988011 bytes left out ...]\n" in output.text
    assert len(output.text) < LONGEST + 100
    assert sum(map(len, heard)) == 200_000


LEFT = [
    pytest.param(f"({SLEEPER}) & ({SLEEPER}) &", 2, id="background"),
    pytest.param(f"setsid sh -c '{SLEEPER}' &", 1, id="session-of-its-own"),
    pytest.param(f"setsid sh -c 'setsid sh -c \"{SLEEPER}\" & ' &", 1, id="daemon"),
    pytest.param(f"trap '' TERM HUP; nohup setsid sh -c '{SLEEPER}' >/dev/null 2>&1 &", 1, id="deaf"),
]
"""Commands that leave processes behind, and how many."""


@pytest.mark.parametrize(("command", "count"), LEFT)
async def test_what_a_command_leaves_behind_is_ended(
    tmp_path: Path, commanding: RunTool, command: str, count: int
) -> None:  # c-w16
    output = await commanding.run(
        context(), f"{command} while [ $(cat pids 2>/dev/null | wc -l) != {count} ]; do :; done"
    )
    assert gone(started(tmp_path, count))
    assert output.text.endswith("had left running were ended]")
    assert not output.is_error


@pytest.mark.parametrize(("command", "count"), LEFT)
async def test_a_cancelled_call_leaves_nothing_behind(
    tmp_path: Path, commanding: RunTool, command: str, count: int
) -> None:  # c-w16
    task = asyncio.ensure_future(commanding.run(context(), f"{command} {SLEEPER}"))
    pids = await asyncio.to_thread(started, tmp_path, count + 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(pids)


@pytest.mark.parametrize(
    ("at", "times"),
    [
        pytest.param(1, 1, id="starting"),
        pytest.param(1, 2, id="starting-twice"),
        pytest.param(2, 1, id="reading"),
    ],
)
async def test_a_call_that_is_cancelled_anywhere_leaves_nothing_behind(
    tmp_path: Path, commanding: RunTool, monkeypatch: pytest.MonkeyPatch, at: int, times: int
) -> None:  # c-w16
    start = asyncio.create_subprocess_exec

    async def starts_late(*command: str, **options: Any) -> asyncio.subprocess.Process:  # noqa: ANN401  its own
        """Return when the command runs, as on a busy machine."""
        process = await start(*command, **options)
        await asyncio.to_thread(started, tmp_path, 1)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starts_late)
    assert await interrupt(commanding.run(context(), SLEEPER), at, times=times)
    pids = await asyncio.to_thread(started, tmp_path, 1)
    assert await asyncio.to_thread(gone, pids)


async def test_a_command_that_takes_too_long_is_ended(commanding: RunTool) -> None:
    output = await commanding.run(context(), "setsid sleep 1000 & sleep 1000", 0.3)
    assert (output.text, output.is_error) == ("[ended after 0.3 s: it took too long]", True)
    assert output.data == {"command": "setsid sleep 1000 & sleep 1000", "exit_code": None, "timed_out": True}


def test_a_command_may_tidy_up_before_it_is_ended(tmp_path: Path) -> None:
    keeper = keeping_process(tmp_path, "trap 'echo tidied; exit 4' TERM; echo $$ > pids; while :; do :; done", "30")
    pids = started(tmp_path, 1)
    assert keeper.communicate(timeout=DEADLINE)[0] == b"tidied\n"  # its input ends
    assert (keeper.returncode, gone(pids)) == (4, True)


def keeping_process(folder: Path, command: str, grace: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        subreaper_command(command, grace), cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    )


def subreaper_command(command: str, grace: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", subreaper.__file__, grace, command)


def test_an_agent_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    keeper = subreaper_command(f"setsid sh -c '{SLEEPER}' & {SLEEPER}", "0.1")
    # The one that starts the keeper is killed; the keeper sees no more than that its input ends.
    parent = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()"
    agent = subprocess.Popen([sys.executable, "-c", parent, *keeper], cwd=tmp_path, start_new_session=True)
    pids = started(tmp_path, 2)
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    assert gone(pids)


async def test_the_keeper_is_not_stopped_by_what_it_keeps(commanding: RunTool) -> None:
    output = await commanding.run(
        context(), "kill -TERM $PPID; kill -HUP $PPID; echo still; kill -INT $PPID; echo here"
    )
    assert output.text == "still\nhere"


@pytest.mark.parametrize("command", ["", "a\0b", "x" * 200_000, "\ud800"])
async def test_a_command_that_cannot_be_started_is_a_mistake(commanding: RunTool, command: str) -> None:
    with pytest.raises(ToolError, match="command"):
        await commanding.run(context(), command)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
async def test_a_time_that_is_none_is_a_mistake(commanding: RunTool, seconds: float) -> None:
    with pytest.raises(ToolError, match="seconds"):
        await commanding.run(context(), "true", seconds)


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="could not be started") as caught:
        await RunTool(str(tmp_path / "gone"), ENVIRON).run(context(), "true")
    assert str(tmp_path) not in str(caught.value)


def test_the_model_is_not_asked_for_the_context(commanding: RunTool) -> None:
    assert tool(commanding.run).spec.parameters["required"] == ["command"]
    assert set(tool(commanding.run).spec.parameters["properties"]) == {"command", "seconds"}


SECRETS = {
    "OPENAI_API_KEY": "sk-123456789",
    "GITHUB_TOKEN": "t",
    "AWS_SECRET_ACCESS_KEY": "s",
    "GH_PAT": "p",
    "API_KEY2": "p",
    "PACKAGES_URL": "https://0123456789abcdef0123@packages.example",
    "DB_PASSWORD": "p",
    "PGPASSWORD": "p",
    "MYSQL_PWD": "p",
    "GOOGLE_APPLICATION_CREDENTIALS": "/x.json",
    "SENTRY_DSN": "d",
    "BASIC_AUTH": "a",
    "DATABASE_URL": "postgres://me:word@host/db",
    "PIP_INDEX_URL": "https://user:word@packages.example/simple",
    "ODD": "known to be a key",
}
INNOCENT = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "PWD": "/x",
    "SSH_AUTH_SOCK": "/tmp/agent",  # noqa: S108  a name
    "KEYBOARD": "de",
    "TOKENIZERS_PARALLELISM": "false",
    "HTTP_PROXY": "http://proxy.example:3128",
    "AUTHOR": "me",
    "LANG": "C.UTF-8",
}


def test_a_command_is_given_no_secrets() -> None:
    given = for_command(SECRETS | INNOCENT, {"known to be a key"})
    assert set(given) & set(SECRETS) == set()
    assert set(INNOCENT) <= set(given)
    assert (given["TERM"], given["GIT_TERMINAL_PROMPT"]) == ("dumb", "0")


async def test_a_command_sees_what_it_was_given_and_no_more(tmp_path: Path) -> None:
    given = for_command({**os.environ, "MY_TOKEN": "hidden", "PLAIN": "shown"})
    output = await RunTool(str(tmp_path), given).run(context(), "echo [$MY_TOKEN] $PLAIN")
    assert output.text == "[] shown"


async def test_secrets_that_a_command_prints_are_taken_out(tmp_path: Path) -> None:
    heard: list[str] = []
    commanding = RunTool(str(tmp_path), ENVIRON, Redactor(["hunter22"]))
    output = await commanding.run(context(heard.append), "echo hunter22")
    assert (output.text, heard) == ("[redacted]", ["[redacted]\n"])


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        pytest.param([b"a hun", b"ter22 b"], ["a ", "[redacted] b", ""], id="in-two"),
        pytest.param([b"h", b"h", b"unter2", b"3"], ["", "h", "", "hunter23", ""], id="none-in-the-end"),
        pytest.param([b"\xe2\x98", b"\x83 hunt"], ["", "\N{SNOWMAN} ", "hunt"], id="half-of-one-at-the-end"),
    ],
)
def test_a_secret_that_comes_in_pieces_is_taken_out(pieces: list[bytes], shown: list[str]) -> None:
    masking = StreamRedactor(Redactor(["hunter22", "another-one"]))
    assert [*(masking.feed(piece) for piece in pieces), masking.feed(b"", last=True)] == shown


async def test_a_command_that_kills_its_keeper_is_ended_all_the_same(tmp_path: Path, commanding: RunTool) -> None:
    output = await commanding.run(
        context(), f"sh -c '{SLEEPER}' & while ! [ -s pids ]; do :; done; echo before; kill -9 $PPID; {SLEEPER}"
    )
    assert (output.text, output.is_error) == ("before\n[exit code 137]", True)
    assert gone([int(pid) for pid in (tmp_path / "pids").read_text().split()])


async def test_a_command_that_gets_away_holds_nobody_up(
    tmp_path: Path, commanding: RunTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", 0.1)
    try:
        output = await commanding.run(
            context(), f"setsid sh -c '{SLEEPER}' & while ! [ -s pids ]; do :; done; kill -9 $PPID"
        )
        assert output.text == "[exit code 137]"
    finally:
        os.kill(started(tmp_path, 1)[0], signal.SIGKILL)
