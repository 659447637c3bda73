"""Clients that keep nothing of an answer but its words and calls: what the upstream needs comes back by default.

The gateway listens on loopback and nothing is set. The client is of another dialect than the upstream; it sends the
first turn back with its calls alone.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.harness import GatewayHarness
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.model.content import ToolCall
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Response
from xenoglot.testing.script import Respond

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.model.json import JSON, JSONObject

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
SCHEMA: JSONObject = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS: dict[str, list[JSON]] = {
    "chat": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
    "messages": [{"name": "weather", "input_schema": SCHEMA}],
}
ARGUMENTS = '{"city":"Lyon"}'
ASK: JSON = {"role": "user", "content": "Rain?"}
SEAL = "c2VhbGVkLWNhc2U="
CALL: JSONObject = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
DETAILS: list[JSON] = [
    {"type": "reasoning.encrypted", "data": SEAL, "id": "rs_1", "format": "openai-responses-v1", "index": 0}
]

GEMINI: JSONObject = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"name": "weather", "args": {"city": "Lyon"}}, "thoughtSignature": SEAL}],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    "modelVersion": "m",
    "responseId": "1",
}
CHAT: JSONObject = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": None, "reasoning_details": DETAILS, "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
MESSAGES: JSONObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Lyon it is.", "signature": SEAL},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Lyon"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESPONSES: JSONObject = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "weather",
            "arguments": ARGUMENTS,
            "status": "completed",
        },
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}
ANSWERS = {"gemini": GEMINI, "chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness whose gateway stores; nothing is said of what clients strip."""
    with ExitStack() as stack:
        yield GatewayHarness(more={"store": {"url": "memory"}}).start(stack)


def upstream_steps(upstream: str, body: JSONObject, *, streamed: bool) -> Respond:
    """Return the step of an upstream that answers `body`."""
    kind, data = "application/json", json.dumps(body).encode()
    if streamed:
        dialect = get(upstream)
        written = Pipeline(dialect.stream_encoder(Request(model="m", stream=True), Losses()), dialect.framing.encoder())
        kind, data = "text/event-stream", b"".join(through(unfold(dialect.decode_response(body)), written))
    return Respond(200, (("content-type", kind),), data)


def turns_with_result(client: str, call: ToolCall) -> list[JSON]:
    """Return the turns of a second request: the call as a client writes it that knows no more of it, and its result."""
    if client == "messages":
        use: JSON = {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        result: JSON = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    function: JSON = {"name": call.name, "arguments": call.arguments}
    made: JSON = {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]}
    return [made, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]


CASES = [
    pytest.param("gemini", "chat", id="gemini-signature-chat"),
    pytest.param("gemini", "messages", id="gemini-signature-messages"),
    pytest.param("chat", "messages", id="reasoning-details-messages"),
    pytest.param("messages", "chat", id="anthropic-signature-chat"),
    pytest.param("responses", "chat", id="encrypted-reasoning-chat"),
    pytest.param("responses", "messages", id="encrypted-reasoning-messages"),
]


@pytest.mark.parametrize("streamed", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
@pytest.mark.parametrize(("upstream", "client"), CASES)
def test_what_the_upstream_sealed_comes_back(
    harness: GatewayHarness, upstream: str, client: str, *, streamed: bool
) -> None:
    """findings-clients-5: two turns with a call; the second request to the upstream has what the client left out."""

    async def turn(turns: list[JSON]) -> tuple[JSON, bytes]:
        harness.upstream.script([upstream_steps(upstream, ANSWERS[upstream], streamed=streamed)])
        body: JSONObject = {
            "model": f"{upstream}-small",
            "max_tokens": 99,
            "messages": turns,
            "tools": TOOLS[client],
            "stream": streamed,
        }
        answer = await harness.read_response(await harness.post(PATHS[client], json.dumps(body).encode()))
        assert answer.status == 200, answer.body
        return json.loads(harness.upstream.requests[-1].body), answer.body

    async def scenario() -> None:
        first, body = await turn([ASK])
        assert SEAL not in json.dumps(first)
        answered = tool_call_of(client, body, streamed=streamed)
        second, _ = await turn([ASK, *turns_with_result(client, answered)])
        assert SEAL in json.dumps(second)
        if upstream == "gemini":  # Gemini 3 refuses it anywhere but on the call
            (part,) = second["contents"][1]["parts"]
            assert (part["functionCall"]["name"], part["thoughtSignature"]) == ("weather", SEAL)

    harness.run(scenario())


def tool_call_of(client: str, body: bytes, *, streamed: bool) -> ToolCall:
    """Return the call in what the client got."""
    dialect = get(client)
    if streamed:
        response = fold(through([body], Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))
    else:
        response = dialect.decode_response(json.loads(body))
    assert isinstance(response, Response)
    return next(part for part in response.candidates[0].content if isinstance(part, ToolCall))


WITH_REASONING: JSONObject = {
    **GEMINI,
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Lyon it is.", "thought": True},
                    {"text": "I look.", "thoughtSignature": "d29yZHM="},
                    *GEMINI["candidates"][0]["content"]["parts"],
                    {"functionCall": {"name": "weather", "args": {"city": "Nice"}}},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
}


@pytest.mark.parametrize("streamed", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
def test_gemini_3_gets_each_signature_where_it_was_from_a_client_with_thoughts(
    harness: GatewayHarness, *, streamed: bool
) -> None:
    """The first call of a step has the signature; the client brings its thought back, and it has none of its own.

    See https://ai.google.dev/gemini-api/docs/thought-signatures.
    """

    async def turn(turns: list[JSON]) -> tuple[JSON, bytes]:
        harness.upstream.script([upstream_steps("gemini", WITH_REASONING, streamed=streamed)])
        body: JSONObject = {
            "model": "gemini-small",
            "max_tokens": 9999,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "messages": turns,
            "tools": TOOLS["messages"],
            "stream": streamed,
        }
        answer = await harness.read_response(await harness.post(PATHS["messages"], json.dumps(body).encode()))
        assert answer.status == 200, answer.body
        return json.loads(harness.upstream.requests[-1].body), answer.body

    async def scenario() -> None:
        _, body = await turn([ASK])
        dialect = get("messages")
        if streamed:
            response = fold(through([body], Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))
            assert isinstance(response, Response)
            body = json.dumps(dialect.encode_response(response, Request(model="m"), Losses())).encode()
        content = json.loads(body)["content"]
        assert [block["type"] for block in content] == ["thinking", "text", "tool_use", "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "rain"}
            for block in content
            if block["type"] == "tool_use"
        ]
        second, _ = await turn([ASK, {"role": "assistant", "content": content}, {"role": "user", "content": results}])
        parts = [
            ((part.get("functionCall") or {}).get("args") or part.get("text"), part.get("thoughtSignature"))
            for part in second["contents"][1]["parts"]
        ]
        said = ("I look.", "d29yZHM=") if not streamed else ("I look.", None)
        sealed = [] if not streamed else [("", "d29yZHM=")]
        assert parts == [said, *sealed, ({"city": "Lyon"}, SEAL), ({"city": "Nice"}, None)]

    harness.run(scenario())
