"""Tools as clients should not declare them: many, large, circular, with bombs in them, and under any names (C19)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faults.house import House, asking, fine, well
from tests.faults.wires import TALKERS
from xenoglot.testing.canned import answers
from xenoglot.testing.script import ScriptRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

PLACE: JSONObject = {"type": "object", "properties": {"place": {"type": "string"}}}


def declared(client: str, name: str, schema: JSONObject) -> JSON:
    """A tool in a client's words."""
    function: JSONObject = {"name": name, "description": "What it does.", "parameters": schema}
    match client:
        case "messages":
            return {"name": name, "input_schema": schema}
        case "responses":
            return {"type": "function", **function}
        case "gemini":
            return {"functionDeclarations": [function]}
        case "llama_stack":
            return {"tool_name": name, "parameters": {"place": {"param_type": "string"}}}
        case _:
            return {"type": "function", "function": function}


def names_in(upstream: str, body: JSONObject) -> list[str]:
    """The names of tools that an upstream got."""
    tools: list[JSONObject] = body["tools"]
    match upstream:
        case "gemini":
            return [one["name"] for tool in tools for one in tool["functionDeclarations"]]
        case "messages" | "responses":
            return [tool["name"] for tool in tools]
        case "llama_stack":
            return [tool["tool_name"] for tool in tools]
        case _:
            return [tool["function"]["name"] for tool in tools]


def asked(client: str, upstream: str, tools: list[JSON], *, streamed: bool = False) -> tuple[str, bytes]:
    """Where a client posts a question with tools, and the bytes."""
    path, body = asking(client, f"{upstream}-small", "Hi", streamed=streamed)
    return path, json.dumps(body | {"tools": tools}).encode()


NAMES = {
    "long": "a_tool_with_a_name_that_goes_on_and_on_and_is_longer_than_sixty_four_characters_are",
    "longer-than-any": "x" * 300,
    "dots": "mcp.server.read_file",
    "a-path": "mcp/server/read file",
    "another-script": "wetter_für_köln_天气",
}


EACH = [("chat", name) for name in TALKERS] + [(name, "chat") for name in TALKERS[1:]]
ALL = [(client, upstream) for client in TALKERS for upstream in TALKERS]


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
    house: House, which: str, client: str, upstream: str, *, streamed: bool
) -> None:
    """Two names that differ at the end alone stay two."""
    name, other = NAMES[which], NAMES[which] + "2"
    sent: list[str] = []

    def steps(received: Received) -> Sequence[Step]:
        sent.extend(names_in(upstream, json.loads(received.body)))
        answer = answers(upstream, text=(), tool=(sent[0], '{"place": "Paris"}'))
        closing = (("connection", "close"),)
        return answer.streamed(headers=closing) if streamed else answer.once(headers=closing)

    async def scene() -> None:
        house.upstream.script(ScriptRule(steps=steps))
        path, body = asked(client, upstream, [declared(client, one, PLACE) for one in (name, other)], streamed=streamed)
        answer = await house.finish(await house.send(path, body))
        assert (answer.status, answer.complete) == (200, True), answer.raw
        assert len(set(sent)) == 2
        said = answer.body.decode()
        assert name in said or json.dumps(name)[1:-1] in said, said
        assert sent[0] == name or f'"{sent[0]}"' not in said, said
        assert sent == [name, other] if client == upstream else all(len(one) <= 128 for one in sent)

    house.play(scene())


def large(number: int) -> JSONObject:
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
    "five-hundred": [large(number) for number in range(500)],
    "a-regex-bomb": [BOMB],
    "many-brackets": [BOMBS],
    "a-circle": [CIRCLE],
    "itself": [ITSELF],
    "a-billion-laughs": [LAUGHS],
}


@pytest.mark.parametrize(("client", "upstream"), EACH)
@pytest.mark.parametrize("which", [pytest.param(name, id=f"C19-{name}") for name in SCHEMAS])
def test_schemas_are_passed_on_and_not_run(house: House, which: str, client: str, upstream: str) -> None:
    async def scene() -> None:
        house.upstream.script(well(upstream, streamed=False))
        tools = [declared(client, f"tool_{number}", schema) for number, schema in enumerate(SCHEMAS[which])]
        path, body = asked(client, upstream, tools)
        answer = await house.finish(await house.send(path, body))
        fine(client, answer, streamed=False)
        got = house.upstream.requests[0].body
        assert len(names_in(upstream, json.loads(got))) == len(tools)
        assert len(got) < 3 * len(body) + 1_000

    house.play(scene())


@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
def test_c19_more_tools_than_anybody_has_are_refused(house: House, client: str) -> None:
    async def scene() -> None:
        path, body = asked(client, "chat", [declared(client, f"t{number}", PLACE) for number in range(5_000)])
        answer = await house.finish(await house.send(path, body))
        assert (answer.status, b"tools" in answer.body, house.upstream.requests) == (400, True, [])

    house.play(scene())
