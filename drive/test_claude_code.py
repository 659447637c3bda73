"""Claude Code through the gateway to a server of each dialect: parallel tools, a picture, a web search, its context."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

from drive.script import Wanted, calls, text_turn
from xenoglot.model.content import Image, Text, ToolResult

if TYPE_CHECKING:
    from drive.conftest import DriveSetup
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def claude(drive_setup: DriveSetup, prompt: str) -> list[JSONObject]:
    """Return the messages of one run."""
    flags = ("--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read,Edit,WebSearch,ToolSearch")
    printed = drive_setup.run(
        "claude", "-p", prompt, *flags, ANTHROPIC_BASE_URL=drive_setup.url, ANTHROPIC_API_KEY="none", **QUIET
    )
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def results(request: Request) -> list[ToolResult]:
    """Return all tool results in a request."""
    return [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]


def words(result: ToolResult) -> str:
    """Return the text of a result."""
    return "".join(part.text for part in result.content if isinstance(part, Text))


def test_tools_at_once_and_a_picture(drive_setup: DriveSetup) -> None:
    (drive_setup.work / "dot.png").write_bytes(PNG)
    one = Wanted("Bash", {"command": "echo one | tee one.txt", "description": "Write one"})
    two = Wanted("Bash", {"command": "echo two | tee two.txt", "description": "Write two"})
    look = Wanted("Read", {"file_path": str(drive_setup.work / "dot.png")})
    drive_setup.speaker.script(calls(one, two, text="Two at once."), calls(look), text_turn("All done."))
    told = claude(drive_setup, "write two files, then look at dot.png")
    assert told[-1]["result"] == "All done."
    assert not told[-1]["is_error"]
    assert [(drive_setup.work / name).read_text() for name in ("one.txt", "two.txt")] == ["one\n", "two\n"]
    _, second, third = drive_setup.speaker.requests
    assert [words(result) for result in results(second)] == ["one", "two"]
    pictures = [part for message in third.messages for part in message.content if isinstance(part, Image)]
    pictures += [part for result in results(third) for part in result.content if isinstance(part, Image)]
    assert len(pictures) == 1


def test_a_web_search_is_refused(drive_setup: DriveSetup) -> None:
    """pitfall-30: the search is a request of its own; who cannot search says so, and the turn goes on."""
    load = Wanted("ToolSearch", {"query": "select:WebSearch"})
    search = Wanted("WebSearch", {"query": "weather on the moon"})
    there = drive_setup.speaker.dialect.name == "messages"
    searched = (text_turn("Cold."),) if there else ()
    drive_setup.speaker.script(calls(load), calls(search), *searched, text_turn("That is all I know."))
    told = claude(drive_setup, "search the web for the weather on the moon")
    assert told[-1]["result"] == "That is all I know."
    *_, last = drive_setup.speaker.requests
    heard = words(results(last)[-1])
    assert "Cold." in heard if there else "cannot run `web_search_20250305`" in heard


def test_the_context_is_counted(drive_setup: DriveSetup) -> None:
    drive_setup.speaker.script(text_turn("unused"))
    told = claude(drive_setup, "/context")
    assert not told[-1]["is_error"]


def test_set_up_for_bedrock(drive_setup: DriveSetup) -> None:
    """Its settings for Bedrock: bodies of InvokeModel, answers in binary messages, no credentials of AWS."""
    look = Wanted("Bash", {"command": "echo one", "description": "Say one"})
    drive_setup.speaker.script(calls(look), text_turn("All done."))
    bedrock = {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "AWS_REGION": "eu-central-1"}
    flags = ("--output-format", "stream-json", "--verbose", "--allowedTools", "Bash")
    printed = drive_setup.run(
        "claude", "-p", "say one", *flags, ANTHROPIC_BEDROCK_BASE_URL=drive_setup.url, **bedrock, **QUIET
    )
    told = json.loads(printed.splitlines()[-1])
    assert (told["result"], told["is_error"]) == ("All done.", False)
    *_, last = drive_setup.speaker.requests
    assert [words(result) for result in results(last)] == ["one"]
