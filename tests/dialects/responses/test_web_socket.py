"""Events of Responses over a WebSocket: what a client's mean, and how failures are written."""

from __future__ import annotations

import pytest
from openai.types.responses.responses_server_event import ResponseWsError

from xenoglot.codec.features.web_socket import CreateEvent, IgnoredEvent
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.responses.web_socket.events import WEB_SOCKET, ResponseObserver
from xenoglot.errors import WireError

FORM = WEB_SOCKET
BODY = {"model": "m", "input": "Hi"}


def test_a_request_is_the_body_of_a_stream_without_the_envelope() -> None:
    event = {"type": "response.create", **BODY, "stream_id": "a", "generate": False, "background": False}
    assert FORM.decode(event) == CreateEvent({**BODY, "stream": True}, lane="a", generate=False)
    chained = FORM.decode({"type": "response.create", **BODY, "previous_response_id": "resp_1", "store": False})
    body = {**BODY, "previous_response_id": "resp_1", "store": False, "stream": True}
    assert chained == CreateEvent(body, previous="resp_1")


def test_codex_says_what_it_has_processed() -> None:
    assert FORM.decode({"type": "response.processed", "response_id": "resp_1"}) == IgnoredEvent()


@pytest.mark.parametrize(
    ("event", "path"),
    [
        pytest.param([], "$", id="no-object"),
        pytest.param({}, "$.type", id="no-type"),
        pytest.param({"type": "session.update"}, "$.type", id="another-api"),
        pytest.param({"type": "response.create", "background": True}, "$.background", id="background"),
        pytest.param({"type": "response.create", "stream_id": "x" * 257}, "$.stream_id", id="long-lane"),
        pytest.param({"type": "response.create", "generate": 1}, "$.generate", id="generate"),
    ],
)
def test_what_is_no_event_is_refused(event: object, path: str) -> None:
    with pytest.raises(WireError) as refused:
        FORM.decode(event)
    assert refused.value.path == path


def test_an_error_has_status_and_headers_where_codex_and_the_sdk_look() -> None:
    error = {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded", "param": None}
    event = FORM.error(429, {"error": error}, {"retry-after": "7"})
    assert event == {
        "type": "error",
        "status": 429,
        "error": {**error, "headers": {"retry-after": "7"}},
        "headers": {"retry-after": "7"},
    }
    read = ResponseWsError.model_validate(event, strict=True)
    assert (read.status, read.error.code, read.error.headers) == (429, "rate_limit_exceeded", {"retry-after": "7"})
    assert FORM.error(502, "no JSON of ours", {})["error"] == {
        "type": "server_error",
        "code": "server_error",
        "param": None,
        "message": "the request failed",
    }


def test_an_error_in_a_stream_gets_a_status_and_an_answer_that_failed_stays() -> None:
    """Without `status` Codex takes it for no error, and waits until its time is over."""
    flat = {"type": "error", "code": "server_error", "message": "broken", "param": None, "sequence_number": 7}
    assert FORM.stream_error(flat) == {
        "type": "error",
        "status": 500,
        "error": {"type": "server_error", "code": "server_error", "message": "broken", "param": None},
        "sequence_number": 7,
    }
    assert FORM.stream_error({**flat, "code": None})["error"]["code"] == "server_error"
    failed = {"type": "response.failed", "response": {"id": "resp_1"}}
    assert FORM.stream_error(failed) == failed


def test_headers_of_a_handshake_become_those_of_a_request() -> None:
    headers = [
        ("authorization", "Bearer key"),
        ("openai-beta", "responses_websockets=2026-02-06, other=v1"),
        ("traceparent", "00-old"),
    ]
    body = {"client_metadata": {"ws_request_header_traceparent": "00-new", "session": "s"}}
    assert FORM.head(headers, body) == [
        ("authorization", "Bearer key"),
        ("openai-beta", "other=v1"),
        ("traceparent", "00-new"),
    ]
    assert FORM.head([("openai-beta", "responses_websockets=2026-02-06")], {}) == []


@pytest.mark.parametrize("named", [True, False])
def test_an_answer_is_watched_with_names_of_events_and_without(named: bool) -> None:  # noqa: FBT001  a case
    observer = ResponseObserver()
    for kind, more in (
        ("response.created", {"response": {"id": "resp_1"}}),
        ("response.output_text.delta", {"delta": "x"}),
        ("response.failed", {"response": {"id": "resp_1"}}),
    ):
        assert not observer.ended
        observer.feed(ServerSentEvent(encode_json({"type": kind, **more}), kind if named else None))
    observer.feed(ServerSentEvent(b"[DONE]"))
    assert (observer.answer_id, observer.ended, observer.failed) == ("resp_1", True, True)


@pytest.mark.parametrize(
    ("before", "own", "message"),
    [
        pytest.param(["function_call"], "function_call_output", None, id="function"),
        pytest.param(["custom_tool_call"], "custom_tool_call_output", None, id="custom"),
        pytest.param([], "message", None, id="message"),
        pytest.param(
            ["custom_tool_call"],
            "function_call_output",
            "No tool call found for function call output with call_id c.",
            id="another-kind",
        ),
        pytest.param(
            [], "custom_tool_call_output", "No tool call found for custom tool call output with call_id c.", id="none"
        ),
    ],
)
def test_results_whose_calls_are_nowhere(before: list[str], own: str, message: str | None) -> None:
    items = [{"type": kind, "call_id": "c"} for kind in before]
    failure = FORM.unmatched(items, [{"type": own, "call_id": "c"}])
    assert (None if failure is None else failure.message) == message
