"""Runs in the background: started, listed, followed and ended, with the real command and a scripted server."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xenoglot import cli
from xenoglot.agent.follow_log import print_log
from xenoglot.agent.screen import JSONScreen
from xenoglot.agent.session.lock import holder
from xenoglot.agent.session.session_files import Sessions, folder_of
from xenoglot.backends.redaction import Redactor
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import BlockEnded, TextDelta
from xenoglot.model.request import Message
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, ScriptRule, WaitEvent
from xenoglot.testing.upstream import Upstream
from xenoglot.tools.events import ApprovalReceived, CallEnded, CallStarted, Compacted, ModelEvent
from xenoglot.tools.tool import Approval
from xenoglot.tools.tool_output import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEADLINE = 120.0
SECRET = "sk-0123456789-secret"
ANSWER = answers("chat", text=f"It says {SECRET}, hello.")
HELD = ScriptRule(steps=(WaitEvent("go"), *ANSWER.streamed()), when=RequestMatcher(method="POST"))
"""An answer that comes once the test says so."""
LASTING = json.dumps({"command": "echo $$ > shell.pid; sleep 1000 & echo $! > sleep.pid; wait"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace that is where we are; what still works on at the end of a test is killed."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MODEL_KEY", SECRET)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    yield folder
    for pid, _ in stored_sessions().running():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stored_sessions() -> Sessions:
    return Sessions(folder_of(os.environ), Redactor())


def agent(*arguments: str, stdin: str = "") -> str:
    """Run the real command, and return what it printed."""
    command = [sys.executable, "-m", "xenoglot", "agent", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert done.stderr == ""
    return done.stdout


def run_command(server: Upstream) -> list[str]:
    return ["--upstream", server.url, "--model", "m", "--key-env", "MODEL_KEY", "--background"]


def wait_for(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not look():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Whether a process is there, and not only waits to be taken note of."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_run_goes_on_by_itself_and_is_followed(capsys: pytest.CaptureFixture[str]) -> None:  # c-s8, c-w15
    with Upstream(HELD) as server:
        name = agent("-", *run_command(server), stdin=f"my prompt {SECRET}").strip()
        server.wait(lambda: len(server.requests) == 1)
        ((pid, session),) = stored_sessions().running()
        assert session.started.id == name
        assert cli.main(["agent", "--ps"]) == 0
        listed = capsys.readouterr().out
        assert listed.split()[:2] == [str(pid), name]
        assert listed.endswith("  project  my prompt [redacted]\n")
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert command.endswith(b"\0agent\0--detached\0")
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
        assert os.getsid(pid) == pid
        server.release("go")
        assert cli.main(["agent", "--logs", name, "--follow"]) == 0
    followed = capsys.readouterr().out
    assert followed == f"It says [redacted], hello.\n[session {name}: go on with --resume {name}]\n"
    assert list(stored_sessions().running()) == []
    log = stored_sessions().path(name).with_suffix(".log")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert SECRET not in log.read_text() + stored_sessions().path(name).read_text()
    assert server.requests[0].header("authorization") == f"Bearer {SECRET}"
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()][-2:] == ["run_ended", "note"]


def test_a_run_is_ended_with_its_commands_and_gone_on_with(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:  # c-s8
    lasting = answers("chat", text="", tool=("run", LASTING))
    with Upstream(
        ScriptRule(steps=lasting.streamed(), times=1), ScriptRule(steps=answers("chat").streamed())
    ) as server:
        assert cli.main(["agent", "first", "--allow-shell", *run_command(server)]) == 0
        name = capfd.readouterr().out.strip()
        pids = folder / "sleep.pid"
        wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"))
        assert cli.main(["agent", "again", "--resume", name, *run_command(server)]) == 2
        assert "another process works in the session" in capfd.readouterr().err
        assert cli.main(["agent", "--kill", name]) == 0
        assert capfd.readouterr().out == f"{name} has ended\n"
        left = [int((folder / file).read_text()) for file in ("shell.pid", "sleep.pid")]
        wait_for(lambda: not any(map(lives, left)))
        assert list(stored_sessions().running()) == []
        assert cli.main(["agent", "second", "--resume", name, *run_command(server)]) == 0
        assert capfd.readouterr().out == f"{name}\n"
        assert cli.main(["agent", "--logs", name, "--follow"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith('> run {"command": "echo $$')
    assert "[interrupted]" in lines
    assert lines[-2:] == ["Hello.", f"[session {name}: go on with --resume {name}]"]


def test_ctrl_c_leaves_the_run_that_is_followed_alone(capfd: pytest.CaptureFixture[str]) -> None:  # c-s8
    with Upstream(HELD) as server:
        assert cli.main(["agent", "go", *run_command(server)]) == 0
        name = capfd.readouterr().out.strip()
        path = stored_sessions().path(name)
        path.with_suffix(".log").write_text('{"event":"note","text":"begun"}\n')
        command = [sys.executable, "-m", "xenoglot", "agent", "--logs", name, "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == b"begun\n"
            following.send_signal(signal.SIGINT)
            assert following.wait(DEADLINE) == 130
        assert holder(path) is not None
        server.release("go")
        wait_for(lambda: holder(path) is None)
        assert '"outcome":"answered"' in path.read_text()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param(["go", "--background", "--no-session"], "exclude each other", id="no-session"),
        pytest.param(["--background"], "nothing to do", id="no-prompt"),
        pytest.param(["go", "--background", "--folder", "missing"], "no such folder", id="no-folder"),
        pytest.param(["go", "--background", "--mcp", "servers.json"], "`--allow-mcp`", id="nobody-to-ask"),
        pytest.param(["--follow"], "`--logs ID`", id="follow-what"),
        pytest.param(["--logs", "../x"], "no name of a session", id="odd-name"),
        pytest.param(["--logs", "20200101-000000-abcdef"], "has no log", id="no-log"),
        pytest.param(["--kill", "20200101-000000-abcdef"], "no run of the session", id="no-run"),
        pytest.param(["--detached"], "use that", id="by-hand"),
    ],
)
def test_a_mistake_is_one_line(capfd: pytest.CaptureFixture[str], flags: list[str], told: str) -> None:
    assert cli.main(["agent", *flags]) == 2
    out, err = capfd.readouterr()
    assert (out, told in err, err.count("\n")) == ("", True, 1)
    assert not folder_of(os.environ).exists()


def test_a_session_nobody_works_in_is_not_killed(capfd: pytest.CaptureFixture[str]) -> None:
    name = "20200101-000000-abcdef"
    stored_sessions().begin(name, created=1.0, workspace="/w", model=None).close()
    assert cli.main(["agent", "--kill", name]) == 2
    assert "no run of the session" in capfd.readouterr().err
    assert cli.main(["agent", "--ps"]) == 0
    assert capfd.readouterr().out == ""


def test_who_reads_the_session_it_works_in_is_still_known() -> None:
    name = "20200101-000000-abcdef"
    file = stored_sessions().begin(name, created=1.0, workspace="/w", model=None)
    assert len(list(stored_sessions().listed())) == 1
    file.add(Message(role="user", content=(Text(text="hello"),)))
    assert agent("--ps").split()[:2] == [str(os.getpid()), name]
    file.close()
    assert agent("--ps") == ""


@pytest.mark.parametrize("kind", ["approval_received", "approval_given"], ids=["of-today", "of-the-last-release"])
def test_a_log_is_printed_as_a_terminal_would_have_shown_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    call = ToolCall(id="1", name="run", arguments="{}")
    written = io.StringIO()
    screen = JSONScreen(Redactor(), written)
    for event in (
        ModelEvent(event=TextDelta("one\ntw\x1b")),
        ModelEvent(event=TextDelta("o")),
        ModelEvent(event=BlockEnded()),
        CallStarted(call=call, round=1),
        CallEnded(call=call, output=ToolOutput(content=(Text(text="out"),), is_error=True)),
        ApprovalReceived(call=call, approval=Approval(allowed=False)),
        Compacted(before=10, after=5, messages=()),
    ):
        screen.feed(event)
    screen.problem("budget: spent")
    odd = b'no JSON\x1b[2J\n{"event":"call_ended"}\n{"event":"of another version"}\n[1]\n{"half'
    log = written.getvalue().replace("approval_received", kind).encode()
    (tmp_path / "x.log").write_bytes(log + odd)
    print_log(tmp_path / "x.jsonl", follow=False)
    assert capsys.readouterr().out.splitlines() == [
        "one",
        "tw?o",
        "> run {}",
        "  failed:",
        "  out",
        "> run was not allowed",
        "[the conversation was shortened: about 10 tokens, now 5]",
        "xenoglot: budget: spent",
        "no JSON?[2J",
        "[1]",
    ]
