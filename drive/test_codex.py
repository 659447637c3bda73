"""Codex through the gateway to a server of each dialect: a command, a patch, an MCP server; compaction; resumption."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drive.conftest import PATIENCE
from drive.script import Wanted, calls, text_turn
from xenoglot.model.content import Text, ToolResult
from xenoglot.model.request import Tool
from xenoglot.policy.context_edits import INSTRUCTIONS

if TYPE_CHECKING:
    from drive.conftest import DriveSetup
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

CONFIG = """
model = "{model}"
model_provider = "gateway"
model_auto_compact_token_limit = {limit}
[model_providers.gateway]
name = "{name}"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "GATEWAY_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""

MCP = f"""
[mcp_servers.words]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(Path(__file__).with_name("mcp_server.py")))}]
required = true
startup_timeout_sec = {PATIENCE}
"""
"""A server that Codex waits for before it asks."""

PATCH = "*** Begin Patch\n*** Add File: patched.txt\n+from a patch\n*** End Patch\n"

MODELS = ["gpt-5.5", "gpt-6.1-sol", "somebody-elses"]
"""Slugs by which Codex chooses the form of its requests: `custom` tools in `tools`; `additional_tools` with namespaces,
in one of them a free-text tool that runs programs; functions alone."""


def codex(
    drive_setup: DriveSetup,
    model: str,
    *arguments: str,
    limit: int = 1_000_000,
    more: str = "",
    provider: str = "gateway",
) -> list[JSONObject]:
    """Return the events of one run; `more` are further lines of the settings, `provider` is the name of the server."""
    home = drive_setup.home / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        CONFIG.format(model=model, name=provider, url=drive_setup.url, limit=limit) + more
    )
    flags = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    printed = drive_setup.run("codex", "exec", *flags, *arguments, GATEWAY_KEY="none")
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def items(events: list[JSONObject], kind: str) -> list[JSONObject]:
    """Return the items of one kind that were completed."""
    done = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item for item in done if item["type"] == kind]


def texts(request: Request) -> list[str]:
    """Return all words in the messages of a request."""
    return [part.text for message in request.messages for part in message.content if isinstance(part, Text)]


def functions(request: Request) -> list[Tool]:
    """Return the tools of a request that the client runs."""
    return [tool for tool in request.tools if isinstance(tool, Tool)]


def results(request: Request) -> list[str]:
    """Return the words of all tool results in a request."""
    found = [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]
    return ["".join(part.text for part in result.content if isinstance(part, Text)) for result in found]


def wanted(model: str) -> tuple[Wanted, Wanted]:
    """Return a call that runs a command and one that applies a patch, as the model of that slug would write them."""
    command = "echo from a command | tee made.txt"
    if model == "gpt-6.1-sol":
        run = f"text(await tools.exec_command({json.dumps({'cmd': command})}));"
        return Wanted("exec", run), Wanted("exec", f"text(await tools.apply_patch({json.dumps(PATCH)}));")
    shell = Wanted("exec_command", {"cmd": f"apply_patch <<'END'\n{PATCH}END"})
    return Wanted("exec_command", {"cmd": command}), Wanted("apply_patch", PATCH) if model == "gpt-5.5" else shell


@pytest.mark.parametrize("model", MODELS)
def test_a_command_and_a_patch(drive_setup: DriveSetup, model: str) -> None:
    command, patch = wanted(model)
    drive_setup.speaker.script(calls(command, text="I make a file."), calls(patch), text_turn("Both are there."))
    events = codex(drive_setup, model, "make two files")
    assert (drive_setup.work / "made.txt").read_text() == "from a command\n"
    assert (drive_setup.work / "patched.txt").read_text() == "from a patch\n"
    assert [item["text"] for item in items(events, "agent_message")] == ["I make a file.", "Both are there."]
    assert events[-1]["type"] == "turn.completed"
    assert events[-1]["usage"]["input_tokens"] == 300
    _, second, third = drive_setup.speaker.requests
    assert "from a command" in results(second)[0]
    assert len(results(third)) == 2


@pytest.mark.parametrize("model", ["gpt-5.5", "somebody-elses"])
def test_findings_clients_2_a_tool_of_an_mcp_server(drive_setup: DriveSetup, model: str) -> None:
    """By its slug Codex has the model search for tools, which it runs itself, or names them all at once."""
    searches = model == "gpt-5.5"
    search = [calls(Wanted("tool_search", {"query": "say a text backwards"}))] if searches else []
    drive_setup.speaker.script(*search, calls(Wanted("backwards", {"text": "tolgonex"})), text_turn("It is xenoglot."))
    events = codex(drive_setup, model, "say tolgonex backwards", more=MCP)
    (call,) = items(events, "mcp_tool_call")
    assert (call["server"], call["tool"], call["arguments"]) == ("words", "backwards", {"text": "tolgonex"})
    assert (call["status"], call["error"]) == ("completed", None)
    assert [item["text"] for item in items(events, "agent_message")] == ["It is xenoglot."]
    assert events[-1]["type"] == "turn.completed"
    first, *_, last = drive_setup.speaker.requests
    offered = [any(tool.name.endswith("backwards") for tool in functions(asked)) for asked in (first, last)]
    assert offered == [not searches, True]
    assert "xenoglot" in results(last)[-1]
    assert len(results(last)) == (2 if searches else 1)


def test_the_conversation_is_resumed(drive_setup: DriveSetup) -> None:
    drive_setup.speaker.script(text_turn("The word is xylophone."))
    codex(drive_setup, "gpt-5.5", "tell me a word")
    drive_setup.speaker.script(text_turn("It was xylophone."))
    events = codex(drive_setup, "gpt-5.5", "resume", "--last", "which word was it?")
    assert [item["text"] for item in items(events, "agent_message")] == ["It was xylophone."]
    (request,) = drive_setup.speaker.requests
    said = texts(request)
    assert said.index("tell me a word") < said.index("The word is xylophone.") < said.index("which word was it?")


def test_the_history_is_compacted(drive_setup: DriveSetup) -> None:
    """What we report as usage makes Codex compact: a request for a summary, then one that begins with it."""
    drive_setup.speaker.script(
        calls(Wanted("exec_command", {"cmd": "echo far"}), tokens=90_000),
        text_turn("SUMMARY: it went far."),
        text_turn("Going on.", tokens=1_000),
    )
    codex(drive_setup, "gpt-5.5", "go far", limit=50_000)
    _, asked, after = drive_setup.speaker.requests
    assert "far" in results(asked)[0]
    assert any("SUMMARY: it went far." in text for text in texts(after))
    assert results(after) == []


def test_the_history_is_compacted_by_the_gateway(drive_setup: DriveSetup) -> None:
    """Of a provider named OpenAI, Codex wants a compaction as an item of its own, which the gateway makes."""
    drive_setup.speaker.script(
        calls(Wanted("exec_command", {"cmd": "echo far"}), tokens=90_000),
        text_turn("SUMMARY: it went far."),
        text_turn("Going on.", tokens=1_000),
    )
    events = codex(drive_setup, "gpt-5.5", "go far", limit=50_000, provider="OpenAI")
    assert [item["text"] for item in items(events, "agent_message")] == ["Going on."]
    assert events[-1]["type"] == "turn.completed"
    _, asked, after = drive_setup.speaker.requests
    assert texts(asked)[-1] == INSTRUCTIONS
    assert "far" in results(asked)[0]
    assert any("SUMMARY: it went far." in text for text in texts(after))
    assert results(after) == []
