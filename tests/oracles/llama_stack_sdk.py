"""A reader of Llama Stack's answers, made after the types of its official client, whose own dependencies are too many.

It stands for llama-stack-client 0.2.2 (`types/shared/chat_completion_response.py`, `types/completion_response.py`,
`types/chat_completion_response_stream_chunk.py`, `types/shared/content_delta.py`): a field that these have not, or of
another type, is an error; a word for the end is any. The client has no accumulator for inference; the pieces are put
together as a server does for a whole answer. It lets an error event in a stream pass for an event without fields; here
that is an error too.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct, field

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.json import JSON, JSONObject

T = TypeVar("T")


class StatusError(Exception):
    """What the client raises for a status, or for what is no answer."""

    def __init__(self, status: int, body: JSON) -> None:
        super().__init__(f"Error code: {status} - {body}")
        self.status_code = status
        self.body = body


class Known(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An object of which every field is known."""


class TokenLogProbs(Known):
    """Probabilities at one place."""

    logprobs_by_token: dict[str, float]


class Metric(Known):
    """One count."""

    metric: str
    value: float
    unit: str | None = None


class TextItem(Known, tag="text"):
    """A text in a list."""

    text: str


class URL(Known):
    """Where an image is."""

    uri: str


class ImageSource(Known):
    """An image, or where it is."""

    data: str | None = None
    url: URL | None = None


class ImageItem(Known, tag="image"):
    """An image in a list."""

    image: ImageSource


class ToolCall(Known):
    """A call."""

    call_id: str
    tool_name: str
    arguments: str | dict[str, JSON]
    arguments_json: str | None = None


class CompletionMessage(Known):
    """What the model said."""

    role: Literal["assistant"]
    content: str | list[TextItem | ImageItem]
    stop_reason: str | None
    tool_calls: list[ToolCall] | None = None


class ChatCompletionResponse(Known):
    """A whole answer."""

    completion_message: CompletionMessage
    logprobs: list[TokenLogProbs] | None = None
    metrics: list[Metric] | None = None


class TextDelta(Known, tag="text"):
    """A piece of text."""

    text: str


class ImageDelta(Known, tag="image"):
    """An image."""

    image: str


class ToolCallDelta(Known, tag="tool_call"):
    """A piece of a call, or a whole one."""

    tool_call: str | ToolCall
    parse_status: Literal["started", "in_progress", "failed", "succeeded"]


class Event(Known):
    """One event."""

    event_type: Literal["start", "complete", "progress"]
    delta: TextDelta | ImageDelta | ToolCallDelta
    logprobs: list[TokenLogProbs] | None = None
    stop_reason: str | None = None


class Chunk(Known):
    """One event, and what is counted."""

    event: Event
    metrics: list[Metric] | None = None


class Completion(Known):
    """A whole continuation."""

    content: str
    stop_reason: str
    logprobs: list[TokenLogProbs] | None = None
    metrics: list[Metric] | None = None


class Piece(Known):
    """A piece of a continuation."""

    delta: str
    stop_reason: str | None = None
    logprobs: list[TokenLogProbs] | None = None
    metrics: list[Metric] | None = None


class Together(Struct):
    """An answer being put together."""

    content: str = ""
    images: list[str] = field(default_factory=list)
    stop_reason: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[TokenLogProbs] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)

    def add(self, text: str, part: Event | Piece, metrics: list[Metric] | None) -> None:
        self.content += text
        self.stop_reason = part.stop_reason or self.stop_reason
        self.logprobs += part.logprobs or []
        self.metrics += metrics or []


def read_chat(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `inference.chat_completion` gives it; a stream has of an image its bytes alone."""
    answer = _read(body, status, ChatCompletionResponse)
    for item in answer.completion_message.content:
        if isinstance(item, ImageItem) and item.image.url is not None and item.image.url.uri.startswith("data:"):
            item.image = ImageSource(data=item.image.url.uri.partition(",")[2])
    return to_json(answer)


def read_chat_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `inference.chat_completion` gives it, put together."""
    answer = Together()
    parts: list[JSONObject] = []
    for body in _bodies(events):
        chunk = _read(body, 200, Chunk)
        delta = chunk.event.delta
        text = delta.text if isinstance(delta, TextDelta) else ""
        answer.add(text, chunk.event, chunk.metrics)
        if text and parts and parts[-1]["type"] == "text":
            parts[-1]["text"] += text
        elif text:
            parts.append({"type": "text", "text": text})
        if isinstance(delta, ToolCallDelta) and isinstance(delta.tool_call, ToolCall):
            answer.tool_calls.append(delta.tool_call)
        if isinstance(delta, ImageDelta):
            answer.images.append(delta.image)
            parts.append({"type": "image", "image": {"data": delta.image}})
    message: JSONObject = {"role": "assistant", "content": answer.content, "stop_reason": answer.stop_reason}
    if answer.images:
        message["content"] = parts
    message["tool_calls"] = to_json(answer.tool_calls)
    return {"completion_message": message, "logprobs": to_json(answer.logprobs), "metrics": to_json(answer.metrics)}


def read_completion(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `inference.completion` gives it."""
    return to_json(_read(body, status, Completion))


def read_completion_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `inference.completion` gives it, put together."""
    answer = Together()
    for body in _bodies(events):
        piece = _read(body, 200, Piece)
        answer.add(piece.delta, piece, piece.metrics)
    return {key: value for key, value in to_json(answer).items() if key not in {"tool_calls", "images"}}


def to_json(value: object) -> JSON:
    """Return a value as JSON."""
    return msgspec.to_builtins(value)


def _bodies(events: Iterable[ServerSentEvent]) -> Iterator[JSON]:
    """Yield the data of the events; comments are none."""
    return (msgspec.json.decode(event.data) for event in events if event.comment is None)


def _read(body: JSON, status: int, kind: type[T]) -> T:
    if status >= 400 or "error" in body:
        raise StatusError(status, body)
    return msgspec.json.decode(encode_json(body), type=kind)
