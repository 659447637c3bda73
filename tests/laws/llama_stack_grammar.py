"""What the wires of Llama Stack allow: the order and shape of their events, as tables, walked.

Sources: `ChatCompletionResponseEvent` and `CompletionResponseStreamChunk` in `llama_stack/apis/inference/inference.py`,
`ContentDelta` in `llama_stack/apis/common/content_types.py` (https://github.com/llamastack/llama-stack at b8f1561956).
"""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.json import JSON, JSONObject

CHAT_ORDER = {
    "new": {"start": "open", "error": "failed", "comment": "new"},
    "open": {"progress": "open", "complete": "done", "error": "failed", "comment": "open", "heartbeat": "open"},
    "done": {},
    "failed": {},
}
"""State of the stream -> what came -> next state; `heartbeat` is a vector's event of a kind that does not exist."""

CONTINUATION_ORDER = {
    "open": {"piece": "open", "last": "done", "error": "failed", "comment": "open"},
    "done": {},
    "failed": {},
}

STATUS_ORDER = {
    "idle": {"started": "making"},
    "making": {"in_progress": "making", "succeeded": "idle", "failed": "idle"},
}
"""State of the call in the making -> its status -> next state."""

DELTAS = {"text": {"text"}, "image": {"image"}, "tool_call": {"tool_call", "parse_status"}}
"""Kind of delta -> its fields."""

REASONS = {"end_of_turn", "end_of_message", "out_of_tokens"}
CALL_FIELDS = {"call_id", "tool_name", "arguments"}


def _walk(table: dict[str, dict[str, str]], state: str, kind: str) -> str:
    assert kind in table[state], f"`{kind}` while `{state}`: expected one of {sorted(table[state])}"
    return table[state][kind]


def check_llama_stack(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of chat events; return the state it ended in, `done` or `failed`."""
    state, call = "new", "idle"
    for event in events:
        data = _data(event)
        inner = data.get("event", {})
        state = _walk(CHAT_ORDER, state, _kind(event, data, inner.get("event_type")))
        if not inner:
            continue
        delta = inner["delta"]
        fields = DELTAS.get(delta["type"], set())
        assert delta.keys() >= fields, f"a `{delta['type']}` lacks {fields - delta.keys()}"
        if delta["type"] == "tool_call":
            call = _walk(STATUS_ORDER, call, delta["parse_status"])
            assert isinstance(delta["tool_call"], dict) == (call == "idle"), "a call is whole when it is over"
            if call == "idle":
                _check_call(delta["tool_call"])
        _check_rest(data, inner)
    assert state in {"done", "failed"}, f"the stream ended while `{state}`"
    assert state == "failed" or call == "idle", "a call has no end"
    return state


def check_llama_stack_completion(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of pieces of a text; return the state it ended in, `done` or `failed`."""
    state = "open"
    for event in events:
        data = _data(event)
        kind = "last" if "stop_reason" in data else "piece" if "delta" in data else None
        state = _walk(CONTINUATION_ORDER, state, _kind(event, data, kind))
        if "delta" in data:
            assert isinstance(data["delta"], str)
            _check_rest(data, data)
    assert state in {"done", "failed"}, f"the stream ended while `{state}`"
    return state


def _data(event: ServerSentEvent) -> JSONObject:
    assert event.event is None, f"events have no name: `{event.event}`"
    return {} if event.comment is not None else decode_json(event.data)


def _kind(event: ServerSentEvent, data: JSONObject, kind: str | None) -> str:
    if event.comment is not None:
        return "comment"
    if "error" in data:
        assert isinstance(data["error"]["message"], str)
        return "error"
    assert kind is not None, f"an event without a kind: {data}"
    return kind


def _check_call(call: JSONObject) -> None:
    assert call.keys() >= CALL_FIELDS, f"a call lacks {CALL_FIELDS - call.keys()}"
    assert isinstance(call["arguments"], str | dict)


def _check_rest(data: JSONObject, inner: JSONObject) -> None:
    """Check what stands beside a delta: probabilities by token, counts by name, one of three words for the end."""
    for place in inner.get("logprobs") or ():
        assert place.keys() == {"logprobs_by_token"}, f"a place of `logprobs` is {place}"
    metrics: list[JSON] = data.get("metrics") or []
    for metric in metrics:
        assert metric.keys() >= {"metric", "value"}, f"a metric is {metric}"
    reason = inner.get("stop_reason")
    assert reason is None or reason in REASONS | {"paused"}, f"`stop_reason` is `{reason}`"
