"""What is asked of servers of Responses is of the SDK's own types, whoever asked."""

import pytest
from hypothesis import given, settings
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from openai.types.responses.tool_param import ToolParam
from pydantic import TypeAdapter, ValidationError

from tests.laws.strategies import requests
from tests.laws.vectors import Case, each
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.responses import RESPONSES
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request

ITEM: TypeAdapter[JSON] = TypeAdapter(ResponseInputItemParam)
TOOL: TypeAdapter[JSON] = TypeAdapter(ToolParam)
FIELDS = frozenset({*ResponseCreateParamsBase.__annotations__, "stream"})

NEW = "x_new"
"""What the random requests have of kinds that nobody knows: it goes out as it came."""

SUPPLIED = {"message": ("id", "status"), "reasoning": ("id",)}
"""What the types require of items that the model made, and servers do not: we make up no id, and Codex has none."""


def typed(item: JSONObject) -> JSONObject:
    """Return an item with what only the types demand, and without what only servers know."""
    content = item.get("content")
    if isinstance(content, list):
        content = [part for part in content if part["type"] not in {"input_audio", NEW}]
        item = {**item, "content": content}
    if item["type"] == "reasoning" or (item.get("role") == "assistant" and isinstance(content, list)):
        return {**dict.fromkeys(SUPPLIED[item["type"]], "completed"), **item}
    return item


def faults(request: Request) -> list[str]:
    """Return what the types have against the request that is sent; none where it is refused in words."""
    try:
        body = RESPONSES.encode_request(request, Losses(), Target(developer_role=True, cache_marks=True))
    except WireError:
        return []
    found = [f"{name} is no field" for name in body.keys() - FIELDS]
    for adapter, values in ((ITEM, map(typed, body["input"])), (TOOL, body.get("tools", ()))):
        for value in (value for value in values if value["type"] != NEW):
            try:
                adapter.validate_python(value, strict=True)
            except ValidationError as error:
                found.append(f"{value}: {error}")
    return found


@each("request.json", where=lambda case: case.folder.parent.name != "responses")
def test_requests_of_others(case: Case) -> None:
    assert faults(case.dialect.decode_request(case.request)) == []


@settings(max_examples=60)
@given(request=requests())
def test_any_request(request: Request) -> None:
    assert faults(request) == []


@pytest.mark.parametrize("item", [{"type": "message", "role": "user"}, {"type": "function_call", "name": "f"}])
def test_the_types_are_asked(item: JSONObject) -> None:
    with pytest.raises(ValidationError):
        ITEM.validate_python(item, strict=True)
