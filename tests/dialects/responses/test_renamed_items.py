"""Items that come under other ids in later events are the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.fold import fold
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

ITEM: JSONObject = {"output_index": 0, "item_id": "a"}
REASONING: JSONObject = {
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "think"}],
}
MESSAGE: JSONObject = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hello", "annotations": []}],
}
CALL: JSONObject = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}
OTHER = MESSAGE | {"id": "m", "content": [{"type": "output_text", "text": "yes", "annotations": []}]}
KINDS: dict[str, tuple[JSONObject, JSONObject, JSONObject, type]] = {
    "reasoning": (
        REASONING,
        {"content": []},
        {"type": "response.reasoning_text.delta", "content_index": 0, "delta": "think"},
        Reasoning,
    ),
    "message": (
        MESSAGE,
        {"content": [], "status": "in_progress"},
        {"type": "response.output_text.delta", "content_index": 0, "delta": "hello"},
        Text,
    ),
    "function_call": (
        CALL,
        {"arguments": "", "status": "in_progress"},
        {"type": "response.function_call_arguments.delta", "delta": "{}"},
        ToolCall,
    ),
}


def answer(status: str, *output: JSON) -> JSONObject:
    head = {"id": "r1", "object": "response", "created_at": 1, "model": "m", "status": status}
    return {**head, "output": list(output)}


@pytest.mark.parametrize(
    ("done", "moved"),
    [("a", False), ("b", False), (None, False), ("a", True), ("b", True)],
    ids=["done", "done-renamed", "never-done", "done-moved", "done-renamed-moved"],
)
@pytest.mark.parametrize("last", ["a", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_findings_a5_an_item_under_another_id_is_told_once(
    kind: str, done: str | None, last: str, *, moved: bool
) -> None:
    item, begun, delta, part = KINDS[kind]
    output = [item | {"id": last}, OTHER]
    wire: list[JSONObject] = [
        {"type": "response.created", "response": answer("in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": item | begun | {"id": "a"}},
        ITEM | delta,
        *([{"type": "response.output_item.done", "output_index": 0, "item": item | {"id": done}}] if done else ()),
        {"type": "response.output_item.done", "output_index": 1, "item": OTHER},
        {"type": "response.completed", "response": answer("completed", *(output[::-1] if moved else output))},
    ]
    frames = [ServerSentEvent(encode_json(event)) for event in wire]
    folded = fold(through(frames, get("responses").stream_decoder()))
    assert isinstance(folded, Response)
    assert [type(one) for one in folded.candidates[0].content] == [part, Text]
