"""Short ways to write down requests, streams and losses of the dialect."""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialects.chat import CHAT
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request, Role

HEAD: JSONObject = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}


def message_of(role: Role, *parts: Part | str) -> Message:
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def encoded(request: Request, target: Target | None = None) -> tuple[JSONObject, list[str]]:
    """Return what a server is sent, and each loss as a line."""
    losses = Losses()
    body = CHAT.encode_request(request, losses, target or Target())
    return body, [str(loss) for loss in losses]


def chunk(delta: JSON, finish: str | None = None, **choice: JSON) -> JSONObject:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, **choice, "finish_reason": finish}]}


def read(*items: JSON | bytes, done: bool = True) -> list[Event]:
    """Return the events of a stream of chunks, each checked against the grammar."""
    events = [ServerSentEvent(item if isinstance(item, bytes) else encode_json(item)) for item in items]
    if done:
        events.append(ServerSentEvent(b"[DONE]"))
    return list(through(events, Pipeline(CHAT.stream_decoder(), Grammar())))


def written(events: Iterable[Event], request: Request | None = None) -> tuple[list[JSON], list[str]]:
    """Return the data of what a client is sent (JSON where it is), and each loss as a line."""
    losses = Losses()
    frames = through(events, CHAT.stream_encoder(request or Request(model="m", stream=True), losses))
    return [_data(frame) for frame in frames], [str(loss) for loss in losses]


def _data(frame: ServerSentEvent) -> JSON:
    if frame.comment is not None:
        return f": {frame.comment}"
    return "[DONE]" if frame.data == b"[DONE]" else decode_json(frame.data)
