"""Sessions: what is kept, for whose eyes, without secrets, and readable whatever happened to the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from xenoglot.agent.session.session_files import SessionFile, Sessions, folder_of
from xenoglot.agent.session.session_records import INTERRUPTED, SessionSpend, repaired
from xenoglot.backends.redaction import MASK, Redactor
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Opaque, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Role
from xenoglot.tools.budget import RunSpend

NAME = "20261122-120000-abcdef"
LATER = "20261122-130000-abcdef"
SECRET = "sk-very-secret-0123456789"
DEADLINE = 120.0


def text(role: Role, said: str) -> Message:
    return Message(role=role, content=(Text(text=said),))


def calls(*ids: str) -> Message:
    return Message(role="assistant", content=tuple(ToolCall(id=id_, name="run", arguments='{"a": 1}') for id_ in ids))


def results(*ids: str, said: str = "done") -> Message:
    return Message(role="tool", content=tuple(ToolResult(call_id=id_, content=(Text(text=said),)) for id_ in ids))


def interrupted(*ids: str) -> Message:
    told = (Text(text=INTERRUPTED),)
    parts = tuple(ToolResult(call_id=id_, content=told, is_error=True, name="run") for id_ in ids)
    return Message(role="tool", content=parts)


def sessions(folder: Path, *secrets: str) -> Sessions:
    return Sessions(folder / "sessions", Redactor(secrets))


def written_session(folder: Path, *messages: Message, name: str = NAME, secrets: tuple[str, ...] = ()) -> Path:
    """Write a session of these turns, and return its file."""
    file = sessions(folder, *secrets).begin(name, created=1.5, workspace="/work", model="small")
    file.add(*messages)
    file.close()
    return folder / "sessions" / f"{name}.jsonl"


def resumed(folder: Path, name: str = NAME) -> SessionFile:
    file = sessions(folder).resume(name)
    file.close()
    return file


EVERYTHING = (
    text("user", "do it\n\N{SNOWMAN}"),
    replace(
        calls("1", "2"),
        content=(
            Reasoning(text="hm", signature="seal"),
            *calls("1", "2").content,
            Opaque(dialect="chat", data={"x": [1]}),
        ),
    ),
    results("1", "2"),
    text("assistant", "done"),
)


def test_what_was_said_is_read_again(tmp_path: Path) -> None:
    path = written_session(tmp_path, *EVERYTHING)
    file = resumed(tmp_path)
    assert (file.id, file.session.messages, file.session.damaged) == (NAME, EVERYTHING, 0)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_was_spent_and_how_it_ended_is_read_again(tmp_path: Path) -> None:
    file = sessions(tmp_path).begin(NAME, created=1.0, workspace="/w", model=None)
    spent = RunSpend(input_tokens=10, output_tokens=5, cost=None, calls=2)
    file.account(SessionSpend(spent=RunSpend(input_tokens=1)))
    file.account(SessionSpend(spent=spent, outcome="budget"))
    file.close()
    session = resumed(tmp_path).session
    assert (session.spent, session.outcome) == (spent, "budget")


def test_a_rewritten_conversation_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    file = sessions(tmp_path).begin(NAME, created=1.0, workspace="/w", model=None)
    file.add(text("user", "long"), text("assistant", "story"))
    file.rewrite((text("user", "short"),))
    file.add(text("assistant", "end"))
    file.close()
    assert resumed(tmp_path).session.messages == (text("user", "short"), text("assistant", "end"))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(text("user", f"my key is {SECRET}!"), id="said"),
        pytest.param(results("1", said=f"KEY={SECRET}"), id="printed"),
        pytest.param(
            Message(role="assistant", content=(ToolCall(id="1", name="run", arguments=f'{{"key": "{SECRET}"}}'),)),
            id="in-arguments",
        ),
        pytest.param(Message(role="user", content=(Opaque(dialect="chat", data={SECRET: [SECRET]}),)), id="opaque"),
    ],
)
def test_no_secret_is_written(tmp_path: Path, message: Message) -> None:  # c-w15
    data = written_session(tmp_path, calls("1"), message, secrets=(SECRET,)).read_text()
    assert SECRET not in data
    assert MASK in data


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_half_written_line_is_passed_over_and_gone_on_behind(tmp_path: Path, kept: int) -> None:
    path = written_session(tmp_path, text("user", "one"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[1][:kept])
    file = sessions(tmp_path).resume(NAME)
    assert (file.session.messages, file.session.damaged) == ((text("user", "one"),), 1)
    file.add(text("assistant", "two"))
    file.close()
    assert resumed(tmp_path).session.messages == (text("user", "one"), text("assistant", "two"))


@pytest.mark.parametrize(
    "junk",
    [
        b"\0" * 100,
        b"\xff\xfe",
        b"{}",
        b"[]",
        b'{"type": "turns", "messages": 1}',
        b'{"type": "unheard-of"}',
        b"[" * 9999,
    ],
)
def test_junk_in_the_middle_is_passed_over(tmp_path: Path, junk: bytes) -> None:
    path = written_session(tmp_path, text("user", "one"))
    first, second = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + junk + b"\n" + second + b"\n")
    assert (resumed(tmp_path).session.messages, resumed(tmp_path).session.damaged) == ((text("user", "one"),), 1)


@pytest.mark.parametrize(
    "data",
    [b"", b"junk\n", b'{"type":"begun","version":99,"id":"x","created":1.0,"workspace":"/w"}\n'],
    ids=["empty", "junk", "another-version"],
)
def test_what_is_no_session_is_a_mistake(tmp_path: Path, data: bytes) -> None:
    written_session(tmp_path).write_bytes(data)
    with pytest.raises(ConfigurationError, match=f"`{NAME}` cannot be read"):
        resumed(tmp_path)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", "x", f"{NAME}/..", f"{NAME}\n"])
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name of a session"):
        sessions(tmp_path).resume(name)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    written_session(tmp_path, name=LATER).rename(tmp_path / "elsewhere")
    (tmp_path / "sessions" / f"{NAME}.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="no session"):
        sessions(tmp_path).resume(NAME)


def test_two_processes_do_not_write_into_one_session(tmp_path: Path) -> None:
    file = sessions(tmp_path).begin(NAME, created=1.0, workspace="/w", model=None)
    with pytest.raises(ConfigurationError, match="another process works in"):
        sessions(tmp_path).resume(NAME)
    file.close()
    sessions(tmp_path).resume(NAME).close()


def test_the_newest_of_a_folder_is_found(tmp_path: Path) -> None:
    written_session(tmp_path, name=NAME)
    written_session(tmp_path, text("user", "what for"), name=LATER)
    (tmp_path / "sessions" / "stray.jsonl").touch()
    assert [session.started.id for session in sessions(tmp_path).listed()] == [LATER, NAME]
    assert [session.title for session in sessions(tmp_path).listed()] == ["what for", ""]
    assert sessions(tmp_path).newest("/work") == LATER
    with pytest.raises(ConfigurationError, match="no session to continue"):
        sessions(tmp_path).newest("/elsewhere")


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param([calls("1")], [calls("1"), interrupted("1")], id="no-result"),
        pytest.param([calls("1", "2"), results("1")], [calls("1", "2"), results("1"), interrupted("2")], id="half"),
        pytest.param(
            [calls("1"), text("user", "go on")],
            [calls("1"), interrupted("1"), text("user", "go on")],
            id="in-the-middle",
        ),
        pytest.param([results("1"), text("user", "x")], [text("user", "x")], id="result-of-nothing"),
        pytest.param([calls("1"), results("1", "2")], [calls("1"), results("1")], id="one-result-too-many"),
        pytest.param([calls("1"), results("1"), results("1")], [calls("1"), results("1")], id="twice"),
        pytest.param([text("system", "s"), text("user", "x")], [text("user", "x")], id="instructions-are-not-kept"),
    ],
)
def test_each_call_has_one_result(turns: list[Message], expected: list[Message]) -> None:  # c-w14
    assert list(repaired(turns)) == expected


WRITER = """
import sys
from pathlib import Path
from xenoglot.agent.session.session_files import Sessions
from xenoglot.backends.redaction import Redactor
from xenoglot.model.content import Text
from xenoglot.model.request import Message

file = Sessions(Path(sys.argv[1]), Redactor()).begin(sys.argv[2], created=1.0, workspace="/w", model=None)
number = 0
while True:
    file.add(Message(role="user", content=(Text(text=str(number) + "x" * 10000),)))
    number += 1
"""


def test_a_session_is_readable_after_its_process_was_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "sessions"), NAME])
    path = tmp_path / "sessions" / f"{NAME}.jsonl"
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline and not (path.exists() and path.stat().st_size > 1_000_000):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    session = resumed(tmp_path).session
    said = [part.text for message in session.messages for part in message.content if isinstance(part, Text)]
    assert said == [f"{number}{'x' * 10000}" for number in range(len(said))]
    assert len(said) > 50
    assert session.damaged <= 1


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/state/xenoglot/agent"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/xenoglot/agent"),
        ({"HOME": "/home/me"}, "/home/me/.local/state/xenoglot/agent"),
    ],
)
def test_sessions_are_where_state_is_kept(environ: dict[str, str], expected: str) -> None:
    assert folder_of(environ) == Path(expected)


FIRST = {"type": "begun", "version": 1, "id": NAME, "created": 1, "workspace": "/work"}


@pytest.mark.parametrize(
    "first",
    [
        pytest.param({"created": 1e300}, id="of-no-year"),
        pytest.param({"created": -1}, id="before-time"),
        pytest.param({"id": "\x1b[31m"}, id="of-another-name"),
        pytest.param({"workspace": 5}, id="of-no-folder"),
    ],
)
def test_a_file_that_was_tampered_with_is_no_session(tmp_path: Path, first: dict[str, object]) -> None:
    path = written_session(tmp_path)
    path.write_text(json.dumps({**FIRST, **first}) + "\n")
    with pytest.raises(ConfigurationError, match=f"the session `{NAME}` cannot be read"):
        resumed(tmp_path)
    assert not list(sessions(tmp_path).listed())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[" * 200_000, id="deep"),
        pytest.param('{"type":"turns","messages":[{"role":"user","extra":' + "[" * 200_000, id="deep-in-a-turn"),
        pytest.param('{"type":"account","spent":{"calls":' + "9" * 5000 + "}}", id="endless-number"),
        pytest.param("\0\0\0", id="zeros"),
    ],
)
def test_a_line_that_was_tampered_with_is_passed_over(tmp_path: Path, line: str) -> None:
    path = written_session(tmp_path, text("user", "hello"))
    path.write_text(path.read_text() + line + "\n")
    session = resumed(tmp_path).session
    assert (session.title, session.damaged) == ("hello", 1)


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    written_session(tmp_path)
    file = SessionFile(resumed(tmp_path).session, descriptor, Redactor())
    with pytest.raises(ConfigurationError, match="the session cannot be kept: No space left on device"):
        file.add(text("user", "hello"))
    file.close()
