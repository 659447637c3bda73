"""Claude Code through the gateway to a server of each dialect: parallel tools, a picture, a web search, its context."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

from drive.script import Wanted, calls, says
from xenoglot.model.content import Image, Text, ToolResult

if TYPE_CHECKING:
    from drive.conftest import Stage
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def claude(stage: Stage, prompt: str) -> list[JSONObject]:
    """Return the messages of one run."""
    flags = ("--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read,Edit,WebSearch,ToolSearch")
    printed = stage.run("claude", "-p", prompt, *flags, ANTHROPIC_BASE_URL=stage.url, ANTHROPIC_API_KEY="none", **QUIET)
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def results(request: Request) -> list[ToolResult]:
    """Return all tool results in a request."""
    return [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]


def words(result: ToolResult) -> str:
    """Return the text of a result."""
    return "".join(part.text for part in result.content if isinstance(part, Text))


def test_tools_at_once_and_a_picture(stage: Stage) -> None:
    (stage.work / "dot.png").write_bytes(PNG)
    one = Wanted("Bash", {"command": "echo one | tee one.txt", "description": "Write one"})
    two = Wanted("Bash", {"command": "echo two | tee two.txt", "description": "Write two"})
    look = Wanted("Read", {"file_path": str(stage.work / "dot.png")})
    stage.speaker.will(calls(one, two, text="Two at once."), calls(look), says("All done."))
    told = claude(stage, "write two files, then look at dot.png")
    assert told[-1]["result"] == "All done."
    assert not told[-1]["is_error"]
    assert [(stage.work / name).read_text() for name in ("one.txt", "two.txt")] == ["one\n", "two\n"]
    _, second, third = stage.speaker.requests
    assert [words(result) for result in results(second)] == ["one", "two"]
    pictures = [part for message in third.messages for part in message.content if isinstance(part, Image)]
    pictures += [part for result in results(third) for part in result.content if isinstance(part, Image)]
    assert len(pictures) == 1


def test_a_web_search_is_refused(stage: Stage) -> None:
    """pitfall-30: the search is a request of its own; who cannot search says so, and the turn goes on."""
    load = Wanted("ToolSearch", {"query": "select:WebSearch"})
    search = Wanted("WebSearch", {"query": "weather on the moon"})
    there = stage.speaker.dialect.name == "messages"
    searched = (says("Cold."),) if there else ()
    stage.speaker.will(calls(load), calls(search), *searched, says("That is all I know."))
    told = claude(stage, "search the web for the weather on the moon")
    assert told[-1]["result"] == "That is all I know."
    *_, last = stage.speaker.requests
    heard = words(results(last)[-1])
    assert "Cold." in heard if there else "cannot run `web_search_20250305`" in heard


def test_the_context_is_counted(stage: Stage) -> None:
    stage.speaker.will(says("unused"))
    told = claude(stage, "/context")
    assert not told[-1]["is_error"]
