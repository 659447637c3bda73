"""Encodes a stream: canonical events to server-sent events.

The events cover the whole life of an answer (pitfall-111): created, in progress, every item added, grown and done, and
at the end the whole answer again (pitfall-113). That end waits for the end of the stream, for usage may come after the
reason of the end.

A heartbeat is a delta that adds nothing, or between blocks `response.in_progress` with all that was sent so far. A
comment would not do, for Codex does not see those (pitfall-108). An event of a new kind would not do, for openai-node
throws; and it takes what `response.in_progress` contains for the whole answer. Before the answer has an id there is no
such event, so the heartbeat is a comment, unless the caller, which has a clock and ids, begins the answer first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.dialects.responses.client_calls import as_client_call, client_names
from xenoglot.dialects.responses.errors import broken, encode_failure
from xenoglot.dialects.responses.extras import own_fields
from xenoglot.dialects.responses.finish import explained, is_cut
from xenoglot.dialects.responses.response import BESIDE, WHERE, Snapshot
from xenoglot.dialects.responses.stream.event_writer import EventWriter
from xenoglot.dialects.responses.stream.item_encoder import ItemStreamEncoder
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    UsageReported,
)
from xenoglot.model.fold import merge_usage
from xenoglot.model.response import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Piece
    from xenoglot.model.failure import Failure
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

PING = ServerSentEvent(b"", comment="ping")


class StreamEncoder:
    """A stage from canonical events to server-sent events: the answer to `request`."""

    __slots__ = ("_ended", "_events", "_finished", "_items", "_losses", "_ours", "_request", "_snapshot", "_usage")

    def __init__(self, request: Request, losses: Losses) -> None:
        self._request = request
        self._ours = client_names(request.tools)
        self._losses = losses
        self._events = EventWriter()
        self._items = ItemStreamEncoder("", self._events, losses)
        self._snapshot: Snapshot | None = None
        self._usage: Usage | None = None
        self._finished: Finished | None = None
        self._ended = False

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return what it makes on the wire."""
        if self._ended:
            return ()
        if getattr(event, "candidate", 0) != 0:
            self._losses.dropped("$.candidates", "candidate", "an answer of the dialect is one")
            return ()
        return self._feed(event)

    def frame(self, piece: Piece, /) -> bytes | None:
        """Take a piece that is its text and nothing else; return its frame."""
        return None if piece.candidate or self._ended else self._items.frame(piece)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the answer; without a `Finished` before it, a failure."""
        if self._ended:
            return ()
        if self._finished is None or self._snapshot is None:
            return self._fail(broken("connection lost: the answer ended without being complete"))
        self._ended = True
        items = self._items
        last = items.end_item()
        candidate = Candidate(content=tuple(items.parts), finish=self._finished.finish, extra=self._finished.extra)
        answer = self._snapshot.finished(items.output, candidate, self._usage)
        kind = "response.incomplete" if answer.get("status") == "incomplete" else "response.completed"
        said = own_fields(candidate.extra, WHERE, self._losses)
        beside = {key.removeprefix(BESIDE): value for key, value in said.items() if key.startswith(BESIDE)}
        return (*last, self._events.event(kind, response=answer, **beside))

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        made: Sequence[ServerSentEvent] = ()
        match event:
            case Started():
                made = self._start(event)
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Finished():
                made = self._finish(event)
            case BlockStarted(part=part):
                made = self._items.begin(as_client_call(part, self._ours))
            case BlockEnded(part=part):
                made = self._items.end(None if part is None else as_client_call(part, self._ours))
            case Ping():
                made = (self._live(),)
            case OpaqueDelta():
                made = self._carry(event)
            case Failed(failure=failure):
                made = self._fail(failure)
            case _:
                made = self._items.grow(event)
        return made

    def _finish(self, event: Finished) -> Sequence[ServerSentEvent]:
        self._finished = event
        items = self._items
        cut = is_cut(event.finish, items.parts)
        made: list[ServerSentEvent] = []
        for refusal in explained(event.finish, items.parts):
            made += [*items.begin(refusal), *items.end(None)]
            items.parts.pop()  # the model did not write it: the status is that of an answer without it
        return [*made, *items.end_item(cut=cut)]

    def _start(self, started: Started) -> Sequence[ServerSentEvent]:
        self._snapshot = Snapshot(started, self._request, self._losses)
        self._items = ItemStreamEncoder(self._snapshot.answer_id, self._events, self._losses)
        created = self._events.event("response.created", response=self._snapshot.begun())
        return (created, self._in_progress(self._snapshot))

    def _in_progress(self, snapshot: Snapshot) -> ServerSentEvent:
        return self._events.event("response.in_progress", response=snapshot.begun(self._items.so_far()))

    def _live(self) -> ServerSentEvent:
        """Return a sign of life."""
        if self._snapshot is None:
            return PING
        return self._items.pulse() or self._in_progress(self._snapshot)

    def _carry(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        """Carry an event of the dialect's own; before the answer has begun there is no place for it."""
        if self._snapshot is None:
            self._losses.dropped("$", event.name or "event", "the answer has not begun")
            return ()
        return self._items.carry(event)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        """Return the end of an answer that failed; one that has not begun begins, so that every client can read it."""
        begun = self._start(Started()) if self._snapshot is None else ()
        self._ended = True
        snapshot = self._snapshot or Snapshot(Started(), self._request, self._losses)
        answer = snapshot.failed(self._items.output, encode_failure(failure), self._usage)
        return (*begun, self._events.event("response.failed", response=answer))
