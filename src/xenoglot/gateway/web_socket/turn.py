"""One request of a WebSocket as an `Exchange`: its body came as a message, and each event of its answer leaves as one.

Theory of operation. It is answered as a posted request is, and the same bytes are written to it. They are cut into
events here, whose data is the text of a message; comments are pings. What a posted request gets in the head of its
response is in the `headers` of the first event, and what comes as a comment after the answer in those of the last.
A failure with a status is an `error` event with that status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.backends.redaction import for_header
from xenoglot.codec.features.web_socket import SteerEvent, WebSocketForm
from xenoglot.codec.framing.formats import Framing
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.errors import WireError
from xenoglot.gateway.http.application import Exchange, MessageSocket
from xenoglot.gateway.web_socket.recent_answers import RecentAnswers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from xenoglot.codec.features.web_socket import CreateEvent
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON

BAD_GATEWAY: Final = 502

NOT_OF_REQUEST: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "expect", "idempotency-key", "keep-alive"}
    | {"transfer-encoding", "upgrade"}
)
"""Headers of a handshake that are none of its requests; those of the handshake itself begin as below."""
HANDSHAKE_PREFIX: Final = "sec-websocket-"

OWN_PREFIX: Final = "x-xenoglot-"
"""How the names of our own headers begin, and of comments that are headers which came too late."""

_OWN: Final = (("accept", "text/event-stream"), ("content-type", "application/json"))

NOT_TOLD: Final = frozenset(
    {"access-control-allow-origin", "cache-control", "content-length", "content-type", "date", "vary"}
    | {"x-accel-buffering", "x-content-type-options"}
)
"""Headers of a response that mean nothing in an event."""

BROKEN: Final = {
    "error": {
        "type": "server_error",
        "code": "server_error",
        "param": None,
        "message": "connection lost: the answer ended without being complete",
    }
}


class ConnectionContext(Struct, frozen=True):
    """What the requests of a connection have in common; `answers` are those that they may continue."""

    handshake: Exchange
    socket: MessageSocket
    form: WebSocketForm
    framing: Framing
    answers: RecentAnswers


class SteerInput(Struct, frozen=True):
    """Input that was accepted, its id, and how many bytes its message had."""

    steer_id: str
    event: SteerEvent
    size: int


class TurnExchange:
    """The exchange of one request."""

    reads_behind_upgrade = True

    def __init__(self, connection: ConnectionContext, created: CreateEvent, size: int = 0) -> None:
        handshake, form = connection.handshake, connection.form
        self.method = "POST"
        self.path = handshake.path
        self.query = handshake.query
        self.peer = handshake.peer
        self.variables: Mapping[str, str] = {}
        self.headers: Sequence[tuple[str, str]] = [*form.head(of_request(handshake.headers), created.body), *_OWN]
        self.form = form
        self.size = size
        """Bytes of its message."""
        self.created = created
        self.answers = connection.answers
        self.observer = form.observer()
        self.refused = False
        """Whether there was no answer, but a status and an error."""
        self._socket = connection.socket
        self._body: bytes | None = None
        self._decoder = connection.framing.decoder()
        self._media_type = connection.framing.media_type
        self._status: int | None = None
        self._told: dict[str, str] = {}
        """Headers that the next event will have."""
        self._streams = False
        self.steers: list[SteerInput] = []
        """Steering input that waits for the answer."""
        self.committing: Sequence[SteerInput] = ()
        """Steering input that its request has."""
        self._sent = 0
        """Events of its stream that were sent ..."""
        self._injected = 0
        """... and those about steering among them, which its server knows nothing of."""
        self._lane = b"" if created.lane is None else b',"stream_id":' + encode_json(created.lane)

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        return next((value for field, value in self.headers if field == name), None)

    async def read_body(self, limit: int) -> bytes:  # noqa: ARG002  a message is no longer than that
        """Return the body."""
        if self._body is None:
            self._body = encode_json(self.created.body)
        return self._body

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Hold the head of the response for the event that comes first."""
        self._status = status
        self._streams = dict(headers).get("content-type") == self._media_type
        self._told = {name: for_header(value) for name, value in headers if name not in NOT_TOLD}

    async def write(self, data: bytes) -> None:
        """Send the events of a piece of the stream; wait while the client is slower than that."""
        self._send(data)
        await self.writable()

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was sent."""
        await self._socket.writable()

    async def end(self, data: bytes = b"") -> None:
        """Send the last events, or the event of a failure."""
        if self._streams:
            self._send(data)
            self.break_off()
            return
        self.refused = True
        try:
            body: JSON = decode_answer(data)
        except WireError:
            body = BROKEN
        self._put(encode_json(self.form.error(self._status or BAD_GATEWAY, body, self._told)))

    def abort(self) -> None:
        """End the answer where it is: a client must not wait for more."""
        self.break_off()

    def break_off(self) -> None:
        """Send an error unless an event has ended the answer: it is not complete."""
        if not self.observer.ended and not self.refused:
            self.refused = True
            self._put(encode_json(self.form.error(BAD_GATEWAY, BROKEN, self._told)))

    def _send(self, data: bytes) -> None:
        self.send_events(self._decoder.feed(data), comments_of(data))

    def send_events(self, events: Sequence[ServerSentEvent], comments: Sequence[tuple[str, str]]) -> None:
        """Send events of the stream; `comments` came with them."""
        if comments and not events:
            self._socket.ping()
        for event in events:
            self.observer.feed(event)
            if self.observer.ended:
                self._told |= {name: value for name, value in comments if name.startswith(OWN_PREFIX)}
            self._event(event)

    def inject(self) -> int:
        """Return the number of an event that is sent among those of the stream."""
        self._injected += 1
        self._sent += 1
        return self._sent - 1

    def _event(self, event: ServerSentEvent) -> None:
        data = event.data
        if self._injected:
            data = renumbered(data, self._sent)
        self._sent += 1
        if self.observer.failed:
            data = encode_json(self.form.stream_error(decode_answer(data)))
        if not data.endswith(b"}"):  # `[DONE]`, which is no event of the dialect
            return
        if self._told:
            data = data[:-1] + b',"headers":' + encode_json(self._told) + b"}"
            self._told = {}
        self._put(data)

    def _put(self, data: bytes) -> None:
        self._socket.put(data[:-1] + self._lane + b"}" if self._lane else data)


def of_request(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers of a handshake that its requests have, too."""
    return [
        (name, value) for name, value in headers if name not in NOT_OF_REQUEST and not name.startswith(HANDSHAKE_PREFIX)
    ]


def renumbered(data: bytes, number: int) -> bytes:
    """Return an event with another number."""
    try:
        frame = decode_answer(data)
    except WireError:
        return data
    if not isinstance(frame, dict) or "sequence_number" not in frame:
        return data
    return encode_json(frame | {"sequence_number": number})


def comments_of(data: bytes) -> Sequence[tuple[str, str]]:
    """Return name and value of each comment: what the gateway writes after an answer, and heartbeats."""
    if b"\n:" not in data and not data.startswith(b":"):
        return ()
    lines = [line[1:].decode("utf-8", "replace").strip() for line in data.split(b"\n") if line.startswith(b":")]
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
