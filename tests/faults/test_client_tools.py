"""Tools as clients should not declare them: many, large, circular, with bombs in them, and under any names (C19)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed
from tests.faults.client_requests import client_request
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import WITH_TOOLS
from xenoglot.testing.canned import answers
from xenoglot.testing.script import ScriptRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.harness import GatewayHarness
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

PLACE: JSONObject = {"type": "object", "properties": {"place": {"type": "string"}}}


def tool_definition(client: str, name: str, schema: JSONObject) -> JSON:
    """A tool in a client's words."""
    function: JSONObject = {"name": name, "description": "What it does.", "parameters": schema}
    match client:
        case "messages":
            return {"name": name, "input_schema": schema}
        case "responses" | "interactions":
            return {"type": "function", **function}
        case "gemini":
            return {"functionDeclarations": [function]}
        case "llama_stack":
            return {"tool_name": name, "parameters": {"place": {"param_type": "string"}}}
        case _:
            return {"type": "function", "function": function}


def tool_names(upstream: str, body: JSONObject) -> list[str]:
    """The names of tools that an upstream got."""
    tools: list[JSONObject] = body["tools"]
    match upstream:
        case "gemini":
            return [one["name"] for tool in tools for one in tool["functionDeclarations"]]
        case "messages" | "responses" | "interactions":
            return [tool["name"] for tool in tools]
        case "llama_stack":
            return [tool["tool_name"] for tool in tools]
        case _:
            return [tool["function"]["name"] for tool in tools]


def request_body(client: str, upstream: str, tools: list[JSON], *, streamed: bool = False) -> tuple[str, bytes]:
    """Where a client posts a question with tools, and the bytes."""
    path, body = client_request(client, f"{upstream}-small", "Hi", streamed=streamed)
    return path, json.dumps(body | {"tools": tools}).encode()


NAMES = {
    "long": "a_tool_with_a_name_that_goes_on_and_on_and_is_longer_than_sixty_four_characters_are",
    "longer-than-any": "x" * 300,
    "dots": "mcp.server.read_file",
    "a-path": "mcp/server/read file",
    "another-script": "wetter_für_köln_天气",
}


EACH = [("chat", name) for name in WITH_TOOLS] + [(name, "chat") for name in WITH_TOOLS[1:]]
ALL = [(client, upstream) for client in WITH_TOOLS for upstream in WITH_TOOLS]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("which", "client", "upstream"),
    [
        pytest.param(which, *pair, id=f"C19-{which}-{pair[0]}-to-{pair[1]}")
        for which in NAMES
        for pair in (ALL if which == "long" else EACH)
    ],
)
def test_a_call_comes_back_under_the_clients_name(
    harness: GatewayHarness, which: str, client: str, upstream: str, *, streamed: bool
) -> None:
    """Two names that differ at the end alone stay two."""
    name, other = NAMES[which], NAMES[which] + "2"
    sent: list[str] = []

    def steps(received: Received) -> Sequence[Step]:
        sent.extend(tool_names(upstream, json.loads(received.body)))
        answer = answers(upstream, text=(), tool=(sent[0], '{"place": "Paris"}'))
        closing = (("connection", "close"),)
        return answer.streamed(headers=closing) if streamed else answer.complete(headers=closing)

    async def scenario() -> None:
        harness.upstream.script(ScriptRule(steps=steps))
        path, body = request_body(
            client, upstream, [tool_definition(client, one, PLACE) for one in (name, other)], streamed=streamed
        )
        answer = await harness.read_response(await harness.post(path, body))
        assert (answer.status, answer.complete) == (200, True), answer.raw
        assert len(set(sent)) == 2
        said = answer.body.decode()
        assert name in said or json.dumps(name)[1:-1] in said, said
        assert sent[0] == name or f'"{sent[0]}"' not in said, said
        assert sent == [name, other] if client == upstream else all(len(one) <= 128 for one in sent)

    harness.run(scenario())


def large_schema(number: int) -> JSONObject:
    """A schema of two thousand bytes."""
    properties: JSONObject = {
        f"field_{number}_{index}": {"type": "string", "description": "word " * 8} for index in range(25)
    }
    return {"type": "object", "properties": properties, "required": [f"field_{number}_0"]}


BOMB: JSONObject = {"type": "object", "properties": {"place": {"type": "string", "pattern": "^(a+)+$"}}}
BOMBS: JSONObject = {
    "type": "object",
    "properties": {"place": {"type": "string", "pattern": "(" * 500 + "a" + "*)" * 500}},
}
CIRCLE: JSONObject = {
    "type": "object",
    "properties": {"child": {"$ref": "#/$defs/node"}},
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "all": {"$ref": "#"}}}},
}
ITSELF: JSONObject = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}
LAUGHS: JSONObject = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/l0"}},
    "$defs": {
        **{
            f"l{n}": {"type": "object", "properties": {f"p{i}": {"$ref": f"#/$defs/l{n + 1}"} for i in range(9)}}
            for n in range(12)
        },
        "l12": {"type": "string"},
    },
}
"""Ten small definitions that are billions of schemas when each reference is written out."""

SCHEMAS: dict[str, list[JSONObject]] = {
    "five-hundred": [large_schema(number) for number in range(500)],
    "a-regex-bomb": [BOMB],
    "many-brackets": [BOMBS],
    "a-circle": [CIRCLE],
    "itself": [ITSELF],
    "a-billion-laughs": [LAUGHS],
}


@pytest.mark.parametrize(("client", "upstream"), EACH)
@pytest.mark.parametrize("which", [pytest.param(name, id=f"C19-{name}") for name in SCHEMAS])
def test_schemas_are_passed_on_and_not_run(harness: GatewayHarness, which: str, client: str, upstream: str) -> None:
    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        tools = [tool_definition(client, f"tool_{number}", schema) for number, schema in enumerate(SCHEMAS[which])]
        path, body = request_body(client, upstream, tools)
        answer = await harness.read_response(await harness.post(path, body))
        assert_completed(client, answer, streamed=False)
        got = harness.upstream.requests[0].body
        assert len(tool_names(upstream, json.loads(got))) == len(tools)
        assert len(got) < 3 * len(body) + 1_000

    harness.run(scenario())


@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
def test_c19_more_tools_than_anybody_has_are_refused(harness: GatewayHarness, client: str) -> None:
    async def scenario() -> None:
        path, body = request_body(
            client, "chat", [tool_definition(client, f"t{number}", PLACE) for number in range(5_000)]
        )
        answer = await harness.read_response(await harness.post(path, body))
        assert (answer.status, b"tools" in answer.body, harness.upstream.requests) == (400, True, [])

    harness.run(scenario())
