"""The cases of Open Responses over an upstream of each dialect, against the schema that it publishes.

Source: `src/lib/compliance-tests.ts` of `openresponses/openresponses` (92c12d96, July 2026), by the ids of its cases.
The published suite itself runs with `make compliance`. Its cases over WebSocket are in `test_web_socket.py`;
`response-output-phase-schema` sends nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct
from msgspec.json import decode

from tests.laws.responses_grammar import check_responses
from tests.matrix.all_dialects_gateway import AllDialectsGateway
from tests.matrix.open_responses import REFUSED, TEXT_ONLY, answer, post
from tests.oracles.test_open_responses import DOCUMENT, event_schemas
from tests.oracles.test_schemas import check
from xenoglot import dialect_registry as dialects
from xenoglot.codec.framing.sse import SSEDecoder
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.stage import through

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject


SCHEMAS = {"response": "ResponseResource", "response.compaction": "CompactResource"}
"""`object` of an answer -> its schema."""


class ComplianceCase(Struct, frozen=True):
    """A request, and what its answer has to hold: types of items and, of a stream, types of events.

    A `model` that is null stays out of the request.
    """

    id: str
    request: dict[str, object]
    path: str = "/v1/responses"
    statuses: tuple[int, ...] = (200,)
    items: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


CASES = decode((Path(__file__).parent / "open_responses.json").read_bytes(), type=list[ComplianceCase])


@pytest.fixture(scope="module")
def structured() -> Iterator[AllDialectsGateway]:
    """Give a gateway whose upstreams take tools."""
    with AllDialectsGateway() as running:
        yield running


@pytest.fixture(scope="module")
def textual() -> Iterator[AllDialectsGateway]:
    """Give a gateway whose upstreams write their calls as text."""
    with AllDialectsGateway(text_syntax="hermes", emulate={"tools": True}) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("dialect", dialects.names())
def test_pitfall_83_a_case_of_the_published_suite(
    structured: AllDialectsGateway, textual: AllDialectsGateway, dialect: str, case: ComplianceCase
) -> None:
    gateway = textual if dialect in TEXT_ONLY else structured
    gateway.speakers[dialect].script(answer)
    asked = {"model": f"{dialect}-m", **case.request}
    sent = {key: value for key, value in asked.items() if value is not None}
    status, body = post(f"{gateway.url}{case.path}", sent)
    reason = REFUSED.get((dialect, case.id))
    if reason is not None:
        assert status == 400
        assert reason in decode_json(body)["error"]["message"]
        return
    assert status in case.statuses, body
    if status != 200:
        return
    response = streamed(body, case) if case.request.get("stream") else decode_json(body)
    check(DOCUMENT, SCHEMAS[response["object"]], response)
    assert response.get("status", "completed") == "completed"
    assert [item["type"] for item in response["output"]] == list(case.items)


def streamed(body: bytes, case: ComplianceCase) -> JSONObject:
    """Return the answer of the last event; every event is of the schema, and in its place."""
    events = [*through([body], SSEDecoder())]
    if events[-1].data == b"[DONE]":
        events.pop()
    assert check_responses(events) == "done"
    values = [decode_json(event.data) for event in events if event.comment is None]
    for value in values:
        check(DOCUMENT, event_schemas()[value["type"]], value)
    assert {value["type"] for value in values} >= set(case.events)
    response: JSONObject = values[-1]["response"]
    return response
