"""Events over a WebSocket: `response.create`, and the events of its answer, each in a message of its own.

Sources: https://developers.openai.com/api/docs/guides/websocket-mode; `responses_client_event.py` and
`responses_server_event.py` in `openai/types/responses/` of the official SDK; the schemas `WebSocketResponseCreateEvent`
and `WebSocketErrorEvent` of Open Responses. Codex (`codex-rs/codex-api/src/endpoint/responses_websocket.rs`) takes an
`error` without `status` for none, and waits on; its `response.processed` wants nothing done; its headers of a single
request are fields of `client_metadata`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.web_socket import CreateEvent, IgnoredEvent, SteerEvent, WebSocketForm
from xenoglot.codec.reader import Reader
from xenoglot.dialects.openai.shared import refusal
from xenoglot.dialects.responses.errors import read_failure
from xenoglot.dialects.responses.stream.frames import answer_of, kind_of
from xenoglot.dialects.responses.web_socket.steer import STEER
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.features.web_socket import ClientEvent, Headers
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

CREATE: Final = "response.create"
PROCESSED: Final = "response.processed"

_ENVELOPE: Final = frozenset({"type", "stream", "stream_id", "background", "generate"})
"""Fields of `response.create` that are of the transport, or of nothing else."""

_STEER_FIELDS: Final = frozenset({"type", "previous_response_id", "input"})

_LANE_CHARACTERS: Final = 256

BETA: Final = "openai-beta"
TRANSPORT: Final = "responses_websockets"
"""How the value of that header begins by which a client wants this transport; no server of requests knows it."""

TRACE: Final = "ws_request_header_"
"""How fields of `client_metadata` begin that are headers of the one request."""

TRACE_HEADERS: Final = ("traceparent", "tracestate")

CREATED: Final = "response.created"
ENDS: Final = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})
FAILURES: Final = frozenset({"response.failed", "error"})

SERVER_ERROR: Final = 500

_CALLS: Final = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
}
"""Items with a result -> the item that it answers."""


def decode(event: JSON) -> ClientEvent:
    """Return what a client's event asks.

    Raises:
        WireError: it is none of those that there are, or has a field of a wrong type.
    """
    reader = Reader(event)
    kind = reader.need("type", str)
    if kind == PROCESSED:
        return IgnoredEvent()
    if kind == "response.steer":
        return _steer(event)
    if kind != CREATE:
        raise WireError("$.type", f"must be `{CREATE}` or `response.steer`, not `{kind[:64]}`")
    return _create(event)


def _create(event: JSONObject) -> CreateEvent:
    reader = Reader(event)
    if reader.take("background", bool):
        raise WireError("$.background", "is not for a WebSocket: post the request instead")
    lane = reader.take("stream_id", str)
    if lane is not None and not 0 < len(lane) <= _LANE_CHARACTERS:
        raise WireError("$.stream_id", f"must have 1 to {_LANE_CHARACTERS} characters")
    generate = reader.take("generate", bool) is not False
    previous = reader.take("previous_response_id", str)
    body = {key: value for key, value in event.items() if key not in _ENVELOPE}
    return CreateEvent({**body, "stream": True}, lane, previous, generate)


def _steer(event: JSONObject) -> SteerEvent:
    """Return steering input; unknown fields are listed with it."""
    reader = Reader(event)
    steered = reader.need("previous_response_id", str)
    said = event.get("input")
    return SteerEvent(steered, said, tuple(sorted(event.keys() - _STEER_FIELDS)))


def error(status: int, body: JSON, headers: Mapping[str, str]) -> JSONObject:
    """Return the event of a failure that has this status and body over HTTP.

    The headers stand where Codex looks for them, and where the official SDK does.
    """
    told = body.get("error") if isinstance(body, dict) else None
    said: JSONObject = dict(told) if isinstance(told, dict) else {"message": "the request failed"}
    said = with_code({"type": "server_error", "code": None, "param": None, **said})
    if not headers:
        return {"type": "error", "status": status, "error": said}
    return {"type": "error", "status": status, "error": said | {"headers": dict(headers)}, "headers": dict(headers)}


def stream_error(frame: JSON) -> JSONObject:
    """Return the event of a stream that failed as it is here: an `error` has a status, and an object with the rest."""
    event = frame if isinstance(frame, dict) else {}
    if event.get("type") != "error":
        return event
    failure = read_failure(frame)
    said = event["error"] if isinstance(event.get("error"), dict) else event
    told = {key: said.get(key) for key in ("code", "message", "param")}
    kind = said.get("type")
    told["type"] = kind if isinstance(kind, str) and kind != "error" else "server_error"
    number = {"sequence_number": event["sequence_number"]} if "sequence_number" in event else {}
    return {"type": "error", "status": failure.status or SERVER_ERROR, "error": with_code(told), **number}


def with_code(said: JSONObject) -> JSONObject:
    """Return an error with its type as `code` if it has none: `WebSocketErrorEvent` needs one, unlike an HTTP body."""
    return said if isinstance(said.get("code"), str) else said | {"code": said["type"]}


def head(headers: Headers, body: JSONObject) -> Headers:
    """Return the headers of a handshake as those of one request of the connection."""
    metadata = body.get("client_metadata")
    own = {
        name: value
        for name in TRACE_HEADERS
        if isinstance(metadata, dict) and isinstance(value := metadata.get(TRACE + name), str)
    }
    kept = [(name, value) for name, value in headers if name not in own and name != BETA]
    for name, value in headers:
        if name == BETA and (rest := [one.strip() for one in value.split(",") if TRANSPORT not in one]):
            kept.append((BETA, ", ".join(rest)))
    return [*kept, *own.items()]


class ResponseObserver:
    """Watches one answer: only the events that begin or end it are read."""

    __slots__ = ("_last", "answer_id", "ended", "failed")

    def __init__(self) -> None:
        self.answer_id: str | None = None
        self.ended = self.failed = False
        self._last: ServerSentEvent | None = None

    def feed(self, event: ServerSentEvent, /) -> None:
        """Take one event."""
        kind = event.event or kind_of(event)
        if kind == CREATED:
            self.answer_id = answer_of(event).get("id")
        elif kind in ENDS:
            self.ended = True
            self.failed = kind in FAILURES
            self._last = event

    @property
    def answer(self) -> JSONObject:
        """The answer in the event that ended it; empty before."""
        return {} if self._last is None else answer_of(self._last)


def unmatched(before: Sequence[JSON], own: Sequence[JSON]) -> Failure | None:
    """Return what is wrong with results whose calls are nowhere, as OpenAI's server refuses them."""
    for item in own:
        kind = _CALLS.get(item.get("type", "")) if isinstance(item, dict) else None
        if kind is None or not isinstance(item, dict):
            continue
        call = item.get("call_id")
        if not any(_is_call(one, kind, call) for one in (*before, *own)):
            what = "function" if kind == "function_call" else "custom tool"
            message = f"No tool call found for {what} call output with call_id {call}."
            return refusal("invalid_request", message, param="input")
    return None


def _is_call(item: JSON, kind: str, call: JSON) -> bool:
    return isinstance(item, dict) and item.get("type") == kind and item.get("call_id") == call


def expired(minutes: int) -> Failure:
    """Return the failure of a request on a connection that is too old."""
    message = f"Responses websocket connection limit reached ({minutes} minutes). Create a new connection to continue."
    return refusal("invalid_request", message, code="websocket_connection_limit_reached")


def too_many_lanes(most: int) -> Failure:
    """Return the failure of a request for one lane more than there may be."""
    message = f"Responses websocket stream limit reached: a connection has at most {most} values of `stream_id`."
    return refusal("invalid_request", message, param="stream_id", code="websocket_stream_limit_reached")


WEB_SOCKET: Final = WebSocketForm(
    path="/v1/responses",
    decode=decode,
    error=error,
    stream_error=stream_error,
    head=head,
    observer=ResponseObserver,
    unmatched=unmatched,
    expired=expired,
    too_many_lanes=too_many_lanes,
    steer=STEER,
)
"""The events of Responses over a WebSocket."""
