"""Writing requests that came in the dialect and were changed since, by a hook or a program."""

import pytest
from msgspec.structs import replace

from xenoglot import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.interactions import INTERACTIONS
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import MediaOutput, OutputFormat, Request, ToolChoice

SCHEMA: JSONObject = {"type": "object"}
AS_JSON: JSONObject = {"type": "text", "mime_type": "application/json"}
TOOL: JSON = {"type": "function", "name": "f", "parameters": {}}
ALLOWED: JSON = {"allowed_tools": {"mode": "any", "tools": ["f"]}}


def read(**fields: JSON) -> Request:
    return INTERACTIONS.decode_request({"model": "m", "input": "Hi", **fields})


def written(request: Request) -> tuple[JSONObject, list[str]]:
    losses = Losses()
    body = INTERACTIONS.encode_request(request, losses, Target())
    return {key: value for key, value in body.items() if key not in ("model", "input", "tools")}, list(map(str, losses))


FORMATS = [
    pytest.param({"response_format": AS_JSON | {"schema": SCHEMA}}, id="format"),
    pytest.param({"response_format": SCHEMA, "response_mime_type": "application/json"}, id="bare-schema"),
    pytest.param({"response_mime_type": "application/json"}, id="media-type"),
    pytest.param({"response_format": [AS_JSON, {"type": "image", "image_size": "1K"}]}, id="list"),
    pytest.param({"response_modalities": ["TEXT", "IMAGE"]}, id="modalities"),
    pytest.param({"response_format": AS_JSON | {"new": 1}}, id="unknown-field"),
]


@pytest.mark.parametrize("fields", [*FORMATS, pytest.param({"response_format": "new"}, id="text")])
def test_form_of_the_answer_is_written_as_it_came(fields: JSONObject) -> None:
    assert written(read(**fields)) == (fields, [])


@pytest.mark.parametrize("fields", FORMATS)
def test_form_of_the_answer_that_was_changed_is_not_written_as_it_came(fields: JSONObject) -> None:
    unread = "$.output response_format dropped (another form of the answer is wanted than the request came with)"
    losses = [unread] if "new" in str(fields) else []
    assert written(replace(read(**fields), output=None, media=None)) == ({}, losses)
    other = replace(read(**fields), output=OutputFormat(kind="text"), media=MediaOutput(modalities=("text",)))
    assert written(other) == ({"response_format": {"type": "text", "mime_type": "text/plain"}}, losses)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        pytest.param(ToolChoice(mode="required", names=("f",)), ALLOWED, id="as-it-came"),
        pytest.param(ToolChoice(mode="none"), "none", id="none"),
        pytest.param(
            ToolChoice(mode="required", names=("g",)), {"allowed_tools": {"mode": "any", "tools": ["g"]}}, id="name"
        ),
    ],
)
def test_choice_of_tools_that_was_changed_is_written_anew(choice: ToolChoice, expected: JSON) -> None:
    request = read(tools=[TOOL], generation_config={"tool_choice": ALLOWED})
    assert request.tool_choice is not None
    changed = replace(request.tool_choice, mode=choice.mode, names=choice.names)
    assert written(replace(request, tool_choice=changed)) == ({"generation_config": {"tool_choice": expected}}, [])
