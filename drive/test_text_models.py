"""Claude Code and Codex before a server that takes no tools, whose model writes its calls and thoughts as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drive.script import Wanted
from drive.test_claude_code import PNG, claude
from drive.test_codex import MODELS, codex, items, wanted
from drive.writer import THOUGHT
from xenoglot.model.content import Image, Text

if TYPE_CHECKING:
    from drive.conftest import DriveSetup
    from drive.writer import Writer
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request


def words(request: Request) -> list[tuple[str, str]]:
    """Return the turns of what the server was sent, as (role, text)."""
    return [
        (turn.role, "".join(part.text for part in turn.content if isinstance(part, Text))) for turn in request.messages
    ]


def blocks(told: list[JSONObject], kind: str) -> list[JSONObject]:
    """Return the blocks of one kind in what Claude Code heard."""
    heard = [block for line in told if line["type"] == "assistant" for block in line["message"]["content"]]
    return [block for block in heard if block["type"] == kind]


def test_claude_code_works(writing: tuple[DriveSetup, Writer]) -> None:
    """Two commands at once, of which one fails; a file that is read and edited; a picture."""
    drive_setup, writer = writing
    notes = drive_setup.work / "notes.txt"
    notes.write_text("one\ntwo\n")
    (drive_setup.work / "dot.png").write_bytes(PNG)
    one = Wanted("Bash", {"command": "echo '</tool_call> one'", "description": "Say one"})
    two = Wanted("Bash", {"command": "echo two >&2; exit 3", "description": "Fail"})
    edit = {"file_path": str(notes), "old_string": "two", "new_string": 'a "third"\n<parameter=x>', "replace_all": True}
    drive_setup.speaker.script(
        writer.writes(one, two, text="Two at once."),
        writer.writes(Wanted("Read", {"file_path": str(notes)})),
        writer.writes(Wanted("Edit", edit)),
        writer.writes(Wanted("Read", {"file_path": str(drive_setup.work / "dot.png")})),
        writer.writes(text="All done."),
    )
    told = claude(drive_setup, "do it")
    assert told[-1]["result"] == "All done."
    assert notes.read_text() == 'one\na "third"\n<parameter=x>\n'
    assert [block["name"] for block in blocks(told, "tool_use")] == ["Bash", "Bash", "Read", "Edit", "Read"]
    assert [block["thinking"] for block in blocks(told, "thinking")] == [THOUGHT] * (5 if writer.thinks else 0)
    requests = drive_setup.speaker.requests
    second, last = words(requests[1]), words(requests[-1])
    assert "</tool_call> one" in second[-1][1]
    assert second[-1][1].index("</tool_call> one") < second[-1][1].index("[tool error] Exit code 3\ntwo")
    assert last[: len(second)] == second
    assert any(isinstance(part, Image) for part in requests[-1].messages[-1].content)


def test_claude_code_counts_its_context(writing: tuple[DriveSetup, Writer]) -> None:
    drive_setup, writer = writing
    drive_setup.speaker.script(writer.writes(text="unused"))
    told = claude(drive_setup, "/context")
    assert not told[-1]["is_error"]


@pytest.mark.parametrize("model", MODELS)
def test_codex_works(writing: tuple[DriveSetup, Writer], model: str) -> None:
    """A command and a patch, whichever form of tools the slug has Codex choose."""
    drive_setup, writer = writing
    command, patch = wanted(model)
    drive_setup.speaker.script(
        writer.writes(command, text="I make a file."), writer.writes(patch), writer.writes(text="Both are there.")
    )
    events = codex(drive_setup, model, "make two files")
    assert (drive_setup.work / "made.txt").read_text() == "from a command\n"
    assert (drive_setup.work / "patched.txt").read_text() == "from a patch\n"
    assert [item["text"] for item in items(events, "agent_message")] == ["I make a file.", "Both are there."]
    assert events[-1]["type"] == "turn.completed"
    first, second, third = map(words, drive_setup.speaker.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert "from a command" in second[-1][1]
