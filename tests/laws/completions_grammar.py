"""What the wire of legacy completions allows: the order and shape of its chunks, as tables, walked.

Source: `Completion` and `CompletionChoice` of openai-python
(https://developers.openai.com/api/docs/api-reference/completions/object).
"""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.json import JSON, JSONObject

ORDER = {
    "start": {"chunk": "open", "error": "failed", "comment": "start"},
    "open": {"chunk": "open", "usage": "counted", "done": "done", "error": "failed", "comment": "open"},
    "counted": {"done": "done", "error": "failed", "comment": "counted"},
    "done": {},
    "failed": {},
}
"""State of the stream -> what came -> next state. The usage comes last, in a chunk without choices."""

CHUNK_FIELDS = {"id", "object", "created", "model", "choices"}
CHOICE_FIELDS = {"text", "index", "logprobs", "finish_reason"}
SAME_IN_ALL = ("id", "object", "created", "model")
FINISH_REASONS = {"stop", "length", "content_filter"}
COLUMNS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def check_completions(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of chunks; return the state it ended in, `done` or `failed`."""
    state = "start"
    first: JSONObject = {}
    open_choices: dict[int, bool] = {}
    for event in events:
        assert event.event is None, f"chunks have no name: `{event.event}`"
        data: JSON = {} if event.comment is not None or event.data == b"[DONE]" else decode_json(event.data)
        kind = _kind(event, data)
        assert kind in ORDER[state], f"`{kind}` while `{state}`: expected one of {sorted(ORDER[state])}"
        state = ORDER[state][kind]
        if kind == "error":
            assert data["error"].keys() >= {"message", "type", "param", "code"}
        if kind not in {"chunk", "usage"}:
            continue
        assert data.keys() >= CHUNK_FIELDS, f"a chunk lacks {CHUNK_FIELDS - data.keys()}"
        first = first or data
        assert all(data[name] == first[name] for name in SAME_IN_ALL), "chunks of two answers"
        assert data["object"] == "text_completion"
        for choice in data["choices"]:
            _check_choice(choice, open_choices)
    assert state in {"done", "failed"}, f"the stream ended while `{state}`"
    if state == "done":
        assert open_choices, "`[DONE]` without a choice"
        assert not any(open_choices.values()), f"`[DONE]` without a finish: {open_choices}"
    return state


def _kind(event: ServerSentEvent, data: JSONObject) -> str:
    if event.comment is not None:
        return "comment"
    if event.data == b"[DONE]":
        return "done"
    if "error" in data:
        return "error"
    return "chunk" if data["choices"] or data.get("usage") is None else "usage"


def _check_choice(choice: JSONObject, open_choices: dict[int, bool]) -> None:
    """Text and probabilities may come until the finish, which comes once."""
    assert choice.keys() >= CHOICE_FIELDS, f"a choice lacks {CHOICE_FIELDS - choice.keys()}"
    assert isinstance(choice["text"], str)
    assert open_choices.get(choice["index"], True), "a choice goes on after its finish"
    finish = choice["finish_reason"]
    assert finish is None or finish in FINISH_REASONS, f"`finish_reason` is `{finish}`"
    open_choices[choice["index"]] = finish is None
    logprobs = choice["logprobs"]
    if logprobs is not None and "content" not in logprobs:
        lengths = {len(logprobs[key]) for key in COLUMNS if logprobs.get(key) is not None}
        assert len(lengths) == 1, "the columns of `logprobs` are not of one length"
