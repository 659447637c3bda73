"""A choice of tools that the server runs: in the dialect's own form here, by the kind of the tool for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot import translate_request
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.request import ToolChoice

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

RESPONSES = get("responses")
FUNCTION: JSONObject = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}


def asked(choice: JSON, *tools: JSON) -> JSONObject:
    return {"model": "m", "input": "q", "tools": [*tools, FUNCTION], "tool_choice": choice}


@pytest.mark.parametrize(
    ("choice", "tool", "decoded"),
    [
        pytest.param("web_search", "web_search", ("required", ("web_search",)), id="search"),
        pytest.param("web_search_preview", "web_search_preview", ("required", ("web_search",)), id="preview"),
        pytest.param("image_generation", "image_generation", ("required", ("image_generation",)), id="image"),
        pytest.param("web_search", "image_generation", None, id="not-among-the-tools"),
    ],
)
def test_a_forced_tool_of_the_server(choice: str, tool: str, decoded: tuple[str, tuple[str, ...]] | None) -> None:
    body = asked({"type": choice}, {"type": tool})
    request = RESPONSES.decode_request(body)
    found = request.tool_choice
    assert (None if found is None else (found.mode, found.names)) == decoded
    assert RESPONSES.encode_request(request, Losses(), Target())["tool_choice"] == {"type": choice}


def test_allowed_tools_of_the_server() -> None:
    choice = {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}],
    }
    request = RESPONSES.decode_request(asked(choice, {"type": "web_search"}))
    assert request.tool_choice is not None
    assert (request.tool_choice.mode, request.tool_choice.names) == ("auto", ("web_search", "f"))
    assert RESPONSES.encode_request(request, Losses(), Target())["tool_choice"] == choice


def test_a_function_of_that_name_is_meant() -> None:
    body = asked({"type": "function", "name": "web_search"}, {**FUNCTION, "name": "web_search"})
    request = RESPONSES.decode_request(body)
    assert isinstance(request.tool_choice, ToolChoice)
    assert RESPONSES.encode_request(request, Losses(), Target())["tool_choice"] == body["tool_choice"]


def test_a_forced_search_crosses_to_messages_and_back() -> None:
    losses = Losses()
    there = translate_request(asked({"type": "web_search"}, {"type": "web_search"}), "responses", "messages", losses)
    assert there["tool_choice"] == {"type": "tool", "name": "web_search"}
    back = translate_request(there, "messages", "responses", losses)
    assert back["tool_choice"] == {"type": "web_search"}
    assert [loss for loss in losses if loss.what == "tool_choice"] == []
