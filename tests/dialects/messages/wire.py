"""Short ways to write down requests, streams and losses of the dialect."""

from collections.abc import Iterable, Sequence

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialects.messages import MESSAGES
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request, Role

START: JSONObject = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
}
END: list[JSONObject] = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 5},
    },
    {"type": "message_stop"},
]


def message_of(role: Role, *parts: Part | str) -> Message:
    """Return a message of these parts; a string is a text."""
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def encoded(request: Request, **target: JSON) -> tuple[JSONObject, list[str]]:
    """Return the body written of `request`, and the lines of its losses."""
    losses = Losses()
    body = MESSAGES.encode_request(request, losses, Target(**target))
    return body, [str(loss) for loss in losses]


def read(events: Iterable[JSONObject]) -> list[Event]:
    """Return the canonical events of these events of the wire; they are lawful."""
    wire = [ServerSentEvent(encode_json(event), event.get("type")) for event in events]
    return list(through(wire, Pipeline(MESSAGES.stream_decoder(), Grammar())))


def written(events: Sequence[Event], request: Request | None = None) -> tuple[list[JSONObject], list[str]]:
    """Return the events of the wire made of canonical events, and the lines of the losses; each has its name."""
    losses = Losses()
    made = list(through(events, MESSAGES.stream_encoder(request or Request(model="m"), losses)))
    bodies = [decode_json(event.data) for event in made]
    assert [event.event for event in made] == [body["type"] for body in bodies]
    return bodies, [str(loss) for loss in losses]
