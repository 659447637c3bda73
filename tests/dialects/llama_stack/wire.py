"""Short ways to write down requests, streams and losses of the dialect."""

from collections.abc import Iterable

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialects.llama_stack import LLAMA_STACK
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request, Role
from xenoglot.model.response import Response

START: JSONObject = {"event": {"event_type": "start", "delta": {"type": "text", "text": ""}}}


def message_of(role: Role, *parts: Part | str) -> Message:
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def decoded_request(**fields: JSON) -> Request:
    """Return what a client that asks for `fields` wants."""
    return LLAMA_STACK.decode_request({"model_id": "m", "messages": [], **fields})


def encoded(
    request: Request, target: Target | None = None, dialect: Dialect = LLAMA_STACK
) -> tuple[JSONObject, list[str]]:
    """Return what a server is sent, and each loss as a line."""
    losses = Losses()
    body = dialect.encode_request(request, losses, target or Target())
    return body, [str(loss) for loss in losses]


def answered(response: Response, dialect: Dialect = LLAMA_STACK) -> tuple[JSONObject, list[str]]:
    """Return what a client is sent, and each loss as a line."""
    losses = Losses()
    body = dialect.encode_response(response, Request(model="m"), losses)
    return body, [str(loss) for loss in losses]


def progress(delta: JSONObject, kind: str = "progress", **fields: JSON) -> JSONObject:
    return {"event": {"event_type": kind, "delta": delta, **fields}}


def text(piece: str, kind: str = "progress", **fields: JSON) -> JSONObject:
    return progress({"type": "text", "text": piece}, kind, **fields)


def call(value: JSON, status: str, **fields: JSON) -> JSONObject:
    return progress({"type": "tool_call", "tool_call": value, "parse_status": status}, **fields)


def read(*items: JSON | bytes, dialect: Dialect = LLAMA_STACK) -> list[Event]:
    """Return the events of a stream, each checked against the grammar."""
    events = [ServerSentEvent(item if isinstance(item, bytes) else encode_json(item)) for item in items]
    return list(through(events, Pipeline(dialect.stream_decoder(), Grammar())))


def written(events: Iterable[Event], dialect: Dialect = LLAMA_STACK) -> tuple[list[JSON], list[str]]:
    """Return the data of what a client is sent, and each loss as a line."""
    losses = Losses()
    frames = through(events, dialect.stream_encoder(Request(model="m", stream=True), losses))
    found = [f": {frame.comment}" if frame.comment is not None else decode_json(frame.data) for frame in frames]
    return found, [str(loss) for loss in losses]
