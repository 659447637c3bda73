"""OpenAI's SDK as a reader of Responses: its client, the accumulator behind `responses.stream`, and its types."""

from typing import Any, get_args

import openai
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.oracles.wire import CLIENT, OPENAI, WIRE, to_json
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.model.json import JSON, JSONObject

RESPONSE = TypeAdapter(Response)
EVENTS: dict[str, TypeAdapter[Any]] = {
    get_args(kind.model_fields["type"].annotation)[0]: TypeAdapter(kind)
    for kind in get_args(get_args(ResponseStreamEvent)[0])
}
"""Every event of the union, by its type."""


def read_responses(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `responses.create` gives it."""
    WIRE.whole(body, status)
    return to_json(OPENAI.responses.create(model="m", input="i"))


def read_responses_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `responses.stream` accumulates it.

    Its `get_final_response` knows only completed ones; an incomplete one is in the event that ends it. What fails is
    told by an event too: whoever looks at none never learns of it.
    """
    WIRE.stream(events)
    last: JSONObject = {}
    with OPENAI.responses.stream(model="m", input="i") as stream:
        for event in stream:
            if event.type in ("response.completed", "response.incomplete"):
                last = to_json(event.response)
            elif event.type == "response.failed":
                error = event.response.error
                assert error is not None
                raise openai.APIError(error.message, request=CLIENT.build_request("POST", "/"), body=None)
    return last


def validate_answer(body: JSONObject) -> None:
    """Demand that a whole answer is of the SDK's types, nothing converted."""
    RESPONSE.validate_json(encode_json(body), strict=True)


def validate_event(event: ServerSentEvent) -> None:
    """Demand that an event is of the SDK's types, nothing converted."""
    if event.comment is not None:
        return
    data = as_documented(decode_json(event.data))
    EVENTS[data["type"]].validate_json(encode_json(data), strict=True)


def as_documented(value: JSONObject) -> JSONObject:
    """Return an answer, or an event with one, without what OpenAI's servers do otherwise than its document says.

    They write null for a missing `usage`, and for a missing `description` of a format, as Open Responses requires; and
    the codes of errors that Codex goes by (`context_length_exceeded`) are not among those in the document.
    """
    if isinstance(value.get("response"), dict):
        return value | {"response": as_documented(value["response"])}
    said = {key: item for key, item in value.items() if key != "usage" or item is not None}
    if said.get("object") == "response" and "text" in said:
        said["text"] = _without_null(said["text"])
    if isinstance(said.get("error"), dict) and said.get("object") == "response":
        said["error"] = said["error"] | {"code": "server_error"}
    return said


def _without_null(text: JSONObject) -> JSONObject:
    form = text.get("format") or {}
    return text | {"format": {key: item for key, item in form.items() if item is not None}} if form else text
