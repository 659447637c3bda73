"""Ollama's SDK as a reader. It has no accumulator: pieces are put together as the server does for a whole answer."""

from collections.abc import Iterable
from typing import Any

import httpx
import ollama

from xenoglot.codec.framing.formats import JSON_LINES
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.stage import through
from xenoglot.model.json import JSON, JSONObject


class Wire:
    """What the next request is answered with."""

    def __init__(self) -> None:
        self._answer = httpx.Response(500)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self._answer.request = request
        return self._answer

    def stream(self, events: Iterable[ServerSentEvent]) -> None:
        body = b"".join(through(events, JSON_LINES.encoder()))
        self._answer = httpx.Response(200, headers={"content-type": JSON_LINES.media_type}, content=body)

    def whole(self, body: JSON, status: int) -> None:
        self._answer = httpx.Response(status, headers={"content-type": "application/json"}, content=encode_json(body))


WIRE = Wire()
OLLAMA = ollama.Client(host="http://oracle.test", transport=httpx.MockTransport(WIRE))

ADDED = ("content", "response", "thinking")
"""Fields whose pieces are put together as one text."""

LISTED = ("tool_calls", "images", "logprobs")
"""Fields whose pieces are put together as one list."""


def to_json(answer: Any) -> JSONObject:  # noqa: ANN401  the SDK's client gives any of its models
    """Return the answer as JSON, without what was not said."""
    found: JSONObject = answer.model_dump(mode="json", exclude_none=True)
    return found


def read_chat(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `chat` gives it."""
    WIRE.whole(body, status)
    return to_json(OLLAMA.chat(model="m", messages=[]))


def read_chat_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `chat` gives it, its pieces put together."""
    WIRE.stream(events)
    return _together(map(to_json, OLLAMA.chat(model="m", messages=[], stream=True)))


def read_generate(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `generate` gives it."""
    WIRE.whole(body, status)
    return to_json(OLLAMA.generate(model="m"))


def read_generate_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `generate` gives it, its pieces put together."""
    WIRE.stream(events)
    return _together(map(to_json, OLLAMA.generate(model="m", stream=True)))


def _together(pieces: Iterable[JSONObject]) -> JSONObject:
    """Return the last piece with the words, thoughts and calls of all (`writeChatResponse` in `server/routes.go`)."""
    whole: JSONObject = {}
    for piece in pieces:
        message = _added(whole.get("message", {}), piece.pop("message", {}))
        whole = _added(whole, piece) | ({"message": message} if message else {})
    return whole


def _added(before: JSONObject, piece: JSONObject) -> JSONObject:
    both = before | piece
    for name in (*ADDED, *LISTED):
        if name in before and name in piece:
            both[name] = before[name] + piece[name]
    return both
