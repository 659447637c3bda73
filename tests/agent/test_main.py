"""The command `xenoglot agent`: what flags mean, what is printed, and how it ends."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.agent.scripted_agent import text_answer, tool_call_answer
from tests.architecture.tree import ROOT
from tests.exact import exact
from xenoglot import cli
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import MISUSE, REQUEST_REFUSED, UNREACHABLE
from xenoglot.gateway.process import gateway_backend
from xenoglot.model.failure import Failure
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from xenoglot.gateway.config.load import Config

DEADLINE = 120.0
SECRET = "sk-0123456789-secret"
WRITE = tool_call_answer(("write_file", {"path": "made.txt", "content": "one\n"}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that is where we are, with nobody at a terminal."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from the pipe")))
    return folder


@pytest.fixture
def play(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:  # noqa: ARG001  it has to be there
    """Have a script answer whatever flags say."""

    def play(*turns: Response | Failure) -> Scripted:
        model = Scripted(*turns)

        @asynccontextmanager
        async def opening(_: Config, **_others: object) -> AsyncGenerator[Scripted]:
            yield model

        monkeypatch.setattr(gateway_backend, "open_gateway_backend", opening)
        return model

    return play


def names(model: Scripted) -> set[str]:
    return {str(getattr(tool, "name", "")) for tool in model.requests[0].tools}


def session_id(noted: str) -> str:
    return noted.rpartition("--resume ")[2].strip("]\n ")


def test_a_prompt_is_worked_on_and_the_answer_printed(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    model = play(tool_call_answer(("read_file", {"path": "a.txt"})), text_answer("It says hello."))
    assert cli.main(["agent", "what is in a.txt?", "--plain"]) == 0
    out, err = capsys.readouterr()
    assert out == "It says hello.\n"
    assert err.split("\n")[:2] == ['> read_file {"path":"a.txt"}', "  hello"]
    assert names(model) == {"list_dir", "read_file", "find", "search", "plan"}
    assert exact(model.requests[0].messages[0]).count("Workspace: project") == 1


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        pytest.param([], set(), id="nobody-to-ask"),
        pytest.param(["--allow-write"], {"edit_file", "write_file"}, id="write"),
        pytest.param(["--allow-shell"], {"run"}, id="shell"),
        pytest.param(["--read-only"], set(), id="read-only"),
    ],
)
def test_flags_say_what_it_may_do(play: Callable[..., Scripted], flags: list[str], more: set[str]) -> None:
    model = play(text_answer("ok"))
    assert cli.main(["agent", "go", "--no-session", *flags]) == 0
    assert names(model) - {"list_dir", "read_file", "find", "search", "plan"} == more


@pytest.mark.parametrize(
    ("arguments", "typed", "out"),
    [
        pytest.param(["/tools", "--plain"], "", "list_dir, read_file, find, search, plan\n", id="c-s10-argument"),
        pytest.param([], "/memory\n", "no notes of the project were read\n", id="c-s10-pipe"),
        pytest.param(["/plan", "--json"], "", '{"event":"note","text":"there is no plan"}\n', id="c-s10-json"),
    ],
)
def test_a_command_is_answered_without_the_model(  # noqa: PLR0913, PLR0917  fixtures and the case
    play: Callable[..., Scripted],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    typed: str,
    out: str,
) -> None:
    model = play(text_answer("paid for"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    assert cli.main(["agent", *arguments]) == 0
    assert (capsys.readouterr(), model.requests) == ((out, ""), [])
    assert not list(folder.parent.glob("state/**/*.jsonl"))


def test_a_misspelt_command_is_a_mistake_and_a_path_is_a_prompt(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    model = play(text_answer("Users."))
    assert cli.main(["agent", "/stauts"]) == MISUSE
    assert "did you mean `/status`?" in capsys.readouterr().err
    assert (cli.main(["agent", "/etc/passwd what is it?", "--no-session"]), len(model.requests)) == (0, 1)


class Terminal(io.StringIO):
    """Somebody who types these lines."""

    def isatty(self) -> bool:
        return True


def typing(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Have somebody sit at a terminal and type these lines."""
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


@pytest.mark.parametrize(
    ("answers", "written", "told"),
    [
        pytest.param(["y"], True, "made.txt: written", id="yes"),
        pytest.param(["n"], False, "", id="no"),
        pytest.param([], False, "", id="gone"),
        pytest.param(["put it elsewhere"], False, "put it elsewhere", id="a-reason"),
    ],
)
def test_a_person_is_asked_before_anything_is_changed(  # noqa: PLR0913  a case has as many sides
    play: Callable[..., Scripted],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[str],
    *,
    written: bool,
    told: str,
) -> None:
    model = play(WRITE, text_answer("ok"))
    typing(monkeypatch, *answers)
    assert cli.main(["agent", "go", "--plain"]) == 0
    assert (folder / "made.txt").exists() is written
    assert told in exact(model.requests[1].messages[-1])


def test_always_is_asked_once(play: Callable[..., Scripted], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = tool_call_answer(("write_file", {"path": "too.txt", "content": "two\n"}), first=2)
    play(WRITE, again, text_answer("ok"))
    typing(monkeypatch, "always")
    assert cli.main(["agent", "go", "--plain"]) == 0
    assert (folder / "too.txt").exists()


def test_a_conversation_goes_on_until_the_person_leaves(
    play: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = play(text_answer("one"), text_answer("two"))
    typing(monkeypatch, "first", "", "/help", "/tools", "/usage", "second", "/exit", "never")
    assert cli.main(["agent", "--plain"]) == 0
    out, err = capsys.readouterr()
    assert out == "one\ntwo\n"
    assert "run (asks)" in err
    assert "10 tokens in, 5 out, 1 answers, 0 calls" in err
    assert len(model.requests[1].messages) == 4


def test_a_session_is_listed_and_gone_on_with(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    model = play(text_answer("one"), text_answer("two"), text_answer("three"))
    assert cli.main(["agent", "first\nthing", "--plain"]) == 0
    name = session_id(capsys.readouterr().err)
    assert cli.main(["agent", "--sessions"]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith(f"{name}  20")
    assert listed.endswith("  project  first?thing\n")
    assert cli.main(["agent", "more", "--plain", "--resume", name]) == 0
    assert cli.main(["agent", "and more", "--plain", "--continue"]) == 0
    assert [len(request.messages) for request in model.requests] == [2, 4, 6]
    assert session_id(capsys.readouterr().err) == name


def test_nothing_secret_is_kept_or_printed(
    play: Callable[..., Scripted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # c-w15
    monkeypatch.setenv("MODEL_KEY", SECRET)
    model = play(
        tool_call_answer(("run", {"command": f"echo [$MODEL_KEY] {SECRET}"})), text_answer(f"The key is {SECRET}.")
    )
    flags = ["--upstream", "http://127.0.0.1:9", "--model", "m", "--key-env", "MODEL_KEY", "--allow-shell", "--json"]
    assert cli.main(["agent", f"is it {SECRET}?", *flags]) == 0
    kept = "".join(path.read_text() for path in (tmp_path / "state").rglob("*.jsonl"))
    assert "[redacted]" in kept
    assert SECRET not in kept + "".join(capsys.readouterr())
    assert "[] [redacted]" in exact(model.requests[1].messages[-1])


def test_events_are_printed_as_json(play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]) -> None:
    play(tool_call_answer(("run", {"command": "echo hello"})), text_answer("Said."))
    assert cli.main(["agent", "go", "--json", "--allow-shell"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["event"] for event in events]
    assert [kind for kind in kinds if kind not in ("model_event", "messages_added")] == [
        "round_started",
        "round_ended",
        "call_started",
        "call_progress",
        "call_ended",
        "round_started",
        "round_ended",
        "run_ended",
        "note",
    ]
    assert "text_delta" in [event.get("kind") for event in events]
    ended = events[kinds.index("call_ended")]
    assert ended["output"]["data"] == {"command": "echo hello", "exit_code": 0, "timed_out": False}
    assert events[kinds.index("run_ended")]["result"]["outcome"] == "answered"


REFUSAL = Response(candidates=(Candidate(finish=Finish(reason="refusal")),))


@pytest.mark.parametrize(
    ("turns", "flags", "code", "told"),
    [
        pytest.param([text_answer("ok")], [], 0, "", id="answered"),
        pytest.param(
            [Failure(kind="permission", message="not you")],
            [],
            REQUEST_REFUSED,
            "failed: not you",
            id="refused-by-server",
        ),
        pytest.param(
            [Failure(kind="overloaded", message="busy", operator_message="HTTP 503 from http://u: busy")],
            [],
            UNREACHABLE,
            "failed: HTTP 503 from http://u: busy",
            id="failed",
        ),
        pytest.param([tool_call_answer(("list_dir", {}))], ["--max-rounds", "1"], 4, "limit: ", id="limit"),
        pytest.param([tool_call_answer(("list_dir", {}))], ["--max-calls", "1"], 5, "budget: ", id="budget-of-calls"),
        pytest.param([text_answer("ok")], ["--max-tokens-total", "1"], 5, "budget: ", id="budget-of-tokens"),
        pytest.param([text_answer("ok")], ["--max-seconds", "0"], 5, "budget: ", id="budget-of-seconds"),
        pytest.param([REFUSAL], [], 6, "refused: ", id="refused"),
    ],
)
def test_the_exit_code_tells_how_it_ended(  # noqa: PLR0913, PLR0917  a case has as many sides
    play: Callable[..., Scripted],
    capsys: pytest.CaptureFixture[str],
    turns: list[Response | Failure],
    flags: list[str],
    code: int,
    told: str,
) -> None:
    play(*turns)
    assert cli.main(["agent", "go", "--plain", *flags]) == code
    assert told in capsys.readouterr().err


def test_a_budget_is_one_for_the_whole_session(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    play(text_answer("ok"))
    assert cli.main(["agent", "go", "--plain"]) == 0
    name = session_id(capsys.readouterr().err)
    assert cli.main(["agent", "go", "--plain", "--resume", name, "--max-tokens-total", "15"]) == 5
    assert "budget" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param(["go", "--folder", "missing"], "no such folder", id="no-folder"),
        pytest.param(["go", "--folder", "/"], "root of the machine", id="root"),
        pytest.param(["go", "--resume", "../x"], "no name of a session", id="odd-name"),
        pytest.param(["go", "--resume", "20200101-000000-abcdef"], "no session", id="no-session"),
        pytest.param(["go", "--continue"], "no session to continue", id="nothing-to-go-on-with"),
        pytest.param(["go", "--read-only", "--allow-shell"], "exclude each other", id="contradiction"),
        pytest.param(["go", "--max-rounds", "0"], "at least 1", id="no-rounds"),
        pytest.param(["go", "--max-cost", "nan"], "0 or more", id="odd-cost"),
        pytest.param(["go", "--mcp", "servers.json"], "`--allow-mcp`", id="mcp-and-nobody-to-ask"),
        pytest.param([" "], "nothing to do", id="empty"),
    ],
)
def test_a_mistake_is_one_line(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str], flags: list[str], told: str
) -> None:
    play(text_answer("never"))
    assert cli.main(["agent", *flags]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "answers", "code", "told"),
    [
        pytest.param(["--allow-mcp"], None, 0, "5", id="allowed"),
        pytest.param([], ["n"], 0, "not run", id="denied"),
    ],
)
def test_tools_of_mcp_servers_are_asked_for_or_allowed(  # noqa: PLR0913, PLR0917  a case has as many sides
    play: Callable[..., Scripted],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    answers: list[str] | None,
    code: int,
    told: str,
) -> None:
    server = {"command": sys.executable, "args": ["-m", "tests.tools.mcp_server"], "cwd": str(ROOT)}
    (folder.parent / "servers.json").write_text(json.dumps({"mcpServers": {"my": server}}))
    model = play(tool_call_answer(("my__add", {"a": 2, "b": 3})), text_answer("ok"))
    if answers is not None:
        typing(monkeypatch, *answers)
    assert cli.main(["agent", "go", "--mcp", "../servers.json", "--plain", *flags]) == code
    assert told in exact(model.requests[1].messages[-1])


def test_a_session_stays_in_its_folder(play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]) -> None:
    play(text_answer("one"))
    assert cli.main(["agent", "go", "--plain"]) == 0
    name = session_id(capsys.readouterr().err)
    assert cli.main(["agent", "go", "--plain", "--folder", "..", "--resume", name]) == 2
    assert "of another folder" in capsys.readouterr().err


def test_a_model_of_a_configuration_file_is_named(play: Callable[..., Scripted], folder: Path) -> None:
    file = folder.parent / "xenoglot.toml"
    file.write_text(
        '[upstreams.main]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9"\n'
        '[[models]]\nname = "*"\nupstream = "main"\n'
    )
    model = play(text_answer("ok"))
    assert cli.main(["agent", "go", "--no-session", "--config", str(file), "--model", "large"]) == 0
    assert model.requests[0].model == "large"


@pytest.mark.parametrize("flags", [[], ["-"]])
def test_a_prompt_comes_from_a_pipe(play: Callable[..., Scripted], flags: list[str]) -> None:
    model = play(text_answer("ok"))
    assert cli.main(["agent", *flags, "--no-session"]) == 0
    assert "from the pipe" in exact(model.requests[0].messages[-1])


# The command, with a model that calls `run` again and again, as its own process.
ENDLESS = """
import sys
from contextlib import asynccontextmanager
from tests.agent.scripted_agent import tool_call_answer
from xenoglot import cli
from xenoglot.gateway.process import gateway_backend
from xenoglot.backends.scripted import Scripted

@asynccontextmanager
async def opening(config, **others):
    yield Scripted(tool_call_answer(("run", {"command": "echo x >> log; sleep 0.01"})))

gateway_backend.open_gateway_backend = opening
sys.exit(cli.main(["agent", "go", "--plain", "--allow-shell", "--max-rounds", "100000"]))
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGKILL, -signal.SIGKILL, id="killed"), pytest.param(signal.SIGINT, 130, id="interrupted")],
)
def test_work_that_was_stopped_can_be_gone_on_with(
    play: Callable[..., Scripted], folder: Path, capsys: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], env=environ, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + DEADLINE
    log = folder / "log"
    try:
        while time.monotonic() < deadline and not (log.exists() and log.stat().st_size >= 6):
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(DEADLINE) == code
    finally:
        process.kill()
    model = play(text_answer("fine"))
    assert cli.main(["agent", "go on", "--continue", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (ended,) = [event for event in events if event["event"] == "run_ended"]
    spent = ended["result"]["spent"]
    calls = exact(model.requests[0].messages).count("ToolCall(")
    assert calls == exact(model.requests[0].messages).count("ToolResult(")
    assert calls >= 2
    assert spent["model_calls"] >= calls
    assert spent["input_tokens"] == 10 * spent["model_calls"]


def test_each_of_several_keys_in_one_variable_is_kept_secret(
    play: Callable[..., Scripted], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OURS", f"{SECRET} another-0123456789")
    monkeypatch.setenv("COPY", SECRET)
    (folder / "x.toml").write_text(
        '[upstreams.a]\ndialect = "chat"\nbase_url = "http://127.0.0.1:1"\nkey_env = "OURS"\n'
    )
    play(tool_call_answer(("run", {"command": f"echo {SECRET}; env | grep -e COPY -e OURS; true"})), text_answer("ok"))
    assert cli.main(["agent", "go", "--config", "x.toml", "--allow-shell", "--json"]) == 0
    out = capsys.readouterr().out
    assert SECRET not in out
    assert '"text":"[redacted]"' in out


def test_a_folder_may_have_a_name_that_is_no_text(
    play: Callable[..., Scripted], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkdir(os.fsencode(folder) + b"/odd\xff")  # noqa: PTH102  a name that `Path` has no literal for
    model = play(text_answer("ok"), text_answer("ok"))
    flags = ["--folder", os.fsdecode(b"odd\xff"), "--system", os.fsdecode(b"\xff"), "--plain"]
    assert cli.main(["agent", "go", *flags]) == 0
    assert cli.main(["agent", "go on", "--continue", *flags]) == 0
    assert r"odd\\udcff" in exact(model.requests[1].messages[0])
    assert cli.main(["agent", "--sessions"]) == 0
    assert r"odd\udcff  go" in capsys.readouterr().out
