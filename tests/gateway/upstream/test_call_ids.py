"""findings-F8-ids-none: behind a server without ids, each call of a conversation has an id of its own.

Every case is served without a task and by one, whole and streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.codec.responses.test_unique_ids import STREAMED, WHOLE
from tests.gateway.upstream.test_reasoning_requests import DialectGateway, answer_and_losses
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.model.content import ToolCall
from xenoglot.testing import Respond, ScriptRule, Upstream

if TYPE_CHECKING:
    from xenoglot.model.json import JSON
    from xenoglot.testing import Received

TOOL: JSON = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
TURNS = 4


def answer(received: Received) -> tuple[Respond, ...]:
    body = decode_json(received.body)
    assert isinstance(body, dict)
    if body.get("stream"):
        return (Respond(body=STREAMED["chat"], headers=(("content-type", "text/event-stream"),)),)
    return (Respond(body=encode_json(WHOLE["chat"]), headers=(("content-type", "application/json"),)),)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("task", [False, True], ids=["passage", "task"])
def test_ids_of_a_conversation(monkeypatch: pytest.MonkeyPatch, *, task: bool, stream: bool) -> None:
    if task:
        monkeypatch.setattr(FastPath, "passage", lambda *_: None)
    turns: list[JSON] = [{"role": "user", "content": "Hi"}]
    ids: list[str] = []
    with Upstream(ScriptRule(steps=answer)) as server, DialectGateway(server) as running:
        for _ in range(TURNS):
            body: dict[str, JSON] = {"messages": turns, "max_tokens": 9, "tools": [TOOL]}
            response, _told = answer_and_losses(running, "messages", body, stream=stream)
            (call,) = (part for part in response.candidates[0].content if isinstance(part, ToolCall))
            ids.append(call.id)
            turns = [
                *turns,
                {"role": "assistant", "content": [{"type": "tool_use", "id": call.id, "name": "look", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "seen"}]},
            ]
    first = ids[0]
    assert ids == [first, f"{first}_2", f"{first}_3", f"{first}_4"]
