"""Tools that Anthropic defines and the client runs: whole in their own dialect, functions in every other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Required, get_args, get_origin, get_type_hints

import jsonschema_rs
import pytest
from anthropic.types import beta
from anthropic.types.beta import BetaToolUnionParam
from pydantic import BaseModel

from xenoglot.codec.loss import Losses
from xenoglot.dialects.messages.client_tools import CLIENT_TOOLS
from xenoglot.translate import translate_request

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

FAMILIES = ("bash_2", "text_editor_2", "memory_2", "computer_2")
OPTIONS: JSONObject = {"max_characters": 100, "display_number": 1, "enable_zoom": True}


def smallest(param: Any) -> JSONObject:  # noqa: ANN401  a TypedDict
    """Return the smallest tool of a type of the SDK: its constants, and numbers."""
    hints = get_type_hints(param, include_extras=True)
    needed = {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is Required}
    return {name: get_args(hint)[0] if get_origin(hint) is Literal else 800 for name, hint in needed.items()}


TOOLS = {
    tool["type"]: (tool, frozenset(get_type_hints(param)))
    for param in get_args(BetaToolUnionParam)
    if str((tool := smallest(param)).get("type", "")).startswith(FAMILIES)
}
"""The smallest tool of each type that the SDK has, and the fields that it may have."""

MEMORY = {
    name.removeprefix("BetaMemoryTool20250818").removesuffix("Command"): struct
    for name, struct in vars(beta).items()
    if name.startswith("BetaMemoryTool20250818")
    and name.endswith("Command")
    and isinstance(struct, type)
    and issubclass(struct, BaseModel)
}


def request(*tools: JSON) -> JSONObject:
    """Return a request with tools."""
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "tools": [*tools]}


def function(tool: JSON) -> JSONObject:
    """Return the function that a model of another provider is offered."""
    losses = Losses()
    (found,) = translate_request(request(tool), "messages", "chat", losses)["tools"]
    assert ("$.tools[0]", "definition", "emulated") in {(loss.where, loss.what, loss.how) for loss in losses}
    body: JSONObject = found["function"]
    return body


def test_every_type_of_the_sdk_is_known() -> None:
    assert set(CLIENT_TOOLS) == set(TOOLS)


@pytest.mark.parametrize("kind", TOOLS)
def test_a_tool_comes_home_as_it_was(kind: str) -> None:
    tool, fields = TOOLS[kind]
    more = {"cache_control": {"type": "ephemeral"}, "strict": True, "allowed_callers": ["direct"], "unheard": 1}
    body = request(tool | {key: value for key, value in OPTIONS.items() if key in fields} | more)
    losses = Losses()
    assert translate_request(body, "messages", "messages", losses) == body
    assert not list(losses)


@pytest.mark.parametrize("kind", TOOLS)
def test_elsewhere_a_tool_is_a_function_with_its_published_schema(kind: str) -> None:
    tool, _ = TOOLS[kind]
    found = function(tool)
    jsonschema_rs.validator_for(found["parameters"])
    assert (found["name"], bool(found["description"])) == (tool["name"], True)


@pytest.mark.parametrize("command", MEMORY)
def test_the_schema_of_the_memory_is_that_of_the_sdk(command: str) -> None:
    schema = function(TOOLS["memory_20250818"][0])["parameters"]
    published = MEMORY[command].model_json_schema()["properties"]
    assert set(published) <= set(schema["properties"])
    for name, of in published.items():
        types = {option.get("type") for option in of.get("anyOf", [of])} - {"null"}
        assert schema["properties"][name]["type"] in types
    assert published["command"]["const"] in schema["properties"]["command"]["enum"]


def test_options_are_told() -> None:
    computer = {**TOOLS["computer_20251124"][0], "display_height_px": 600}
    plain, zooming = function(computer), function({**computer, "enable_zoom": True})
    assert "800 pixels wide and 600 high" in plain["description"]
    assert set(zooming["parameters"]["properties"]) - set(plain["parameters"]["properties"]) == {"region"}
    actions = [set(one["parameters"]["properties"]["action"]["enum"]) for one in (plain, zooming)]
    assert actions[1] - actions[0] == {"zoom"}
    editor = function({**TOOLS["text_editor_20250728"][0], "max_characters": 70})
    assert editor["description"].endswith("shows at most 70 characters.")


def test_a_tool_of_the_client_alone_is_no_hosted_tool() -> None:
    bash = TOOLS["bash_20250124"][0]
    for dialect in ("chat", "responses", "gemini", "ollama", "llama_stack"):
        assert len(translate_request(request(bash), "messages", dialect)["tools"]) == 1
