"""What the chunks of a Gemini stream allow: answers of their own, each candidate over when it is said why.

Sources: `GenerateContentResponse` (https://ai.google.dev/api/generate-content), and how google-genai reads a stream:
`request_streamed` in `_api_client.py` knows an error by how its line begins, `_validate_response` in `chats.py` takes a
chunk without a part for a broken answer.
"""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.json import JSONObject

ORDER = {
    "open": {"piece": "open", "last": "done", "blocked": "done", "error": "failed"},
    "done": {},
    "failed": {},
}
"""State of the stream -> what came -> next state. Only the last chunk says why the candidates ended, and all of it."""

DATA = {
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "thoughtSignature",
    "x_new",
    "type",
}
"""What a part may hold; the last two stand for kinds to come."""

COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
)


def check_gemini(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of chunks; return the state it ended in, `done` or `failed`."""
    state = "open"
    model: str | None = None
    grown: set[int] = set()
    for event in events:
        assert event.comment is None, "a comment is no lawful line to the SDK for Python"
        assert event.event is None, "chunks have no name"
        chunk = decode_json(event.data)
        kind = _kind(chunk)
        assert kind in ORDER[state], f"`{kind}` while `{state}`"
        state = ORDER[state][kind]
        if kind == "error":
            assert event.data.startswith(b'{"error":'), "the SDK for Python knows an error by its first field"
            assert chunk["error"].keys() >= {"code", "message", "status"}
            continue
        if "modelVersion" in chunk:
            model = model or chunk["modelVersion"]
            assert chunk["modelVersion"] == model, "chunks of two models"
        counts = [chunk.get("usageMetadata", {}).get(name, 0) for name in COUNTS]
        assert all(type(count) is int and count >= 0 for count in counts)
        indexes = [_checked(candidate) for candidate in chunk.get("candidates", ())]
        grown.update(indexes)
        if kind == "last":
            assert grown == set(indexes), "a candidate has no end"
    assert state in {"done", "failed"}, f"the stream ended while `{state}`"
    return state


def _kind(chunk: JSONObject) -> str:
    if "error" in chunk:
        return "error"
    if "blockReason" in chunk.get("promptFeedback", {}):
        return "blocked"
    ended = ["finishReason" in candidate for candidate in chunk["candidates"]]
    assert ended, "a chunk without candidates is a broken answer to the SDKs"
    assert len(set(ended)) == 1, "some candidates end, and others do not"
    return "last" if ended[0] else "piece"


def _checked(candidate: JSONObject) -> int:
    content = candidate["content"]
    assert content["role"] == "model"
    assert content["parts"], "a content without parts is a broken answer to the SDKs"
    for part in content["parts"]:
        assert part.keys() & DATA, f"a part of nothing: {part}"
    assert type(candidate["index"]) is int
    return int(candidate["index"])
