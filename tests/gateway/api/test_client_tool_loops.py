"""Tools that a provider defines and the client runs: whole loops of the official SDKs over a server of plain functions.

A turn asks and gets a call in the client's own form; the next brings its output, which the server gets as a result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import openai
import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CLICK: JSONObject = {"type": "click", "button": "left", "x": 1, "y": 2}
PATCH: JSONObject = {"type": "create_file", "path": "a.txt", "diff": "+a"}
SHELL_OUTPUT: JSONObject = {"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
PREVIEW: JSONObject = {
    "type": "computer_use_preview",
    "display_width": 800,
    "display_height": 600,
    "environment": "linux",
}

CASES: dict[str, tuple[JSONObject, JSONObject, JSONObject, JSONObject, str]] = {
    "shell": (
        {"type": "shell", "environment": {"type": "local"}},
        {"commands": ["ls"], "timeout_ms": 9},
        {"type": "shell_call", "action": {"commands": ["ls"], "timeout_ms": 9, "max_output_length": None}},
        {"type": "shell_call_output", "output": [SHELL_OUTPUT]},
        "a.txt",
    ),
    "local_shell": (
        {"type": "local_shell"},
        {"command": ["ls"]},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "local_shell_call_output", "output": "a.txt"},
        "a.txt",
    ),
    "apply_patch": (
        {"type": "apply_patch"},
        PATCH,
        {"type": "apply_patch_call", "operation": PATCH},
        {"type": "apply_patch_call_output", "status": "failed", "output": "read-only"},
        "read-only",
    ),
    "computer": (
        {"type": "computer"},
        {"actions": [CLICK]},
        {"type": "computer_call", "actions": [CLICK], "pending_safety_checks": []},
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": PIXEL}},
        PIXEL,
    ),
    "computer_use_preview": (
        PREVIEW,
        {"action": CLICK},
        {"type": "computer_call", "action": CLICK, "pending_safety_checks": []},
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": PIXEL}},
        PIXEL,
    ),
}
"""Of each kind the tool, what the model calls it with, the call, an output, and what the server gets of that."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def url(upstream: Upstream) -> Iterator[str]:
    with DialectGateway(upstream) as running:
        yield running.url


def plan(upstream: Upstream, name: str, arguments: JSON, *, stream: bool) -> None:
    """Let the server call a tool, then be done."""
    upstream.forget()
    calls = answers("chat", text="", tool=(name, json.dumps(arguments))).rules()
    done = answers("chat", text="Done.").rules()
    upstream.script(replace(calls[0 if stream else 1], times=1), *done)


def without_nulls(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def sent(upstream: Upstream, number: int) -> JSONObject:
    body: JSONObject = json.loads(upstream.requests[number].body)
    return body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", CASES)
def test_openai_runs_its_tools_over_a_server_of_functions(
    upstream: Upstream, url: str, kind: str, *, stream: bool
) -> None:
    tool, arguments, expected, output, told = CASES[kind]
    name = "computer" if kind == "computer_use_preview" else kind
    plan(upstream, name, arguments, stream=stream)
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", timeout=TIMEOUT, max_retries=0)

    def ask(items: list[JSON], **more: JSON) -> JSON:
        asked: JSONObject = {"model": "m", "input": items, "tools": [tool], **more}
        if not stream:
            return client.responses.create(**asked)
        with client.responses.stream(**asked) as events:
            return events.get_final_response()

    items: list[JSON] = [{"role": "user", "content": "Do."}]
    first = ask(items, tool_choice="required" if kind == "local_shell" else {"type": kind})
    (call,) = first.output
    assert call.model_dump(include=set(expected), exclude_none=True) == without_nulls(expected)
    assert call.status == "completed"
    answered = {"id": call.call_id} if kind == "local_shell" else {"call_id": call.call_id}
    second = ask([*items, call.model_dump(exclude_none=True), {**output, **answered}])
    assert second.output_text == "Done."

    offered = sent(upstream, 0)
    assert [entry["function"]["name"] for entry in offered["tools"]] == [name]
    forced = {"type": "function", "function": {"name": name}}
    assert offered["tool_choice"] == ("required" if kind == "local_shell" else forced)
    history = sent(upstream, 1)["messages"]
    (written,) = [message for message in history if message.get("tool_calls")]
    assert json.loads(written["tool_calls"][0]["function"]["arguments"]).keys() >= arguments.keys()
    (result,) = [message for message in history if message["role"] == "tool"]
    assert result["tool_call_id"] == written["tool_calls"][0]["id"]
    assert told in json.dumps(history)
