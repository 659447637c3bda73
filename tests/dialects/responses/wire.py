"""Short ways to write down streams and answers of the dialect."""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialects.responses import RESPONSES
from xenoglot.model.content import Extra, Part
from xenoglot.model.events import Event
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response

ANSWER: JSONObject = {
    "id": "resp_1",
    "object": "response",
    "created_at": 7,
    "completed_at": None,
    "status": "in_progress",
    "incomplete_details": None,
    "error": None,
    "model": "m",
    "usage": None,
    "output": [],
}
ITEM: JSONObject = {"type": True, "id": "msg_1", "status": "completed", "role": "assistant"}
"""How the first part of the message below is marked."""

MESSAGE: JSONObject = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
OUTPUT_TEXT: JSONObject = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
AT: JSONObject = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

ASKED = Request(model="m", stream=True)


def own(**form: JSON) -> Extra:
    return Extra(dialect="responses", form=form)


def event(kind: str, /, **fields: JSON) -> JSONObject:
    return {"type": f"response.{kind}", **fields}


def completed_event(*output: JSON, status: str = "completed", **fields: JSON) -> JSONObject:
    """Return the event that ends an answer whose items are `output`."""
    return event(status, response={**ANSWER, "status": status, "output": list(output), **fields})


def message(*content: JSON, **fields: JSON) -> JSONObject:
    return {**MESSAGE, "status": "completed", "content": list(content), **fields}


def text(words: str, **fields: JSON) -> JSONObject:
    return {**OUTPUT_TEXT, "text": words, **fields}


def read(*items: JSON) -> list[Event]:
    """Return the events of a stream, each checked against the grammar."""
    events = [ServerSentEvent(encode_json(item)) for item in items]
    return list(through(events, Pipeline(RESPONSES.stream_decoder(), Grammar())))


def read_answer(*items: JSON) -> list[Event]:
    """Return what a stream says between its start and its finish."""
    _, *events, _ = read(event("created", response=ANSWER), *items)
    return events


def answered(*parts: Part, finish: Finish | None = None) -> Response:
    end = finish or Finish(reason="stop")
    return Response(id="resp_1", model="m", created=7, candidates=(Candidate(content=parts, finish=end),))


def written(events: Iterable[Event], request: Request = ASKED) -> tuple[list[JSON], list[str]]:
    """Return the data of what a client is sent, and each loss as a line."""
    losses = Losses()
    frames = through(events, RESPONSES.stream_encoder(request, losses))
    return [_data(frame) for frame in frames], [str(loss) for loss in losses]


def encoded(response: Response, request: Request = ASKED) -> tuple[JSONObject, list[str]]:
    """Return a whole answer as a client is sent it, and each loss as a line."""
    losses = Losses()
    body = RESPONSES.encode_response(response, request, losses)
    return body, [str(loss) for loss in losses]


def _data(frame: ServerSentEvent) -> JSON:
    return f": {frame.comment}" if frame.comment is not None else decode_json(frame.data)
