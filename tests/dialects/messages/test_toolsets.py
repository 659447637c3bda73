"""Toolsets of Anthropic: one entry, which is many functions for every other model; their calls name the toolset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema_rs
import pytest
from anthropic.types import beta
from anthropic.types.beta import BetaToolUseBlock
from pydantic import BaseModel

from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.dialects.messages.toolsets import TOOLSETS
from xenoglot.model.content import ToolCall
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Tool
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.translate import translate_request, translate_response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

MESSAGES = get("messages")
COMPUTER: JSONObject = {"type": "computer_toolset_20260801"}
BROWSER: JSONObject = {"type": "browser_toolset_20260801"}
CALL: JSONObject = {
    "type": "tool_use",
    "id": "t1",
    "name": "left_click",
    "toolset_name": "computer",
    "input": {"coordinate": [1, 2]},
}


def request(*tools: JSON, history: bool = False) -> JSONObject:
    messages: list[JSON] = [{"role": "user", "content": "Hi"}]
    if history:
        result: JSONObject = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
        messages += [{"role": "assistant", "content": [CALL]}, {"role": "user", "content": [result]}]
    return {"model": "m", "max_tokens": 9, "messages": messages, "tools": [*tools]}


def published(family: str) -> dict[str, JSONObject]:
    """Return the schemas of the members of a toolset that the SDK has, by their names."""
    head = f"Beta{family}"
    found: dict[str, JSONObject] = {}
    for name, struct in vars(beta).items():
        block = getattr(beta, name.removesuffix("Input") + "ToolUseBlock", None)
        if name.startswith(head) and name.endswith("Input") and block is not None and issubclass(struct, BaseModel):
            member = block.model_fields["name"].annotation.__args__[0]
            found[member] = struct.model_json_schema()
    return found


@pytest.mark.parametrize(("kind", "family"), [(COMPUTER["type"], "Computer"), (BROWSER["type"], "Browser")])
def test_the_members_are_those_of_the_sdk(kind: str, family: str) -> None:
    _, members = TOOLSETS[kind]
    known = published(family)
    assert set(members) == set(known)
    for name, (description, schema) in members.items():
        jsonschema_rs.validator_for(schema)
        assert description
        assert set(schema["properties"]) == set(known[name].get("properties", {})), name
        assert set(schema.get("required", ())) == set(known[name].get("required", ())), name


@pytest.mark.parametrize("entry", [COMPUTER, BROWSER])
def test_a_toolset_comes_home_as_it_was(entry: JSONObject) -> None:
    more: JSONObject = {
        "cache_control": {"type": "ephemeral"},
        "configs": {"zoom": {"enabled": False, "defer_loading": True}},
        "unheard": 1,
    }
    body = request(entry | more, {"name": "f", "input_schema": {"type": "object"}}, history=True)
    losses = Losses()
    assert translate_request(body, "messages", "messages", losses) == body
    assert not list(losses)


def test_elsewhere_each_member_is_a_function() -> None:
    losses = Losses()
    body = translate_request(request(COMPUTER, history=True), "messages", "chat", losses)
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == [f"computer__{member}" for member in TOOLSETS["computer_toolset_20260801"][1]]
    assert sum(loss.what == "definition" for loss in losses) == len(names)
    (call,) = body["messages"][1]["tool_calls"]
    assert call["function"]["name"] == "computer__left_click"


def test_members_that_are_disabled_are_not_offered() -> None:
    configs: JSONObject = {"zoom": {"enabled": False}, "javascript_exec": {"enabled": True}, "key": {}}
    tools = MESSAGES.decode_request(request({**BROWSER, "configs": configs})).tools
    names = {tool.name for tool in tools if isinstance(tool, Tool)}
    assert {"javascript_exec", "key", "navigate"} <= names
    assert names.isdisjoint({"zoom", "file_upload"})


def test_a_toolset_without_members_stays_as_it_is() -> None:
    configs = {member: {"enabled": False} for member in TOOLSETS["computer_toolset_20260801"][1]}
    body = request({**COMPUTER, "configs": configs})
    assert translate_request(body, "messages", "messages") == body


def test_a_call_of_another_model_names_its_toolset_whole_and_streamed() -> None:
    asked = MESSAGES.decode_request(request(COMPUTER))
    function: JSONObject = {"name": "computer__left_click", "arguments": '{"coordinate": [1, 2]}'}
    message: JSONObject = {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    choice: JSONObject = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    losses = Losses()
    answer = translate_response({"id": "1", "model": "m", "choices": [choice]}, "chat", "messages", losses, asked)
    assert answer["content"] == [CALL]
    assert not [loss for loss in losses if loss.what in ("namespace", "name")]
    BetaToolUseBlock.model_validate(answer["content"][0])

    call = ToolCall(id="t1", name="left_click", namespace="computer", arguments='{"coordinate":[1,2]}')
    response = Response(id="r", model="m", candidates=(Candidate(content=(call,), finish=Finish(reason="tool_calls")),))
    stream = through(unfold(response), MESSAGES.stream_encoder(asked, Losses()))
    again = fold(through(stream, MESSAGES.stream_decoder()))
    assert isinstance(again, Response)
    (part,) = again.candidates[0].content
    assert isinstance(part, ToolCall)
    assert (part.name, part.namespace) == ("left_click", "computer")


def test_a_choice_of_a_member_is_one_of_its_function() -> None:
    body = {**request(COMPUTER), "tool_choice": {"type": "tool", "name": "screenshot"}}
    assert (
        MESSAGES.encode_request(MESSAGES.decode_request(body), Losses(), Target())["tool_choice"] == body["tool_choice"]
    )
    chat = translate_request(body, "messages", "chat")["tool_choice"]
    assert chat == {"type": "function", "function": {"name": "computer__screenshot"}}
