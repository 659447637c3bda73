"""The record of a dialect's events over a WebSocket: what a client sends, and errors. Pure.

The events of an answer are those of the dialect's stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject

Headers: TypeAlias = Sequence[tuple[str, str]]


class CreateEvent(Struct, frozen=True):
    """A request: the `body` is that of the dialect's endpoint, for a stream.

    Requests of one `lane` are answered one after another, those of several lanes at once. `previous` is the answer that
    it continues. One that does not `generate` only prepares the next.
    """

    body: JSONObject
    lane: str | None = None
    previous: str | None = None
    generate: bool = True


class SteerEvent(Struct, frozen=True):
    """Input for what continues an answer that is in progress; `steered` is its id.

    `unknown` are fields that the event has and may not have.
    """

    steered: str
    input: JSON
    unknown: tuple[str, ...] = ()


class IgnoredEvent(Struct, frozen=True):
    """An event after which nothing is to be done."""


ClientEvent: TypeAlias = CreateEvent | SteerEvent | IgnoredEvent


class SteerError(Struct, frozen=True):
    """Why steering input is not taken: a `code` of the dialect, and a message."""

    code: str
    message: str


class AnswerBoundary(Protocol):
    """Watches the events of one answer, and knows where it can end before it is complete."""

    def feed(self, event: ServerSentEvent, /) -> None:
        """Take one event."""
        ...

    def steered(self) -> ServerSentEvent | None:
        """Return the event that ends the answer here; `None` if it cannot end."""
        ...


class SteerForm(Struct, frozen=True, kw_only=True):
    """How a dialect steers an answer that is in progress: its events, each given the number that it has in the stream.

    `problem` is what is wrong with steering input, `refusal` why the answer to a request cannot be steered. `accepted`
    and `pending` have the id of the input and that of the answer; `pending` what the client must send first, as the
    answer `required` it. `continuation` is the body that continues an answer with steering input, given the body that
    it answers; `merged` is a body with steering input in front of its own.
    """

    problem: Callable[[JSON], str | None]
    refusal: Callable[[JSONObject], str | None]
    required: Callable[[JSONObject], Sequence[JSONObject]]
    accepted: Callable[[str, str, int], JSONObject]
    pending: Callable[[str, str, Sequence[JSONObject], int], JSONObject]
    failed: Callable[[str | None, SteerEvent, SteerError, int], JSONObject]
    continuation: Callable[[JSONObject, str, Sequence[JSON]], JSONObject]
    merged: Callable[[JSONObject, Sequence[JSON]], JSONObject]
    items: Callable[[JSON], list[JSON]]
    boundary: Callable[[], AnswerBoundary]
    invalid: str
    """The code for input with a problem."""
    unsupported: str
    """The code for an answer that cannot be steered."""
    not_found: SteerError
    too_many: SteerError
    completed: SteerError
    not_active: SteerError
    not_created: SteerError


class AnswerObserver(Protocol):
    """Watches the events of one answer, as its client gets them."""

    answer_id: str | None
    """Its id, once an event had it."""
    ended: bool
    """Whether an event has ended it."""
    failed: bool
    """Whether it ended in a failure."""

    @property
    def answer(self) -> JSONObject:
        """The whole answer once it has ended; empty before."""
        ...

    def feed(self, event: ServerSentEvent, /) -> None:
        """Take one event."""
        ...


class WebSocketForm(Struct, frozen=True, kw_only=True):
    """A dialect's events over a WebSocket at `path`.

    `decode` reads an event of a client; it raises `WireError` or `FailureError` for what is none. `error` is the event
    of a failure, from the status, body and headers that it has over HTTP; `stream_error` is that of a stream's error
    event. `head` has the headers of a handshake that go with a request, given its body. `unmatched` returns what is
    wrong with a continuation whose own items do not fit those before it.
    """

    path: str
    decode: Callable[[JSON], ClientEvent]
    error: Callable[[int, JSON, Mapping[str, str]], JSONObject]
    stream_error: Callable[[JSON], JSONObject]
    head: Callable[[Headers, JSONObject], Headers]
    observer: Callable[[], AnswerObserver]
    unmatched: Callable[[Sequence[JSON], Sequence[JSON]], Failure | None]
    expired: Callable[[int], Failure]
    """The connection is as many minutes old as it may be."""
    too_many_lanes: Callable[[int], Failure]
    """It has as many lanes as it may have."""
    steer: SteerForm | None = None
