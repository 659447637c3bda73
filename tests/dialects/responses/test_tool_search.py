"""A search for tools that the client runs: a function for every other server, a `tool_search_call` for the client."""

import pytest
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.fold import unfold
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Request, Tool
from xenoglot.model.response import Candidate, Finish, Response

RESPONSES = get("responses")
PARAMETERS: JSONObject = {"type": "object", "properties": {"query": {"type": "string"}}}
SEARCH: JSONObject = {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": PARAMETERS}
FOUND: JSONObject = {
    "type": "namespace",
    "name": "mcp__crm",
    "description": "CRM.",
    "tools": [{"type": "function", "name": "orders", "strict": False, "defer_loading": True, "parameters": PARAMETERS}],
}
HISTORY: list[JSONObject] = [
    {"type": "message", "role": "user", "content": "Orders?"},
    {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "orders"}},
    {"type": "tool_search_output", "call_id": "c1", "execution": "client", "status": "completed", "tools": [FOUND]},
]


def decoded_request(*tools: JSONObject, items: list[JSONObject] | None = None) -> Request:
    body = {"model": "m", "input": HISTORY if items is None else items, "tools": [SEARCH, *tools]}
    return RESPONSES.decode_request(body)


def answer(name: str, arguments: str = '{"query": "orders"}') -> Response:
    call = ToolCall(id="c2", name=name, arguments=arguments)
    return Response(id="r", model="m", candidates=(Candidate(content=(call,), finish=Finish(reason="tool_calls")),))


def outputs(response: Response, request: Request) -> list[list[JSONObject]]:
    """Return the output items for the client, of the answer as a whole and of its stream."""
    whole = RESPONSES.encode_response(response, request, Losses())
    events = [
        decode_json(event.data) for event in through(unfold(response), RESPONSES.stream_encoder(request, Losses()))
    ]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    growing = any("arguments" in event["type"] for event in events)
    assert growing == any(item["type"] == "function_call" for item in done)
    return [whole["output"], done, events[-1]["response"]["output"]]


def test_a_search_is_a_function_whose_result_names_the_tools_found() -> None:
    """findings-clients-2: what Codex sends in front of its MCP servers."""
    request = decoded_request()
    call, result = request.messages[1].content[0], request.messages[2].content[0]
    assert isinstance(call, ToolCall)
    assert (call.id, call.name) == ("c1", "tool_search")
    assert decode_json(call.arguments) == {"query": "orders"}
    assert isinstance(result, ToolResult)
    assert result.call_id == "c1"
    assert result.content == (Text(text="The tool `mcp__crm__orders` can be called."),)
    assert [(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, Tool)] == [
        (None, "tool_search"),
        ("mcp__crm", "orders"),
    ]


@pytest.mark.parametrize("name", [name for name in names() if name != "responses"])
def test_every_dialect_gets_the_search_and_what_it_found(name: str) -> None:
    """findings-clients-2: nothing of it is dropped where a dialect has tools."""
    losses = Losses()
    try:
        body = get(name).encode_request(decoded_request(), losses, Target())
    except WireError:  # a dialect without turns
        return
    back = get(name).decode_request(body)
    if back.tools:
        tools = [tool.name for tool in back.tools if isinstance(tool, Tool)]
        assert tools == ["tool_search", "mcp__crm__orders"]
        assert [loss for loss in losses if loss.what == "tool_search"] == []


def test_nothing_found_is_told() -> None:
    output = {**HISTORY[2], "tools": []}
    (result,) = decoded_request(items=[*HISTORY[:2], output]).messages[-1].content
    assert isinstance(result, ToolResult)
    assert result.content == (Text(text="No tool was found."),)


def test_the_search_of_a_server_stays_the_servers() -> None:
    output = {**HISTORY[2], "execution": "server", "call_id": None}
    call = {**HISTORY[1], "execution": "server", "call_id": None}
    request = decoded_request(items=[HISTORY[0], call, output])
    assert not [part for turn in request.messages for part in turn.content if isinstance(part, ToolCall | ToolResult)]


def test_a_call_goes_home_as_a_search() -> None:
    """findings-clients-2: whole and streamed, with an object for arguments."""
    for items in outputs(answer("tool_search"), decoded_request()):
        (item,) = items
        assert {key: item[key] for key in item if key != "id"} == {
            "type": "tool_search_call",
            "call_id": "c2",
            "status": "completed",
            "execution": "client",
            "arguments": {"query": "orders"},
        }
        assert item["id"].startswith("tsc_")


def test_arguments_that_are_no_object_are_a_query() -> None:
    losses = Losses()
    whole = RESPONSES.encode_response(answer("tool_search", "orders"), decoded_request(), losses)
    assert whole["output"][0]["arguments"] == {"query": "orders"}
    assert [str(loss) for loss in losses if loss.what == "arguments"] == [
        "$.candidates[0].content[0] arguments approximated (brought into the form of a `tool_search_call`)"
    ]


def test_a_function_of_the_same_name_stays_a_function() -> None:
    """A name clash: the search gets another name, in the history too, and both calls find home."""
    request = decoded_request({"type": "function", "name": "tool_search", "parameters": PARAMETERS})
    assert [tool.name for tool in request.tools if isinstance(tool, Tool)][:2] == ["client_tool_search", "tool_search"]
    call = request.messages[1].content[0]
    assert isinstance(call, ToolCall)
    assert call.name == "client_tool_search"
    kinds = [[item["type"] for item in items] for items in outputs(answer("tool_search"), request)]
    assert kinds == [["function_call"]] * 3
    kinds = [[item["type"] for item in items] for items in outputs(answer("client_tool_search"), request)]
    assert kinds == [["tool_search_call"]] * 3
    assert RESPONSES.encode_request(request, Losses(), Target())["input"] == HISTORY


def test_without_a_search_a_call_of_that_name_is_a_function() -> None:
    request = replace(decoded_request(), tools=())
    assert [[item["type"] for item in items] for items in outputs(answer("tool_search"), request)] == [
        ["function_call"]
    ] * 3
