"""Fields of a tool that few dialects have: the schema of its result, and when and by whom it is called."""

from __future__ import annotations

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Text
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request, Tool
from xenoglot.translate import translate_request

SCHEMA: JSONObject = {"type": "object", "properties": {"sky": {"type": "string"}}}
HI = (Message(role="user", content=(Text(text="Hi"),)),)


def responses(**fields: JSON) -> JSONObject:
    function: JSONObject = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": False, **fields}
    return {"model": "m", "input": "Hi", "tools": [function]}


def gemini(**fields: JSON) -> JSONObject:
    function: JSONObject = {"name": "f", "parametersJsonSchema": SCHEMA, **fields}
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    return {"model": "m", "contents": contents, "tools": [{"functionDeclarations": [function]}]}


def lost(losses: Losses) -> list[tuple[str, str, str]]:
    wanted = ("output_schema", "defer_loading", "allowed_callers")
    return [(loss.where, loss.what, loss.how) for loss in losses if loss.what in wanted]


@pytest.mark.parametrize("fields", [{"responseJsonSchema": SCHEMA}, {"response": {"type": "OBJECT"}}])
def test_the_schema_of_a_result_crosses_where_both_have_it(fields: JSONObject) -> None:
    """D6."""
    losses = Losses()
    (tool,) = translate_request(responses(output_schema=SCHEMA), "responses", "gemini", losses)["tools"]
    assert tool["functionDeclarations"][0]["responseJsonSchema"] == SCHEMA
    (tool,) = translate_request(gemini(**fields), "gemini", "responses", losses)["tools"]
    assert tool["output_schema"]["type"] == "object"
    assert lost(losses) == []
    assert translate_request(gemini(**fields), "gemini", "gemini")["tools"] == gemini(**fields)["tools"]


def test_a_tool_that_is_found_late_crosses_to_interactions() -> None:
    losses = Losses()
    tool = Tool(name="f", parameters=SCHEMA, output_schema=SCHEMA, defer_loading=True)
    body = get("interactions").encode_request(Request(model="m", messages=HI, tools=(tool,)), losses, Target())
    assert body["tools"] == [{"type": "function", "name": "f", "parameters": SCHEMA, "defer_loading": True}]
    assert lost(losses) == [("$.tools[0]", "output_schema", "dropped")]


@pytest.mark.parametrize(
    "name", [name for name in names() if name not in ("responses", "messages", "gemini", "interactions")]
)
def test_elsewhere_each_field_is_reported(name: str) -> None:
    tool = Tool(
        name="f",
        parameters=SCHEMA,
        output_schema=SCHEMA,
        defer_loading=True,
        allowed_callers=("direct", "programmatic"),
    )
    losses = Losses()
    try:
        body = get(name).encode_request(Request(model="m", messages=HI, tools=(tool,)), losses, Target())
    except WireError:
        return
    if body.get("tools"):
        assert lost(losses) == [
            ("$.tools[0]", "output_schema", "dropped"),
            ("$.tools[0]", "defer_loading", "emulated"),
            ("$.tools[0]", "allowed_callers", "approximated"),
        ]


def test_a_tool_that_the_model_alone_may_call_loses_nothing() -> None:
    losses = Losses()
    function: JSONObject = {"name": "f", "input_schema": SCHEMA, "allowed_callers": ["direct"], "defer_loading": False}
    body: JSONObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    translate_request({**body, "tools": [function]}, "messages", "chat", losses)
    translate_request({**body, "tools": [function]}, "messages", "responses", losses)
    assert lost(losses) == []
    for dialect, asked in (
        ("messages", {**body, "tools": [function]}),
        ("responses", responses(allowed_callers=["direct"])),
    ):
        assert translate_request(asked, dialect, dialect)["tools"] == asked["tools"]


@pytest.mark.parametrize(
    ("source", "target", "callers"),
    [("messages", "responses", ["code_execution_20260120"]), ("responses", "messages", ["direct", "programmatic"])],
)
def test_code_of_one_provider_is_no_program_of_another(source: str, target: str, callers: list[JSON]) -> None:
    """The code of one is Python in a container, the program of the other JavaScript: neither has the other's tools."""
    losses = Losses()
    function: JSONObject = {"name": "f", "input_schema": SCHEMA, "allowed_callers": callers, "defer_loading": True}
    asked: JSONObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    body = (
        {**asked, "tools": [function]}
        if source == "messages"
        else responses(allowed_callers=callers, defer_loading=True)
    )
    (tool,) = translate_request(body, source, target, losses)["tools"]
    assert tool.keys().isdisjoint({"allowed_callers", "defer_loading"})
    assert lost(losses) == [
        ("$.tools[0]", "defer_loading", "emulated"),
        ("$.tools[0]", "allowed_callers", "approximated"),
    ]
