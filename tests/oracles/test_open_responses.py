"""What is written for clients of Responses obeys the schema that Open Responses publishes (2026-04-24).

https://www.openresponses.org/specification; the document is `public/openapi/openapi.json` of
`openresponses/openresponses`. It has fewer kinds of items, tools and annotations than OpenAI has: what it has no schema
for is not held against it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import get_args

import pytest
from hypothesis import given, settings

from tests.laws.streams import HEADERS, streams
from tests.laws.vectors import Case, decoded, each
from tests.oracles.test_schemas import FOLDER, check
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialects.responses import RESPONSES
from xenoglot.dialects.responses.web_socket.events import WEB_SOCKET
from xenoglot.model.events import Event
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.fold import fold
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Response

ASKED = Request(model="m", stream=True)
DOCUMENT = "open_responses"
ITEMS = {"message", "function_call", "function_call_output", "reasoning", "compaction"}
"""`type` of an item, as far as the document has it."""


@cache
def event_schemas() -> dict[str, str]:
    """Return the name of the schema of each type of event."""
    schemas = json.loads((FOLDER / f"{DOCUMENT}.json").read_text(encoding="utf-8"))
    events = {name: schema for name, schema in schemas.items() if name.endswith("StreamingEvent")}
    return {schema["properties"]["type"]["enum"][0]: name for name, schema in events.items()}


def is_of_the_document(value: JSONObject) -> bool:
    """Return whether the document has all the kinds of items, tools and annotations in an answer or an event."""
    answer = value.get("response") or value
    items = [*answer.get("output", ()), *([value["item"]] if "item" in value else [])]
    parts = [part for item in items for part in item.get("content") or ()]
    parts += [value["part"]] if "part" in value else []
    cited = [note for part in parts for note in part.get("annotations", ())]
    cited += [value["annotation"]] if "annotation" in value else []
    return (
        all(item["type"] in ITEMS for item in items)
        and all(note["type"] == "url_citation" for note in cited)
        and all(tool["type"] == "function" for tool in answer.get("tools", ()))
    )


def as_documented(value: JSONObject) -> JSONObject:
    """Return an answer, or an event with one, without what the document cannot hold.

    `JsonSchemaResponseFormat.schema` can be null alone there, and `ReasoningEffortEnum` lacks efforts that OpenAI has.
    """
    if isinstance(value.get("response"), dict):
        return value | {"response": as_documented(value["response"])}
    if value.get("object") != "response":
        return value
    form, reasoning = value["text"]["format"], value["reasoning"]
    if form["type"] == "json_schema":
        value = value | {"text": value["text"] | {"format": form | {"schema": None}}}
    if isinstance(reasoning, dict) and reasoning["effort"] in ("minimal", "max"):
        value = value | {"reasoning": reasoning | {"effort": "high"}}
    return value


def check_written(events: list[Event], asked: Request) -> None:
    """Write an answer in both ways and hold it against the document."""
    for event in through(events, RESPONSES.stream_encoder(asked, Losses())):
        value = decode_json(event.data) if event.comment is None else {}
        if value.get("type") in event_schemas() and is_of_the_document(value):
            check(DOCUMENT, event_schemas()[value["type"]], as_documented(value))
    answer = fold(events)
    if isinstance(answer, Response):
        body = RESPONSES.encode_response(answer, asked, Losses())
        if is_of_the_document(body):
            check(DOCUMENT, "ResponseResource", as_documented(body))


@each("stream.*", where=lambda case: case.folder.parent.name != RESPONSES.name)
def test_what_is_written_of_a_strangers_vector(case: Case) -> None:
    """pitfall-83: also in the answers that events carry, and for the request of the vector."""
    check_written(decoded(case.dialect, [case.stream]), case.asked())


@settings(max_examples=100)
@given(events=streams(HEADERS))
def test_what_is_written_of_any_stream(events: list[Event]) -> None:
    check_written(events, ASKED)


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_an_error_over_a_web_socket_of_any_kind(kind: FailureKind) -> None:
    """Over HTTP `code` of an error may be null; of this event it may not."""
    status, body = RESPONSES.encode_error(Failure(kind=kind, message="it failed"))
    event = WEB_SOCKET.error(status, body, {"retry-after": "7"})
    check(DOCUMENT, "WebSocketErrorEvent", event)
    failed = {"type": "error", "code": None, "message": "it failed", "param": None, "sequence_number": 7}
    check(DOCUMENT, "WebSocketErrorEvent", WEB_SOCKET.stream_error(failed))
