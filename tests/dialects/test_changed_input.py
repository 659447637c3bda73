"""What a server reports it did to the reasoning of a request: a loss for the client, whatever its dialect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import stream_translator, translate_response
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

MESSAGE: JSONObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "input_transformations": [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"},
        {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "model_binding_mismatch"},
        {"type": "thinking_mismatch_allowed", "path": "messages.5.content.0", "reason": "prefix_binding_mismatch"},
        {"type": "to_come"},
    ],
}
RESPONSE: JSONObject = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}],
    "input_transformations": [{"type": "reasoning", "id": "rs_1", "action": "removed", "reason": "turn_boundary"}],
}
KEPT = "parts that do not belong to the conversation, and that the server kept: 1: prefix_binding_mismatch"
OF_MESSAGES = [
    "$.candidates[0] reasoning of the request dropped (parts that the server removed: 2: model_binding_mismatch)",
    f"$.candidates[0] reasoning of the request approximated ({KEPT})",
]
OF_RESPONSES = ["$.candidates[0] reasoning of the request dropped (parts that the server removed: 1: turn_boundary)"]


def reported(losses: Losses) -> list[str]:
    return [str(loss) for loss in losses if loss.what == "reasoning of the request"]


@pytest.mark.parametrize("client", ["chat", "messages", "responses", "gemini"])
@pytest.mark.parametrize(
    ("body", "server", "expected"),
    [pytest.param(MESSAGE, "messages", OF_MESSAGES, id="m"), pytest.param(RESPONSE, "responses", OF_RESPONSES, id="r")],
)
def test_the_client_learns_of_it(body: JSONObject, server: str, expected: list[str], client: str) -> None:
    losses = Losses()
    answer = translate_response(body, server, client, losses)
    assert reported(losses) == expected
    assert ("input_transformations" in answer) == (client == server)
    named = [loss.why for loss in losses if loss.what == "input_transformations"]
    assert named == ([] if client == server else ["each entry is a loss of the answer"])


def test_a_stream_tells_it_too() -> None:
    start = {**MESSAGE, "content": [], "stop_reason": None}
    events: list[JSONObject] = [
        {"type": "message_start", "message": start},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    data = b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)
    losses = Losses()
    assert b"".join(through([data], stream_translator("messages", "chat", losses)))
    assert reported(losses) == OF_MESSAGES


@pytest.mark.parametrize("odd", [[], None, "x", [1, None], {"type": "thinking_dropped"}])
def test_odd_reports_are_carried(odd: object) -> None:
    losses = Losses()
    body = {**MESSAGE, "input_transformations": odd}
    assert translate_response(body, "messages", "messages", losses) == body
    assert reported(losses) == []
