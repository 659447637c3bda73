"""Short ways to write down requests, streams and losses of the two endpoints."""

from collections.abc import Iterable

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialects.ollama import OLLAMA
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request, Role

AT = "2025-10-26T17:21:21.196249Z"
CREATED = 1761499281


def message_of(role: Role, *parts: Part | str) -> Message:
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def decoded_request(*messages: Message, **fields: JSON) -> Request:
    return Request(model="m", messages=messages, **fields)


def encoded(request: Request, target: Target | None = None, dialect: Dialect = OLLAMA) -> tuple[JSONObject, list[str]]:
    """Return what a server is sent, and each loss as a line."""
    losses = Losses()
    body = dialect.encode_request(request, losses, target or Target())
    return body, [str(loss) for loss in losses]


def piece(content: str = "", *, done: bool = False, **message: JSON) -> JSONObject:
    return {
        "model": "m",
        "created_at": AT,
        "message": {"role": "assistant", "content": content, **message},
        "done": done,
    }


def read(*items: JSON, dialect: Dialect = OLLAMA) -> list[Event]:
    """Return the events of a stream of lines, each checked against the grammar."""
    lines = [ServerSentEvent(item if isinstance(item, bytes) else encode_json(item)) for item in items]
    return list(through(lines, Pipeline(dialect.stream_decoder(), Grammar())))


def written(
    events: Iterable[Event], request: Request | None = None, dialect: Dialect = OLLAMA
) -> tuple[list[JSON], list[str]]:
    """Return the lines that a client is sent, and each loss as a line."""
    losses = Losses()
    lines = through(events, dialect.stream_encoder(request or Request(model="m", stream=True), losses))
    return [decode_json(line.data) for line in lines], [str(loss) for loss in losses]
