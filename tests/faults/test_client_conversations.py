"""Conversations as clients should not write them: taken, or refused by name; nothing is lost without a word (C17).

Each case is one conversation in the words of six dialects. Every word that is said in it is unlike any other, so that
what becomes of it can be looked for: it is in what the upstream gets, or the client hears what was lost.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_requests import PATHS
from tests.faults.client_view import error_codes
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import WITH_TOOLS

if TYPE_CHECKING:
    from tests.faults.harness import GatewayHarness
    from xenoglot.model.json import JSON, JSONObject

SCHEMA: JSONObject = {"type": "object", "properties": {"place": {"type": "string"}}}
WORD = re.compile(r"word-\w+")


def user(client: str, text: str) -> JSON:
    """A turn of the user's."""
    if client == "interactions":
        return {"type": "user_input", "content": [{"type": "text", "text": text}]}
    return {"role": "user", "parts": [{"text": text}]} if client == "gemini" else {"role": "user", "content": text}


def model(client: str, text: str) -> JSON:
    """A turn of the model's."""
    if client == "gemini":
        return {"role": "model", "parts": [{"text": text}]}
    if client == "interactions":
        return {"type": "model_output", "content": [{"type": "text", "text": text}]}
    return {"role": "assistant", "content": text} | ({"stop_reason": "end_of_turn"} if client == "llama_stack" else {})


def call(client: str, name: str, place: str) -> JSON:  # noqa: PLR0911 - one for each dialect
    """A turn in which the model calls a tool."""
    arguments = json.dumps({"place": place})
    match client:
        case "messages":
            use = {"type": "tool_use", "id": name, "name": "weather", "input": {"place": place}}
            return {"role": "assistant", "content": [use]}
        case "responses":
            return {"type": "function_call", "call_id": name, "name": "weather", "arguments": arguments}
        case "gemini":
            asked = {"id": name, "name": "weather", "args": {"place": place}}
            return {"role": "model", "parts": [{"functionCall": asked}]}
        case "interactions":
            return {"type": "function_call", "id": name, "name": "weather", "arguments": {"place": place}}
        case "ollama":
            called: JSON = {"function": {"name": "weather", "arguments": {"place": place}}}
            return {"role": "assistant", "content": "", "tool_calls": [called]}
        case "llama_stack":
            called = {
                "call_id": name,
                "tool_name": "weather",
                "arguments": {"place": place},
                "arguments_json": arguments,
            }
            return {"role": "assistant", "content": "", "stop_reason": "end_of_turn", "tool_calls": [called]}
        case _:
            called = {"id": name, "type": "function", "function": {"name": "weather", "arguments": arguments}}
            return {"role": "assistant", "content": None, "tool_calls": [called]}


def result(client: str, name: str, text: str) -> JSON:  # noqa: PLR0911 - one for each dialect
    """What a tool gave."""
    match client:
        case "messages":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": text}]}
        case "responses":
            return {"type": "function_call_output", "call_id": name, "output": text}
        case "gemini":
            given = {"id": name, "name": "weather", "response": {"output": text}}
            return {"role": "user", "parts": [{"functionResponse": given}]}
        case "interactions":
            return {"type": "function_result", "call_id": name, "name": "weather", "result": text}
        case "ollama":
            return {"role": "tool", "content": text, "tool_name": "weather"}
        case "llama_stack":
            return {"role": "tool", "call_id": name, "content": text}
        case _:
            return {"role": "tool", "tool_call_id": name, "content": text}


def system(client: str, text: str) -> JSON:
    """A turn of the operator's, where a dialect has one among the others."""
    return user(client, text) if client in ("gemini", "interactions") else {"role": "system", "content": text}


def upstream_body(client: str, upstream: str, turns: list[JSON]) -> tuple[str, JSONObject]:
    """Where a client posts a conversation, and the request."""
    name = f"{upstream}-small"
    function: JSONObject = {"name": "weather", "parameters": SCHEMA}
    match client:
        case "gemini":
            tools = [{"functionDeclarations": [function]}]
            return f"/v1beta/models/{name}:generateContent", {"contents": turns, "tools": tools}
        case "messages":
            tool = {"name": "weather", "input_schema": SCHEMA}
            return PATHS[client], {"model": name, "messages": turns, "max_tokens": 64, "tools": [tool]}
        case "responses" | "interactions":
            return PATHS[client], {
                "model": name,
                "input": turns,
                "store": False,
                "tools": [{"type": "function", **function}],
            }
        case "llama_stack":
            tool = {"tool_name": "weather", "parameters": {"place": {"param_type": "string"}}}
            return PATHS[client], {"model_id": name, "messages": turns, "tools": [tool]}
        case _:
            more = {"stream": False} if client == "ollama" else {}
            tool = {"type": "function", "function": function}
            return PATHS[client], {"model": name, "messages": turns, "tools": [tool], **more}


HELLO, AGAIN = "word-hello", "word-again"


def turns_of(client: str, name: str) -> list[JSON]:
    """A conversation, by its name."""
    said, asked_for = user(client, HELLO), call(client, "call_1", "word-paris")
    given = result(client, "call_1", "word-rain")
    return {
        "system-in-the-middle": [said, model(client, "word-hi"), system(client, "word-rules"), user(client, AGAIN)],
        "system-at-the-end": [said, system(client, "word-rules")],
        "only-system": [system(client, "word-rules")],
        "a-result-without-a-call": [said, result(client, "call_9", "word-rain"), user(client, AGAIN)],
        "a-result-before-its-call": [said, given, asked_for, user(client, AGAIN)],
        "a-result-too-late": [said, asked_for, user(client, AGAIN), given],
        "a-call-without-a-result": [said, asked_for, user(client, AGAIN)],
        "a-call-at-the-end": [said, asked_for],
        "two-results": [said, asked_for, given, result(client, "call_1", "word-sun"), user(client, AGAIN)],
        "two-calls-of-one-id": [
            said,
            asked_for,
            given,
            call(client, "call_1", "word-rome"),
            given,
            user(client, AGAIN),
        ],
        "the-model-first": [model(client, "word-hi"), user(client, AGAIN)],
        "the-model-last": [said, model(client, "word-so far \n")],
        "two-users": [said, user(client, AGAIN)],
        "two-models": [said, model(client, "word-one"), model(client, "word-two"), user(client, AGAIN)],
        "an-empty-turn": [said, model(client, ""), user(client, AGAIN)],
        "blanks": [user(client, f" \n{HELLO}\t "), model(client, " "), user(client, AGAIN)],
    }[name]


ACCEPTED = (
    "system-in-the-middle",
    "system-at-the-end",
    "only-system",
    "a-result-without-a-call",
    "a-result-before-its-call",
    "a-result-too-late",
    "a-call-without-a-result",
    "a-call-at-the-end",
    "two-results",
    "two-calls-of-one-id",
    "the-model-first",
    "the-model-last",
    "two-users",
    "two-models",
    "an-empty-turn",
    "blanks",
)


@pytest.mark.parametrize("upstream", WITH_TOOLS)
@pytest.mark.parametrize("client", WITH_TOOLS)
@pytest.mark.parametrize("name", [pytest.param(name, id=f"C17-{name}") for name in ACCEPTED])
def test_what_is_odd_is_taken_and_all_of_it_passed_on(
    harness: GatewayHarness, name: str, client: str, upstream: str
) -> None:
    async def scenario() -> None:
        path, body = upstream_body(client, upstream, turns_of(client, name))
        harness.upstream.script(valid_response(upstream, streamed=False))
        answer = await harness.read_response(await harness.post(path, json.dumps(body).encode()))
        assert_completed(client, answer, streamed=False)
        got = harness.upstream.requests[0].body.decode()
        missing = {word for word in WORD.findall(json.dumps(body)) if word not in got}  # chunks of a turn are joined
        assert not missing or "dropped" in answer.headers.get("x-xenoglot-losses", ""), (missing, got)
        if client == upstream:
            assert json.loads(got) == body

    harness.run(scenario())


def malformed_turn(client: str, name: str) -> JSON:
    """A turn that is none."""
    content = "parts" if client == "gemini" else "content"
    text: JSON = [{"text": HELLO}] if client == "gemini" else HELLO
    return {
        "an-unknown-role": {"role": "wizard", content: text},
        "a-role-that-is-no-text": {"role": 5, content: text},
        "no-object": HELLO,
        "null": None,
        "content-that-is-a-number": {"role": "user", content: 5},
    }[name]


REJECTED = ("an-unknown-role", "a-role-that-is-no-text", "no-object", "null", "content-that-is-a-number")


@pytest.mark.parametrize("upstream", ["chat", "messages"])
@pytest.mark.parametrize("client", WITH_TOOLS)
@pytest.mark.parametrize("name", [pytest.param(name, id=f"C17-{name}") for name in REJECTED])
def test_what_is_no_turn_is_refused_by_its_place(
    harness: GatewayHarness, name: str, client: str, upstream: str
) -> None:
    if (client, name) == ("ollama", "an-unknown-role"):
        return  # see below

    async def scenario() -> None:
        path, body = upstream_body(client, upstream, [user(client, AGAIN), malformed_turn(client, name)])
        answer = await harness.read_response(await harness.post(path, json.dumps(body).encode()))
        told = assert_refused(client, answer, error_codes(client, "invalid_request"), 400)
        field = {"gemini": "contents", "interactions": "input", "responses": "input"}.get(client, "messages")
        assert re.match(rf"{field}(\[1\]|\.1)", told.message), told
        assert harness.upstream.requests == []

    harness.run(scenario())


@pytest.mark.parametrize("upstream", ["chat", "messages"])
@pytest.mark.parametrize("client", WITH_TOOLS)
def test_c17_no_conversation_at_all(harness: GatewayHarness, client: str, upstream: str) -> None:
    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        path, body = upstream_body(client, upstream, [])
        answer = await harness.read_response(await harness.post(path, json.dumps(body).encode()))
        assert answer.status in {200, 400}, answer.raw

    harness.run(scenario())


@pytest.mark.parametrize("upstream", WITH_TOOLS)
def test_c17_roles_that_a_template_of_ollamas_may_know(harness: GatewayHarness, upstream: str) -> None:
    """Its server takes any; elsewhere there is no saying it, which is told."""

    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        path, body = upstream_body(
            "ollama", upstream, [user("ollama", AGAIN), malformed_turn("ollama", "an-unknown-role")]
        )
        answer = await harness.read_response(await harness.post(path, json.dumps(body).encode()))
        assert_completed("ollama", answer, streamed=False)
        got = b"wizard" in harness.upstream.requests[0].body
        told = "$.messages[1].content[0]" in answer.headers.get("x-xenoglot-losses", "")
        assert (got, told) == ((True, False) if upstream == "ollama" else (False, True))

    harness.run(scenario())
