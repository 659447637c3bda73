"""Tools that a provider defines and the client runs: whole loops of the official SDKs over a server of plain functions.

A turn asks and gets a call in the client's own form; the next brings its output, which the server gets as a result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from msgspec.structs import replace

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

EDITOR = "str_replace_based_edit_tool"
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


@pytest.fixture
def servers(upstream: Upstream, url: str) -> tuple[Upstream, str]:
    return upstream, url


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
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", timeout=TIMEOUT, max_retries=0) as client:

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


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("tool", "toolset", "name", "arguments"),
    [
        ({"type": "bash_20250124", "name": "bash"}, None, "bash", {"command": "ls"}),
        ({"type": "text_editor_20250728", "name": EDITOR}, None, EDITOR, {"command": "view", "path": "/a"}),
        ({"type": "computer_toolset_20260801"}, "computer", "left_click", {"coordinate": [1, 2]}),
        ({"type": "browser_toolset_20260801"}, "browser", "navigate", {"url": "a.b"}),
    ],
    ids=["bash", "editor", "computer", "browser"],
)
def test_anthropic_runs_its_tools_over_a_server_of_functions(  # noqa: PLR0913  what a case is made of
    servers: tuple[Upstream, str], *, tool: JSON, toolset: str | None, name: str, arguments: JSON, stream: bool
) -> None:
    upstream, url = servers
    function = name if toolset is None else f"{toolset}__{name}"
    plan(upstream, function, arguments, stream=stream)
    with anthropic.Anthropic(base_url=url, api_key="none", timeout=TIMEOUT, max_retries=0) as client:

        def ask(messages: list[JSON]) -> JSON:
            asked: JSONObject = {"model": "m", "max_tokens": 99, "messages": messages, "tools": [tool]}
            if not stream:
                return client.beta.messages.create(**asked)
            with client.beta.messages.stream(**asked) as events:
                return events.get_final_message()

        messages: list[JSON] = [{"role": "user", "content": "Do."}]
        first = ask(messages)
        (call,) = first.content
        assert (first.stop_reason, call.type, call.input) == ("tool_use", "tool_use", arguments)
        assert (call.name, call.toolset_name) == (name, toolset)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "a.txt"}
        said = call.model_dump(exclude_none=True, include={"type", "id", "name", "input", "toolset_name"})
        second = ask([*messages, {"role": "assistant", "content": [said]}, {"role": "user", "content": [result]}])
        assert [part.text for part in second.content] == ["Done."]

        assert function in [entry["function"]["name"] for entry in sent(upstream, 0)["tools"]]
        history = sent(upstream, 1)["messages"]
        assert [call["function"]["name"] for call in history[1]["tool_calls"]] == [function]
        assert (history[2]["role"], history[2]["content"]) == ("tool", "a.txt")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_google_uses_a_computer_over_a_server_of_functions(upstream: Upstream, url: str, *, stream: bool) -> None:
    plan(upstream, "click_at", {"x": 1, "y": 2}, stream=stream)
    computer = types.ComputerUse(environment=types.Environment.ENVIRONMENT_BROWSER)
    config = types.GenerateContentConfig(tools=[types.Tool(computer_use=computer)])

    def ask(contents: list[types.Content]) -> types.Content:
        asked: JSONObject = {"model": "m", "contents": contents, "config": config}
        whole = () if stream else (client.models.generate_content(**asked),)
        answers = client.models.generate_content_stream(**asked) if stream else whole
        found = [part for answer in answers for part in answer.parts or ()]
        return types.Content(role="model", parts=found)

    with genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url)) as client:
        contents = [types.Content(role="user", parts=[types.Part(text="Do.")])]
        first = ask(contents)
        (call,) = [part.function_call for part in first.parts or () if part.function_call]
        assert (call.name, call.args) == ("click_at", {"x": 1, "y": 2})
        blob = types.FunctionResponseBlob(mime_type="image/png", data=b"PNG")
        shown = types.FunctionResponse(
            id=call.id,
            name=call.name,
            response={"url": "https://a.b"},
            parts=[types.FunctionResponsePart(inline_data=blob)],
        )
        second = ask([*contents, first, types.Content(role="user", parts=[types.Part(function_response=shown)])])
        assert "".join(part.text or "" for part in second.parts or ()) == "Done."

    assert "click_at" in [entry["function"]["name"] for entry in sent(upstream, 0)["tools"]]
    history = json.dumps(sent(upstream, 1)["messages"])
    assert "https://a.b" in history
    assert "UE5H" in history
