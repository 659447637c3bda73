"""Calls in pieces in the history of a request: one call elsewhere, and at home the pieces as they came."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.harness import GatewayHarness
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall
from xenoglot.testing.script import Respond

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

SEAL = "c2VhbA=="
PIECES: list[JSONObject] = [
    {"functionCall": {"name": "f", "id": "c1", "willContinue": True}, "thoughtSignature": SEAL},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}], "willContinue": True}},
    {"functionCall": {}},
]
SAID: JSONObject = {"text": "Wait."}
RESULT: JSONObject = {
    "role": "user",
    "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"output": "done"}}}],
}
ASKED: JSONObject = {"role": "user", "parts": [{"text": "Hi"}]}


def model(*parts: JSON) -> JSONObject:
    return {"role": "model", "parts": [*parts]}


HISTORIES: dict[str, list[JSONObject]] = {
    "in-one-content": [model(*PIECES)],
    "in-contents-of-their-own": [model(piece) for piece in PIECES],
    "behind-words": [model(SAID, PIECES[0]), model(*PIECES[1:])],
    "without-its-end": [model(*PIECES[:3])],
    "an-end-twice": [model(*PIECES, PIECES[3])],
}


def request_of(history: list[JSONObject]) -> JSONObject:
    return {"model": "m", "contents": [ASKED, *history, RESULT]}


@pytest.mark.parametrize("case", HISTORIES)
def test_pieces_go_home_as_they_came(case: str) -> None:
    body, losses = request_of(HISTORIES[case]), Losses()
    assert get("gemini").encode_request(get("gemini").decode_request(body), losses, Target()) == body
    assert [*losses] == []


@pytest.mark.parametrize("case", HISTORIES)
def test_pieces_are_one_call(case: str) -> None:
    request = get("gemini").decode_request(request_of(HISTORIES[case]))
    (call,) = [part for message in request.messages for part in message.content if isinstance(part, ToolCall)]
    assert (call.id, call.name, call.arguments) == ("c1", "f", '{"a":"xy"}')
    assert call.extra is not None
    assert call.extra.fields == {"thoughtSignature": SEAL}
    for name in ("chat", "messages", "responses", "ollama"):
        losses = Losses()
        written = json.dumps(get(name).encode_request(request, losses, Target()))
        assert [written.count(word) for word in ("done", "willContinue", "no result")] == [1, 0, 0]
        assert [str(loss) for loss in losses if "nothing of it" in str(loss)] == []


def test_a_piece_without_a_call_is_refused() -> None:
    with pytest.raises(WireError) as error:
        get("gemini").decode_request(request_of([model(PIECES[1])]))
    assert str(error.value) == "$.contents[1].parts[0].functionCall.name: required, expected str"


@pytest.mark.parametrize("client", ["gemini", "chat"])
def test_pieces_through_a_gateway(client: str) -> None:
    """The stream passes between Gemini's own; the client sends it back content by content, and so it arrives."""
    chunks = [{"candidates": [{"content": content, "index": 0}]} for content in HISTORIES["in-contents-of-their-own"]]
    ending = {"candidates": [{"content": model(SAID), "index": 0, "finishReason": "STOP"}]}
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in [*chunks, ending])
    path = {
        "gemini": "/v1beta/models/gemini-small:streamGenerateContent?alt=sse",
        "chat": "/v1/chat/completions",
    }[client]
    turns: dict[str, JSONObject] = {
        "gemini": {"contents": [ASKED]},
        "chat": {"model": "gemini-small", "stream": True, "messages": [{"role": "user", "content": "Hi"}]},
    }
    asked = turns[client]

    async def scenario() -> None:
        kind = (("content-type", "text/event-stream"),)
        harness.upstream.script([Respond(200, kind, data), Respond(200, kind, data)])
        answer = await harness.read_response(await harness.post(path, json.dumps(asked).encode()))
        assert answer.status == 200, answer.body
        if client == "chat":
            assert answer.body.count(b'"name":"f"') == 1
            assert b'{\\"a\\":\\"xy\\"}' in answer.body
            return
        assert answer.body == data
        history = [ASKED, *HISTORIES["in-contents-of-their-own"], RESULT]
        answer = await harness.read_response(await harness.post(path, json.dumps({"contents": history}).encode()))
        assert answer.status == 200, answer.body
        assert json.loads(harness.upstream.requests[-1].body)["contents"] == history

    with ExitStack() as stack:
        harness = GatewayHarness().start(stack)
        harness.run(scenario())
