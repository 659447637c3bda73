"""What the wire of Interactions allows: the life of an answer and of its steps, as tables, walked.

Sources: `InteractionSSEEvent`, `StepStart`, `StepDelta` and `StepStop` in `google/genai/_gaos/types/interactions` of
the official SDK, and https://ai.google.dev/gemini-api/docs/interactions/streaming.
"""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.json import JSON, JSONObject

ORDER = {
    "start": {"comment": "start", "interaction.created": "between", "error": "failed", "other": "start"},
    "between": {
        "comment": "between",
        "interaction.status_update": "between",
        "step.start": "inside",
        "step.delta": "between",
        "interaction.completed": "completed",
        "error": "failed",
        "other": "between",
    },
    "inside": {
        "comment": "inside",
        "step.delta": "inside",
        "step.stop": "between",
        "interaction.status_update": "inside",
        "error": "failed",
        "other": "inside",
    },
    "completed": {"done": "done"},
    "done": {},
    "failed": {},
}
"""State of the stream -> event -> next state. A delta between steps is one that only this dialect knows."""

KINDS = {kind for table in ORDER.values() for kind in table} - {"comment", "other", "done"}

DELTAS = {
    "model_output": {"text", "text_annotation_delta", "image", "audio", "video", "document"},
    "thought": {"thought_summary", "thought_signature"},
    "function_call": {"arguments_delta"},
}
"""Type of a step -> the types of its deltas; a step of a tool of the server has deltas of its own type."""

REQUIRED = {"function_call": {"id", "name", "arguments"}}
"""Type of a step -> what its start has."""

STATUSES = {"completed", "requires_action", "incomplete", "budget_exceeded", "requires_continuation"}


def check_interactions(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream; return the state it ended in, `done` or `failed`."""
    state, index, kind = "start", -1, ""
    for event in events:
        name, data = _read(event)
        assert name in ORDER[state], f"`{name}` while `{state}`: expected one of {sorted(ORDER[state])}"
        if name == "step.start":
            index += 1
            kind = _check_start(data, index)
        elif name == "step.delta" and state == "inside":
            _check_delta(data, index, kind)
        elif name == "step.stop":
            assert data["index"] == index, f"step {data['index']} stops while {index} is open"
        elif name.startswith("interaction."):
            _check_life(name, data)
        elif name == "error":
            assert data["error"].keys() >= {"code", "message"}, data
        state = ORDER[state][name]
    assert state in {"done", "failed"}, f"the stream ended while `{state}`"
    return state


def _read(event: ServerSentEvent) -> tuple[str, JSONObject]:
    if event.comment is not None:
        return "comment", {}
    if event.data == b"[DONE]":
        assert event.event == "done"
        return "done", {}
    data: JSON = decode_json(event.data)
    assert isinstance(data, dict)
    kind = data["event_type"]
    assert event.event == kind, f"`{kind}` is named `{event.event}`"
    return (kind if kind in KINDS else "other"), data


def _check_start(data: JSONObject, index: int) -> str:
    assert data["index"] == index, f"step {data['index']} starts after {index - 1}"
    step = data["step"]
    lacking = REQUIRED.get(step["type"], set()) - step.keys()
    assert not lacking, f"a `{step['type']}` lacks {lacking}"
    return str(step["type"])


def _check_delta(data: JSONObject, index: int, kind: str) -> None:
    assert data["index"] == index, f"step {data['index']} grows while {index} is open"
    delta = data["delta"]["type"]
    known = {one for deltas in DELTAS.values() for one in deltas}
    if delta in known:
        assert delta in DELTAS.get(kind, {delta}), f"a `{delta}` of a `{kind}`"


def _check_life(name: str, data: JSONObject) -> None:
    if name == "interaction.status_update":
        assert data.keys() >= {"interaction_id", "status"}, data
        return
    told = data["interaction"]
    assert told.keys() >= {"status"}, told
    if name == "interaction.created":
        assert told["status"] == "in_progress", told
    elif told["status"] not in STATUSES:
        assert told["status"].endswith("_to_come"), told
