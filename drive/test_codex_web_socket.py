"""Codex over a WebSocket, through the gateway to a server of each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drive.script import Wanted, calls, text_turn
from drive.test_codex import MODELS, codex, items, results, texts, wanted

if TYPE_CHECKING:
    from drive.conftest import DriveSetup

SOCKETS = ("-c", "model_providers.gateway.supports_websockets=true")


@pytest.mark.parametrize("model", MODELS)
def test_a_command_and_a_patch(drive_setup: DriveSetup, model: str) -> None:
    command, patch = wanted(model)
    drive_setup.speaker.script(calls(command, text="I make a file."), calls(patch), text_turn("Both are there."))
    events = codex(drive_setup, model, *SOCKETS, "make two files")
    assert (drive_setup.work / "made.txt").read_text() == "from a command\n"
    assert (drive_setup.work / "patched.txt").read_text() == "from a patch\n"
    assert [item["text"] for item in items(events, "agent_message")] == ["I make a file.", "Both are there."]
    assert events[-1]["type"] == "turn.completed"
    _, second, third = drive_setup.speaker.requests
    assert "from a command" in results(second)[0]
    assert len(results(third)) == 2


def test_requests_continue_one_another_on_one_connection(drive_setup: DriveSetup) -> None:
    """What Codex posts is the whole conversation; here it is what is new, and the upstream still gets all of it."""
    command, patch = wanted("gpt-5.5")
    drive_setup.speaker.script(calls(command), calls(patch), text_turn("Both are there."))
    codex(drive_setup, "gpt-5.5", *SOCKETS, "make two files")
    sizes = [len(texts(request)) + len(results(request)) for request in drive_setup.speaker.requests]
    assert sizes == sorted(sizes)
    assert all("make two files" in texts(request) for request in drive_setup.speaker.requests)


def test_a_conversation_is_resumed_on_another_connection(drive_setup: DriveSetup) -> None:
    drive_setup.speaker.script(text_turn("The word is xylophone."))
    codex(drive_setup, "gpt-5.5", *SOCKETS, "tell me a word")
    drive_setup.speaker.script(text_turn("It was xylophone."))
    events = codex(drive_setup, "gpt-5.5", *SOCKETS, "resume", "--last", "which word was it?")
    assert [item["text"] for item in items(events, "agent_message")] == ["It was xylophone."]
    said = texts(drive_setup.speaker.requests[-1])
    assert said.index("tell me a word") < said.index("The word is xylophone.") < said.index("which word was it?")


def test_the_history_is_compacted(drive_setup: DriveSetup) -> None:
    drive_setup.speaker.script(
        calls(Wanted("exec_command", {"cmd": "echo far"}), tokens=90_000),
        text_turn("SUMMARY: it went far."),
        text_turn("Going on.", tokens=1_000),
    )
    events = codex(drive_setup, "gpt-5.5", *SOCKETS, "go far", limit=50_000)
    assert events[-1]["type"] == "turn.completed"
    after = drive_setup.speaker.requests[-1]
    assert any("SUMMARY: it went far." in text for text in texts(after))
    assert results(after) == []
