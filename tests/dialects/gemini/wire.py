"""Short ways to say what stands on the wire, and what became of it."""

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.gemini import GEMINI
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request


def chunk(*parts: JSONObject, **fields: JSON) -> ServerSentEvent:
    """Return a chunk of one candidate; `finish` is why it ended."""
    candidate: JSONObject = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if "finish" in fields:
        candidate["finishReason"] = fields.pop("finish")
    return ServerSentEvent(encode_json({"candidates": [candidate], "modelVersion": "m", "responseId": "r", **fields}))


def event_data(events: list[ServerSentEvent]) -> list[JSON]:
    """Return what events say."""
    return [decode_json(event.data) for event in events]


def written(*messages: Message, target: Target | None = None, **fields: JSON) -> tuple[JSONObject, list[str]]:
    """Return a stranger's request as the dialect writes it, and its losses."""
    losses = Losses()
    body = GEMINI.encode_request(Request(model="m", messages=messages, **fields), losses, target or Target())
    return body, [str(loss) for loss in losses]
