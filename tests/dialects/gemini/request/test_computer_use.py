"""The tool `computerUse` of Gemini: one entry, which is its predefined functions for every other model."""

from __future__ import annotations

import jsonschema_rs
import pytest
from google.genai import types

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.dialects.gemini.request.computer_use import FUNCTIONS
from xenoglot.model.content import Opaque
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Tool
from xenoglot.translate import translate_request, translate_response

GEMINI = get("gemini")
ENTRY: JSONObject = {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}
OWN: JSONObject = {"name": "navigate", "parametersJsonSchema": {"type": "object"}}


def request(*tools: JSON, **more: JSON) -> JSONObject:
    return {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": [*tools], **more}


def offered(*tools: JSON) -> list[str]:
    body = translate_request(request(*tools), "gemini", "chat")
    return [tool["function"]["name"] for tool in body["tools"]]


def test_the_schemas_are_schemas() -> None:
    for description, schema in FUNCTIONS.values():
        jsonschema_rs.validator_for(schema)
        assert description
    types.ComputerUse.model_validate(ENTRY["computerUse"])


@pytest.mark.parametrize(
    "tools",
    [
        [ENTRY],
        [ENTRY, {"functionDeclarations": [OWN]}],
        [{"functionDeclarations": [OWN], **ENTRY}],
        [{"functionDeclarations": [OWN]}, ENTRY, ENTRY],
        [{"computerUse": {"environment": "ENVIRONMENT_MOBILE"}}],
        [{"computerUse": {"excludedPredefinedFunctions": [*FUNCTIONS]}}],
        [{**ENTRY, "googleSearch": {}}],
    ],
)
def test_an_entry_comes_home_as_it_was(tools: list[JSON]) -> None:
    losses = Losses()
    body = request(*tools)
    assert GEMINI.encode_request(GEMINI.decode_request(body), losses, Target())["tools"] == tools
    assert not list(losses)


def test_elsewhere_it_is_functions() -> None:
    losses = Losses()
    body = translate_request(request(ENTRY), "gemini", "chat", losses)
    assert [tool["function"]["name"] for tool in body["tools"]] == [*FUNCTIONS]
    assert {loss.what for loss in losses} == {"definition"}


def test_excluded_and_declared_functions_are_not_offered_twice() -> None:
    use: JSONObject = {"computerUse": {"excludedPredefinedFunctions": ["drag_and_drop"]}}
    names = offered(use, {"functionDeclarations": [OWN]})
    assert sorted(names) == sorted({*FUNCTIONS} - {"drag_and_drop"})


def test_another_environment_stays_the_dialects_own() -> None:
    entry: JSONObject = {"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}}
    assert GEMINI.decode_request(request(entry)).tools == (Opaque(dialect="gemini", data=entry),)


def test_a_call_of_another_model_is_a_function_call_and_its_screenshot_a_result() -> None:
    asked = GEMINI.decode_request(request(ENTRY))
    function: JSONObject = {"name": "click_at", "arguments": '{"x": 1, "y": 2}'}
    message: JSONObject = {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    answer = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    made = translate_response(answer, "chat", "gemini", Losses(), asked)
    (part,) = made["candidates"][0]["content"]["parts"]
    assert (part["functionCall"]["name"], part["functionCall"]["args"]) == ("click_at", {"x": 1, "y": 2})

    screen: JSONObject = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    result: JSONObject = {
        "functionResponse": {"name": "click_at", "response": {"url": "https://a.b"}, "parts": [screen]}
    }
    contents = [*request()["contents"], made["candidates"][0]["content"], {"role": "user", "parts": [result]}]
    body = translate_request({"model": "m", "contents": contents, "tools": [ENTRY]}, "gemini", "messages")
    (block,) = body["messages"][2]["content"]
    assert [inner["type"] for inner in block["content"]] == ["text", "image"]
    assert [tool.name for tool in asked.tools if isinstance(tool, Tool)] == [*FUNCTIONS]


def test_a_choice_names_a_predefined_function() -> None:
    config: JSONObject = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["navigate"]}}
    body = translate_request(request(ENTRY, toolConfig=config), "gemini", "chat")
    assert body["tool_choice"] == {"type": "function", "function": {"name": "navigate"}}
