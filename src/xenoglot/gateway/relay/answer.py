"""A streamed answer on its way to the client: what is sent of it, and how it ends. It waits for nothing.

Theory of operation. A driver (`gateway.relay.push_driver` by callbacks, `gateway.relay.task_driver` in a task) reads
the answer and reports what it read; what is to be sent goes to a `ResponseOutput`, in order. The head of the response
is held until there is something to send, so that a failure before it can still be a status, or another target's turn;
after it a failure is the dialect's error event, and the connection is aborted: no reader may take the rest for a whole
answer. Bytes that pass untouched are watched, and those in which a failure is seen that they do not report themselves
are held back. While the upstream is silent the client gets heartbeats.

| state | input | output | next state |
|---|---|---|---|
| `held` | events, bytes, a heartbeat that is due | the head, and them | `open` |
| `held` | a failure | `FailureError`: nothing has been sent | `held` |
| `open` | events, bytes | them | `open` |
| `open` | a heartbeat that is due | it, unless half a frame is open or the client does not read | `open` |
| `open` | events or bytes that end in a failure which they report | they, then an abort | `ended` |
| `open` | any other failure | the dialect's error event, unless half a frame is open; then an abort | `ended` |
| `held`, `open` | the end, after a finish reason | the head if held, what the encoder held, late losses | `ended` |
| `held`, `open` | the end, without one | `FailureError`, which is such a failure | as before |

Whatever follows half a frame would be read as a part of it: so nothing of ours does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from xenoglot.errors import FailureError
from xenoglot.gateway.relay.envelope import OK
from xenoglot.model.events import Failed, Ping, Started, TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.relay.envelope import ResponseEnvelope
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure
    from xenoglot.model.limits import RateLimits

State: TypeAlias = Literal["held", "open", "ended"]

MOST_PIECES: Final = 256
"""Pieces of text that were sent and are not noted yet."""

MOST_EVENTS: Final = 1024
"""Events that are written at once: some 5 ms."""


class ResponseOutput(Protocol):
    """The response to one request, as an answer is sent in it. Nothing waits."""

    @property
    def paused(self) -> bool:
        """Whether the client takes less than it is sent."""
        ...

    def open(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head."""
        ...

    def put(self, data: bytes) -> None:
        """Send a piece of the body."""
        ...

    def finish(self, data: bytes = b"") -> None:
        """Send the last piece: the response is complete."""
        ...

    def abort(self) -> None:
        """Send nothing more, and close so that no reader takes the response for complete."""
        ...


class AnswerRelay:
    """One streamed answer. A target was called when `started`, by `clock`; heartbeats are `interval` seconds apart."""

    __slots__ = (
        "_alive",
        "_clock",
        "_count",
        "_counted",
        "_encoder",
        "_envelope",
        "_ids",
        "_interval",
        "_last",
        "_limits",
        "_output",
        "_record",
        "_reported",
        "_sure",
        "_texts",
        "keep",
        "state",
    )

    def __init__(
        self,
        envelope: ResponseEnvelope,
        output: ResponseOutput,
        clock: Callable[[], float],
        started: float,
        interval: float,
    ) -> None:
        self.state: State = "held"
        self._output = output
        self._clock = clock
        self._interval = interval
        self._last = started
        """When something was sent last."""
        self._envelope = envelope
        self._record = envelope.record
        spans = envelope.record.spans
        self._counted = None if spans is not None and spans.content else TextDelta
        """The event of which only its size is noted; none where answers are recorded."""
        self._ids = envelope.identify(early=True)
        self._encoder = envelope.encoder(self._ids)
        self._count = self._encoder.count
        self._texts: list[str] = []
        """Pieces of text that were sent, and are not noted yet."""
        self.keep: Callable[[str], object] | None = None
        """Takes the text of pieces that are sent alone."""
        self._alive = envelope.dialect.alive
        """The heartbeat between bytes that pass; empty where the encoder's will do, which knows nothing of them."""
        self._reported = False
        """Whether bytes that passed have reported the answer's beginning."""
        self._limits: RateLimits | None = None
        self._sure = False

    def answered(self, limits: RateLimits | None) -> None:
        """Note that the target is certain, and the `limits` that its server reports: the head has both."""
        self._limits = limits
        self._sure = True

    def passes_bytes(self) -> bool:
        """Return whether bytes may pass, and have them begin the answer; not where a heartbeat has, with our id."""
        if self._ids.begun:
            return False
        self._ids.early = None
        self._count = None
        return True

    def write_piece(self, piece: Event, data: bytes | None = None) -> bool:
        """Send an event that is alone in its read, if it is text and nothing else and is sent in one step.

        `data` are its bytes, if they pass. Return whether it was sent: if not, it is to be written as other events are.
        """
        texts = self._texts
        if self.state != "open" or type(piece) is not self._counted or (not texts and not self._record.pieces):
            return False  # of the first, the time is noted
        frame = self._encoder.frame(piece) if data is None else data
        if frame is None:
            return False
        texts.append(piece.text)
        if len(texts) > MOST_PIECES:
            self.note_pieces()
        self._output.put(frame)
        self._last = self._clock()
        return True

    def note_pieces(self) -> None:
        """Note the pieces that were sent alone: before anything else is, or asks for them."""
        texts = self._texts
        if texts:
            text = "".join(texts)
            self._record.pieces += len(texts)
            self._record.characters += len(text)
            texts.clear()
            if self._count is not None:
                self._count(text)
            if self.keep is not None:
                self.keep(text)

    def write_events(self, events: Sequence[Event]) -> bool:
        """Send the events of one read; return whether the answer continues, and did not end in a failure.

        Raises:
            FailureError: they end in a failure, and nothing has been sent. `LossError`, `WireError` and
                `RecursionError`: they cannot be written for the client.
        """
        if self._texts:
            self.note_pieces()
        last = events[-1]
        kind = type(last)
        if type(last) is not self._counted or len(events) != 1:  # nearly all reads are one: nothing else to be noted
            self._envelope.observe(events)
            if type(last) is Failed and self.state == "held":
                raise FailureError(last.failure)
        else:
            record = self._record
            if not record.pieces:
                record.first_token = record.clock()
            record.pieces += 1
            record.characters += len(last.text)
        self._send(self._encoder.write(events))
        if kind is Failed:
            self._abort()
            return False
        return True

    def write_bytes(
        self,
        data: bytes,
        events: Sequence[Event],
        cut: bool = False,  # noqa: FBT001, FBT002  the fields of `Piece`
    ) -> bool:
        """Send the bytes of one read, in which `events` were seen, and after which a frame is open if they are `cut`.

        Return as above.

        Raises:
            FailureError: the bytes do not report a failure that was seen in them, or there are none.
        """
        failure: Failure | None = None
        if self._texts:
            self.note_pieces()
        if events:
            self._envelope.observe(events)
            last = events[-1]
            if type(last) is Failed:
                failure = last.failure
                if failure.dialect is None or not data:
                    raise FailureError(failure)
            if not self._reported:
                self._reported = any(type(event) is Started for event in events)
        if data:
            self._record.cut = cut
            self._send(data)
        if failure is not None:  # it has been reported; a client that waits for more would wait for nothing (U22)
            self._abort()
            return False
        return True

    def finish(self) -> None:
        """End an answer of events.

        Raises:
            FailureError: none of them was the end. `LossError` and others as above.
        """
        self.note_pieces()
        self._envelope.must_have_finished()
        data = b"".join(self._encoder.close())
        self._open()
        self.state = "ended"
        self._output.finish(data + self._envelope.late_losses())

    def finish_bytes(self) -> None:
        """End an answer of bytes: they are all here, and so is what completes them."""
        if self._record.failure is not None:
            self._abort()
            return
        self._open()
        self.state = "ended"
        self._output.finish()

    def fail(self, failure: Failure) -> None:
        """End an answer that is broken.

        Raises:
            FailureError: nothing has been sent.
        """
        if self.state == "held":
            raise FailureError(failure)
        self.note_pieces()
        self._record.failed(failure)
        if self.state == "open" and not self._record.cut:
            self._send(self._encoder.write((Failed(failure=failure),)))
        self._abort()

    def heartbeat(self) -> float:
        """Send a heartbeat if nothing was sent for an interval; return when the next may be due, by the clock."""
        now = self._clock()
        due = self._last + self._interval
        if now < due:
            return due
        if not self._record.cut and not self._output.paused:
            alive = self._alive if self._reported else b""
            self._send(alive or self._encoder.write((Ping(),)))
        return now + self._interval

    def _send(self, data: bytes) -> None:
        if self.state == "held":
            self._open()
        elif not data:  # events that make no bytes leave the client in silence
            return
        if data:
            self._output.put(data)
        self._last = self._clock()

    def _open(self) -> None:
        if self.state == "held":
            headers = self._envelope.begin_stream(self._limits, sure=self._sure)
            self.state = "open"
            self._output.open(OK, headers)

    def _abort(self) -> None:
        self.state = "ended"
        self._output.abort()


def parts(events: Sequence[Event]) -> Sequence[Sequence[Event]]:
    """Return `events` in parts that are written at once; those of a whole answer, or of a large frame, are many."""
    if len(events) <= MOST_EVENTS:
        return (events,)
    return [events[at : at + MOST_EVENTS] for at in range(0, len(events), MOST_EVENTS)]
