"""Tools that OpenAI defines and the client runs: functions for every server without them, items for the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema_rs
import pytest
from msgspec.structs import replace
from openai.types.responses import Response as SDKResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.dialects.responses.client_calls import TABLE
from xenoglot.errors import WireError
from xenoglot.model.content import Image, Inline, Opaque, Text, ToolCall, ToolResult
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, Request, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

RESPONSES = get("responses")
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SCREEN: JSONObject = {"type": "computer_screenshot", "image_url": PIXEL}
CLICK: JSONObject = {"type": "click", "button": "left", "x": 1, "y": 2}
PREVIEW: JSONObject = {
    "type": "computer_use_preview",
    "display_width": 800,
    "display_height": 600,
    "environment": "browser",
}

KINDS: dict[str, tuple[JSONObject, JSONObject, JSONObject, JSONObject]] = {
    "shell": (
        {"type": "shell"},
        {"commands": ["ls"], "timeout_ms": 5},
        {"type": "shell_call", "action": {"commands": ["ls"], "timeout_ms": 5, "max_output_length": None}},
        {
            "type": "shell_call_output",
            "output": [{"stdout": "a\n", "stderr": "b", "outcome": {"type": "exit", "exit_code": 1}}],
        },
    ),
    "local_shell": (
        {"type": "local_shell"},
        {"command": ["ls", "-l"], "env": {"A": "b"}},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-l"], "env": {"A": "b"}}},
        {"type": "local_shell_call_output", "output": "a"},
    ),
    "apply_patch": (
        {"type": "apply_patch"},
        {"type": "update_file", "path": "a", "diff": "@@\n-a\n+b\n"},
        {"type": "apply_patch_call", "operation": {"type": "update_file", "path": "a", "diff": "@@\n-a\n+b\n"}},
        {"type": "apply_patch_call_output", "status": "failed", "output": "no such file"},
    ),
    "computer": (
        {"type": "computer"},
        {"actions": [CLICK, {"type": "screenshot"}]},
        {"type": "computer_call", "actions": [CLICK, {"type": "screenshot"}], "pending_safety_checks": []},
        {"type": "computer_call_output", "output": SCREEN},
    ),
    "computer_use_preview": (
        PREVIEW,
        {"action": CLICK},
        {"type": "computer_call", "action": CLICK, "pending_safety_checks": []},
        {"type": "computer_call_output", "output": SCREEN},
    ),
}
"""Of each kind the tool, arguments of the function that it is, the call that these are, and an output."""

SAID: dict[str, tuple[tuple[Text | Image, ...], bool | None]] = {
    "shell": ((Text(text="a\nb\n[exit code 1]"),), None),
    "local_shell": ((Text(text="a"),), None),
    "apply_patch": ((Text(text="no such file"),), True),
    "computer": ((Image(source=Inline("iVBORw0KGgo=", "image/png")),), None),
    "computer_use_preview": ((Image(source=Inline("iVBORw0KGgo=", "image/png")),), None),
}

each_kind = pytest.mark.parametrize("kind", KINDS)


def history(kind: str) -> list[JSONObject]:
    """Return a turn of the user, a call of a kind and its output."""
    _, _, call, output = KINDS[kind]
    answered = {"id": "c1"} if kind == "local_shell" else {"call_id": "c1"}
    return [{"type": "message", "role": "user", "content": "Do."}, {**call, "call_id": "c1"}, {**output, **answered}]


def decoded(*tools: JSONObject, items: JSON = "Do.", **more: JSON) -> Request:
    return RESPONSES.decode_request({"model": "m", "input": items, "tools": [*tools], **more})


def answer(*calls: ToolCall) -> Response:
    return Response(id="r", model="m", candidates=(Candidate(content=calls, finish=Finish(reason="tool_calls")),))


def outputs(response: Response, request: Request) -> list[list[JSONObject]]:
    """Return the output items for the client, of the answer as a whole and of its stream, as the SDK reads them."""
    whole = RESPONSES.encode_response(response, request, Losses())
    stream = through(unfold(response), RESPONSES.stream_encoder(request, Losses()))
    events = [decode_json(event.data) for event in stream]
    adapter: TypeAdapter[JSON] = TypeAdapter(ResponseStreamEvent)
    for event in events:
        adapter.validate_python(event)
    SDKResponse.model_validate(whole)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    added = [event["item"]["type"] for event in events if event["type"] == "response.output_item.added"]
    assert added == [item["type"] for item in done]
    return [whole["output"], done, events[-1]["response"]["output"]]


@each_kind
def test_a_tool_comes_home_as_it_was(kind: str) -> None:
    tool, _, _, _ = KINDS[kind]
    body: JSONObject = {
        "model": "m",
        "input": history(kind),
        "tools": [{**tool, "allowed_callers": ["direct"]}],
        "tool_choice": {"type": kind},
    }
    losses = Losses()
    assert RESPONSES.encode_request(RESPONSES.decode_request(body), losses, Target()) == body
    assert not list(losses)


@each_kind
def test_a_tool_is_a_function_with_its_published_schema(kind: str) -> None:
    """D5: the arguments of the test are valid, and so is the schema."""
    tool, arguments, _, _ = KINDS[kind]
    (ours,) = decoded(tool).tools
    assert isinstance(ours, Tool)
    assert ours.description
    assert jsonschema_rs.validator_for(ours.parameters).is_valid(arguments)
    assert ("800 pixels wide and 600 high" in ours.description) == (kind == "computer_use_preview")


@each_kind
def test_a_call_and_its_output_are_those_of_a_function(kind: str) -> None:
    tool, arguments, _, _ = KINDS[kind]
    request = decoded(tool, items=history(kind))
    (call,), (result,) = request.messages[1].content, request.messages[2].content
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.id, call.name) == ("c1", TABLE[kind].name)
    assert {key: value for key, value in decode_json(call.arguments).items() if value is not None} == arguments
    assert (result.call_id, result.content, result.is_error) == ("c1", *SAID[kind])


@each_kind
@pytest.mark.parametrize("name", [name for name in names() if name != "responses"])
def test_every_dialect_gets_tool_call_and_result(name: str, kind: str) -> None:
    """D5: nothing is dropped where a dialect has tools."""
    losses = Losses()
    try:
        body = get(name).encode_request(decoded(KINDS[kind][0], items=history(kind)), losses, Target())
    except WireError:  # a dialect without turns
        return
    back = get(name).decode_request(body)
    parts = [part for message in back.messages for part in message.content]
    if not back.tools:
        return
    assert [tool.name for tool in back.tools if isinstance(tool, Tool)] == [TABLE[kind].name]
    assert [part.name for part in parts if isinstance(part, ToolCall)] == [TABLE[kind].name]
    assert [part.call_id for part in parts if isinstance(part, ToolResult)] == [
        part.id for part in parts if isinstance(part, ToolCall)
    ]
    assert not [loss for loss in losses if loss.how == "dropped" and loss.what != "image"]


@each_kind
def test_a_call_comes_back_as_an_item_of_its_kind(kind: str) -> None:
    tool, arguments, call, _ = KINDS[kind]
    response = answer(ToolCall(id="c2", name=TABLE[kind].name, arguments=to_text(arguments)))
    for (item,) in outputs(response, decoded(tool)):
        assert {key: value for key, value in item.items() if key not in ("id", "environment")} == {
            **call,
            "call_id": "c2",
            "status": "completed",
        }
        assert item["id"].startswith(f"{TABLE[kind].prefix}_")


@each_kind
def test_an_answer_of_a_server_is_calls_whole_and_streamed(kind: str) -> None:
    tool, arguments, call, _ = KINDS[kind]
    item = {"id": "x_1", **call, "call_id": "c2", "status": "completed"}
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
    whole = RESPONSES.decode_response(body)
    (part,) = whole.candidates[0].content
    assert isinstance(part, ToolCall)
    assert {key: value for key, value in decode_json(part.arguments).items() if value is not None} == arguments
    assert whole.candidates[0].finish is not None
    assert whole.candidates[0].finish.reason == "tool_calls"
    stream = through(unfold(whole), RESPONSES.stream_encoder(decoded(tool), Losses()))
    again = fold(through(stream, RESPONSES.stream_decoder()))
    assert isinstance(again, Response)
    assert again.candidates[0].content == (part,)


LOOSE: list[tuple[str, JSON, JSON]] = [
    ("shell", {"command": "ls"}, {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}),
    ("shell", {"commands": "ls", "why": 1}, {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}),
    ("local_shell", {"command": "ls"}, {"type": "exec", "command": ["bash", "-lc", "ls"], "env": {}}),
    ("apply_patch", {"operation": {"type": "delete_file", "path": "a"}}, {"type": "delete_file", "path": "a"}),
    ("computer", {"action": {"type": "click", "x": 1, "y": 2}}, [CLICK]),
    ("computer", {"type": "wait"}, [{"type": "wait"}]),
    ("computer_use_preview", {"actions": [CLICK]}, CLICK),
]


@pytest.mark.parametrize(("kind", "arguments", "expected"), LOOSE)
def test_loose_arguments_are_brought_into_form_and_it_is_told(kind: str, arguments: JSON, expected: JSON) -> None:
    losses = Losses()
    response = answer(ToolCall(id="c2", name=TABLE[kind].name, arguments=to_text(arguments)))
    (item,) = RESPONSES.encode_response(response, decoded(KINDS[kind][0]), losses)["output"]
    (found,) = [item[key] for key in ("action", "actions", "operation") if key in item]
    assert found == expected
    assert [(loss.what, loss.how) for loss in losses] == [("arguments", "approximated")]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("shell", "{}"),
        ("shell", "rm -rf"),
        ("shell", '{"commands": [1]}'),
        ("local_shell", '{"command": []}'),
        ("apply_patch", '{"type": "update_file", "path": "a"}'),
        ("apply_patch", '{"type": "move_file", "path": "a"}'),
        ("computer", '{"actions": [{"type": "click"}]}'),
        ("computer", '{"actions": []}'),
        ("computer_use_preview", '{"actions": [{"type": "wait"}, {"type": "wait"}]}'),
    ],
)
def test_what_is_no_action_stays_the_call_of_a_function(kind: str, arguments: str) -> None:
    """A command is never made up: the client gets what the model wrote, and the loss is told."""
    response = answer(ToolCall(id="c2", name=TABLE[kind].name, arguments=arguments))
    for (item,) in outputs(response, decoded(KINDS[kind][0])):
        assert (item["type"], item["name"], item["arguments"]) == ("function_call", TABLE[kind].name, arguments)
    losses = Losses()
    RESPONSES.encode_response(response, decoded(KINDS[kind][0]), losses)
    assert [(loss.what, loss.how) for loss in losses] == [("arguments", "approximated")]


def test_the_commands_of_a_shell_grow_as_a_server_tells_them() -> None:
    response = answer(ToolCall(id="c2", name="shell", arguments='{"commands": ["ls", "pwd"]}'))
    stream = through(unfold(response), RESPONSES.stream_encoder(decoded({"type": "shell"}), Losses()))
    events = [decode_json(event.data) for event in stream]
    grown = [event for event in events if "shell_call_command" in event["type"]]
    assert [(event["type"].rpartition(".")[2], event["command_index"]) for event in grown] == [
        *(("added", 0), ("delta", 0), ("done", 0)),
        *(("added", 1), ("delta", 1), ("done", 1)),
    ]
    (added,) = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert (added["status"], added["action"]["commands"]) == ("in_progress", [])


def test_a_shell_in_a_container_stays_the_servers() -> None:
    container = {"type": "container_reference", "container_id": "cntr_1"}
    items: list[JSONObject] = [
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "environment": container},
        {"type": "shell_call_output", "call_id": "c1", "output": []},
    ]
    tools: list[JSONObject] = [{"type": "shell", "environment": {"type": "container_auto"}}]
    request = decoded(*tools, items=items)
    assert request.tools == (Opaque(dialect="responses", data=tools[0]),)
    assert not [part for turn in request.messages for part in turn.content if isinstance(part, ToolCall | ToolResult)]
    assert RESPONSES.encode_request(request, Losses(), Target())["input"] == items


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "shell"},
        {"type": "computer"},
        {"type": "computer_use"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "shell"}, {"type": "function", "name": "f"}]},
    ],
)
def test_a_choice_of_such_a_tool_is_one_of_its_function(choice: JSONObject) -> None:
    function: JSONObject = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
    request = decoded({"type": "shell"}, {"type": "computer"}, function, tool_choice=choice)
    assert request.tool_choice is not None
    named = {"shell": ("shell",), "allowed_tools": ("shell", "f")}.get(choice["type"], ("computer",))
    assert (request.tool_choice.mode, request.tool_choice.names) == ("required", named)
    assert RESPONSES.encode_request(request, Losses(), Target())["tool_choice"] == choice
    chat = get("chat").encode_request(request, Losses(), Target())["tool_choice"]
    if len(named) == 1:
        assert chat == {"type": "function", "function": {"name": named[0]}}


def test_a_choice_of_the_library_names_the_kind() -> None:
    request = decoded({"type": "shell"})
    forced = replace(request, tool_choice=ToolChoice(mode="required", names=("shell",)), extra=None)
    assert RESPONSES.encode_request(forced, Losses(), Target())["tool_choice"] == {"type": "shell"}


def test_a_function_of_the_same_name_stays_a_function() -> None:
    """A name clash: the tool gets another name, in history and choice too, and both calls find home."""
    function: JSONObject = {"type": "function", "name": "shell", "parameters": {"type": "object"}, "strict": False}
    request = decoded({"type": "shell"}, function, items=history("shell"), tool_choice={"type": "shell"})
    assert [tool.name for tool in request.tools if isinstance(tool, Tool)] == ["client_shell", "shell"]
    (call,) = request.messages[1].content
    assert isinstance(call, ToolCall)
    assert call.name == "client_shell"
    assert request.tool_choice is not None
    assert request.tool_choice.names == ("client_shell",)
    arguments = '{"commands": ["ls"]}'
    for name, kind in (("shell", "function_call"), ("client_shell", "shell_call")):
        found = outputs(answer(ToolCall(id="c2", name=name, arguments=arguments)), request)
        assert [[item["type"] for item in items] for items in found] == [[kind]] * 3


@each_kind
def test_the_result_of_a_program_is_an_output_of_its_kind(kind: str) -> None:
    """A tool loop answers a call of a server with a result of its own; so does a hook that changes an output."""
    request = decoded(KINDS[kind][0], items=history(kind))
    content, _ = SAID[kind]
    texts = isinstance(content[0], Text)
    new = (Text(text="other"),) if texts else (Image(source=Inline("AAAA", "image/png")),)
    result = ToolResult(call_id="c1", content=new, is_error=True)
    for message in (
        Message(role="tool", content=(result,)),
        replace(request.messages[2], content=(replace(request.messages[2].content[0], content=new, is_error=True),)),
    ):
        losses = Losses()
        changed = replace(request, messages=(*request.messages[:2], message), extra=None)
        items = RESPONSES.encode_request(changed, losses, Target())["input"]
        assert not [loss for loss in losses if loss.how == "dropped"]
        assert [item["type"] for item in items] == ["message", TABLE[kind].call, TABLE[kind].output]
        assert ("other" if texts else "AAAA") in to_text(items[2])
        assert to_text(content)[:10] not in to_text(items[2]) if texts else True


@each_kind
def test_a_call_without_an_output_gets_one(kind: str) -> None:
    """pitfall-44."""
    request = replace(decoded(KINDS[kind][0], items=history(kind)[:2]), extra=None)
    items = RESPONSES.encode_request(request, Losses(), Target())["input"]
    assert [item["type"] for item in items] == ["message", TABLE[kind].call, TABLE[kind].output]


@each_kind
def test_an_output_without_a_call_is_told(kind: str) -> None:
    """pitfall-44."""
    request = replace(decoded(KINDS[kind][0], items=[history(kind)[0], history(kind)[2]]), extra=None)
    items = RESPONSES.encode_request(request, Losses(), Target())["input"]
    assert [item["type"] for item in items] == ["message", "message"]


def test_an_output_by_the_id_of_the_item_finds_its_call() -> None:
    call = {**KINDS["local_shell"][2], "call_id": "c1", "id": "lsh_1"}
    request = decoded(items=[call, {"type": "local_shell_call_output", "id": "lsh_1", "output": "a"}])
    (result,) = request.messages[1].content
    assert isinstance(result, ToolResult)
    assert result.call_id == "c1"
