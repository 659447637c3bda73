"""The official SDK over a WebSocket, in front of a server of each dialect; and the cases of Open Responses for it.

Source of the cases: `src/lib/compliance-tests.ts` of `openresponses/openresponses` (92c12d96, July 2026), by their ids.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from openai import OpenAI
from openai.types.responses.responses_server_event import ResponseWsCompleted, ResponseWsError
from websockets.sync.client import connect

from tests.laws.responses_grammar import check_responses
from tests.matrix.all_dialects_gateway import AllDialectsGateway
from tests.matrix.open_responses import REFUSED, TEXT_ONLY, USAGE, answer, post
from tests.oracles.test_open_responses import DOCUMENT, event_schemas
from tests.oracles.test_schemas import check
from xenoglot import dialect_registry as dialects
from xenoglot.codec.framing.sse import ServerSentEvent, SSEDecoder
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.stage import through
from xenoglot.model.content import Text
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
TOOL: JSONObject = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}},
}
LAST = Response(
    candidates=(Candidate(content=(Text(text="It is raining."),), finish=Finish(reason="stop")),), usage=USAGE
)
REMEMBER = "Remember the code word: slate."


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


@pytest.fixture
def gateway(structured: AllDialectsGateway, textual: AllDialectsGateway, dialect: str) -> AllDialectsGateway:
    """Give the gateway for one dialect, whose server answers eight times."""
    chosen = textual if dialect in TEXT_ONLY else structured
    chosen.speakers[dialect].script(*[answer] * 8)
    return chosen


class Session:
    """A connection, and what a turn of it brings."""

    def __init__(self, url: str) -> None:
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(connect(url.replace("http", "ws", 1) + "/v1/responses", max_size=None))

    def turn(self, **body: JSON) -> list[JSONObject]:
        """Return the events for one request; each is of the schema."""
        self._socket.send(json.dumps({"type": "response.create", "store": False} | body))
        events: list[JSONObject] = []
        while not events or events[-1]["type"] not in ENDS:
            events.append(decode_json(self._socket.recv(decode=False)))
        for event in events:
            schema = "WebSocketErrorEvent" if event["type"] == "error" else event_schemas()[event["type"]]
            check(DOCUMENT, schema, event)
        return events

    def close(self) -> None:
        """Close."""
        self._stack.close()


@pytest.fixture
def session(gateway: AllDialectsGateway) -> Iterator[Session]:
    """Give a connection."""
    opened = Session(gateway.url)
    yield opened
    opened.close()


def anonymous(value: JSON) -> list[JSONObject]:
    """Return events without what no two answers share: ids, times, headers."""
    text = re.sub(r"(resp|msg|fc|rs|call)_\w+", r"\1", json.dumps(value))
    events = json.loads(re.sub(r'"created_at": [\d.]+', '"created_at": 0', text))
    return [{key: value for key, value in event.items() if key != "headers"} for event in events]


@pytest.mark.parametrize("more", [{}, {"tools": [TOOL]}], ids=["text", "tool"])
@pytest.mark.parametrize("dialect", dialects.names())
def test_the_events_are_those_of_the_stream(
    gateway: AllDialectsGateway, session: Session, dialect: str, more: JSONObject
) -> None:
    body = {"model": f"{dialect}-m", "input": "What is the weather?", "store": True, **more}
    _, stream = post(f"{gateway.url}/v1/responses", {**body, "stream": True})
    posted = [decode_json(event.data) for event in through([stream], SSEDecoder()) if event.data != b"[DONE]"]
    events = session.turn(**body)
    assert check_responses([ServerSentEvent(json.dumps(event).encode(), event["type"]) for event in events]) == "done"
    told = [event.pop("headers", None) for event in events]
    assert told[0]["x-request-id"]
    assert not any(told[1:-1])
    assert anonymous(events) == anonymous(posted)


@pytest.mark.filterwarnings(
    "ignore:connect.. must be used as a context manager:DeprecationWarning"
)  # the SDK's own way
@pytest.mark.parametrize("dialect", dialects.names())
def test_the_official_sdk_calls_a_tool_and_goes_on(gateway: AllDialectsGateway, dialect: str) -> None:
    gateway.speakers[dialect].script(answer, lambda _: LAST)
    client = OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0)
    with client.responses.connect() as connection:
        connection.response.create(model=f"{dialect}-m", input="Weather?", tools=[TOOL], store=False)  # type: ignore[list-item]
        first = next(event for event in connection if event.type in ENDS)
        assert isinstance(first, ResponseWsCompleted), first
        (call,) = [item for item in first.response.output if item.type == "function_call"]
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
        connection.response.create(
            model=f"{dialect}-m",
            input=[output],  # type: ignore[list-item]
            previous_response_id=first.response.id,
            store=False,
        )
        last = next(event for event in connection if event.type in ENDS)
    if isinstance(last, ResponseWsError):
        assert (dialect, last.status) == ("ollama_generate", 400)  # one prompt, and no conversation
    else:
        assert isinstance(last, ResponseWsCompleted), last
        assert last.response.output_text == "It is raining."


def completes(event: JSONObject, dialect: str, case: str) -> bool:
    """Return whether a case goes on to its end: `event` has completed an answer, unless the upstream cannot hold it."""
    reason = REFUSED.get((dialect, case))
    if reason is None:
        assert event["response"]["status"] == "completed"
        return True
    assert event["status"] == 400
    assert reason in event["error"]["message"]
    return False


@pytest.mark.parametrize("dialect", dialects.names())
class TestOpenResponses:
    """The eight cases over a WebSocket; `websocket-response` is in the tests above."""

    def test_websocket_sequential_responses(self, session: Session, dialect: str) -> None:
        for word in ("first", "second"):
            events = session.turn(model=f"{dialect}-m", input=f"Reply with exactly: {word}")
            assert events[-1]["response"]["status"] == "completed"

    def test_websocket_continuation(self, gateway: AllDialectsGateway, session: Session, dialect: str) -> None:
        first = session.turn(model=f"{dialect}-m", input=REMEMBER)[-1]["response"]["id"]
        last = session.turn(model=f"{dialect}-m", input="What is it?", previous_response_id=first)[-1]
        if completes(last, dialect, "websocket-continuation"):
            assert REMEMBER in str(gateway.speakers[dialect].requests[-1])

    def test_websocket_reconnect_store_false_recovery(
        self, gateway: AllDialectsGateway, session: Session, dialect: str
    ) -> None:
        first = session.turn(model=f"{dialect}-m", input=REMEMBER)[-1]["response"]["id"]
        again = Session(gateway.url)
        (missing,) = again.turn(model=f"{dialect}-m", input="On.", previous_response_id=first)
        assert missing["error"]["code"] == "previous_response_not_found"
        assert again.turn(model=f"{dialect}-m", input="Anew.")[-1]["response"]["status"] == "completed"
        again.close()

    def test_websocket_generate_false(self, session: Session, dialect: str) -> None:
        warm = session.turn(model=f"{dialect}-m", input=REMEMBER, generate=False)[-1]["response"]
        assert (warm["status"], warm["output"]) == ("completed", [])
        last = session.turn(model=f"{dialect}-m", input="What is it?", previous_response_id=warm["id"])[-1]
        completes(last, dialect, "websocket-generate-false")

    def test_websocket_previous_response_not_found(self, session: Session, dialect: str) -> None:
        (event,) = session.turn(model=f"{dialect}-m", input="On.", previous_response_id="resp_openresponses_missing")
        assert (event["status"], event["error"]["code"]) == (400, "previous_response_not_found")

    def test_websocket_failed_continuation_evicts_cache(self, session: Session, dialect: str) -> None:
        first = session.turn(model=f"{dialect}-m", input=REMEMBER)[-1]["response"]["id"]
        missing: JSON = [{"type": "function_call_output", "call_id": "call_openresponses_missing", "output": "x"}]
        (failed,) = session.turn(model=f"{dialect}-m", input=missing, previous_response_id=first)
        assert failed["status"] == 400
        (stale,) = session.turn(model=f"{dialect}-m", input="On.", previous_response_id=first)
        assert stale["error"]["code"] == "previous_response_not_found"

    def test_websocket_compact_new_chain(self, gateway: AllDialectsGateway, session: Session, dialect: str) -> None:
        said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": REMEMBER}]}]
        status, body = post(f"{gateway.url}/v1/responses/compact", {"model": f"{dialect}-m", "input": said})
        failed: JSONObject = {"status": status, **decode_json(body)}
        answered: JSONObject = {"response": {"status": "completed"}}
        if not completes(answered if status == 200 else failed, dialect, "websocket-compact-new-chain"):
            return
        on = {"type": "message", "role": "user", "content": "Continue from here."}
        events = session.turn(model=f"{dialect}-m", input=[*decode_json(body)["output"], on], tools=[])
        assert events[-1]["response"]["status"] == "completed"
