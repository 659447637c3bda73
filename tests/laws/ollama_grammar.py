"""What the lines of an Ollama stream allow: pieces of one answer, then the last one, or an error.

Sources: `ChatResponse` and `GenerateResponse` of Ollama's `api/types.go`, and `docs/api/streaming.mdx`.
"""

from collections.abc import Callable, Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.dialects.ollama.response_envelope import decode_moment
from xenoglot.model.json import JSON, JSONObject

ORDER = {
    "open": {"piece": "open", "last": "done", "error": "failed"},
    "done": {},
    "failed": {},
}
"""State of the stream -> what came -> next state."""

TYPES: dict[str, type] = {
    "done_reason": str,
    "total_duration": int,
    "load_duration": int,
    "prompt_eval_count": int,
    "prompt_eval_duration": int,
    "eval_count": int,
    "eval_duration": int,
    "logprobs": list,
    "context": list,
}
"""What may stand beside the words, where it does."""

LAST_ONLY = {"done_reason", "total_duration", "load_duration", "prompt_eval_count", "eval_count", "context"}

NOBODY_KNOWS = ("1970-01-01", "0001-01-01")
"""How a time begins that stands for none."""


def check_chat(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of `/api/chat`; return the state it ended in, `done` or `failed`."""
    return _check(events, _chat_words)


def check_generate(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of `/api/generate`; return the state it ended in, `done` or `failed`."""
    return _check(events, _generate_words)


def _check(events: Iterable[ServerSentEvent], words: Callable[[JSONObject], JSONObject]) -> str:
    state = "open"
    for event in events:
        assert event.comment is None, "an empty line is no JSON to clients"
        assert event.event is None, "lines have no name"
        assert b"\n" not in event.data
        piece = decode_json(event.data)
        kind = "error" if "error" in piece else "last" if piece["done"] else "piece"
        assert kind in ORDER[state], f"`{kind}` while `{state}`"
        state = ORDER[state][kind]
        if kind == "error":
            assert isinstance(piece["error"], str)
            assert piece["error"], "an empty error is none to clients"
        else:
            _check_piece(piece, words(piece), last=kind == "last")
    assert state in {"done", "failed"}, "the stream ended without its last piece"
    return state


def _check_piece(piece: JSONObject, words: JSONObject, *, last: bool) -> None:
    assert type(piece["model"]) is str
    assert type(piece["done"]) is bool
    assert decode_moment(piece["created_at"]) is not None or piece["created_at"].startswith(NOBODY_KNOWS)
    for name, kind in TYPES.items():
        assert type(piece.get(name, kind())) is kind, f"`{name}` is {piece.get(name)!r}"
    assert last or not piece.keys() & LAST_ONLY, "the cost of an answer stands in its last piece"
    assert type(words.get("thinking", "")) is str
    assert all(type(data) is str for data in words.get("images") or ())
    for call in words.get("tool_calls") or ():
        assert type(call["function"]["name"]) is str
        assert type(call["function"].get("arguments", {})) is dict, "arguments are an object"
        assert type(call.get("id", "")) is str


def _chat_words(piece: JSONObject) -> JSONObject:
    message: JSONObject = piece["message"]
    assert message["role"] == "assistant"
    _check_text(message["content"])
    return message


def _generate_words(piece: JSONObject) -> JSONObject:
    _check_text(piece["response"])
    return piece


def _check_text(text: JSON) -> None:
    assert type(text) is str, "there are words in every piece, be they none"
