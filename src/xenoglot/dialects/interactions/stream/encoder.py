"""Encodes streams: canonical events to server-sent events.

The answer is created, its steps start, grow and stop one after the other, numbered from 0, and it is completed; then
comes `[DONE]`. Contents that follow each other are of one step, except texts: nothing else parts them. A step of a tool
that the server ran starts with its id, and grows by one delta that holds the rest of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import form_of
from xenoglot.dialects.interactions.errors import error_of
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.dialects.interactions.finish import IN_PROGRESS, WHERE, encode_finish
from xenoglot.dialects.interactions.response import encode_head
from xenoglot.dialects.interactions.stream.block_encoder import BlockEncoder
from xenoglot.dialects.interactions.stream.decoder import DONE, ENDED_EARLY
from xenoglot.dialects.interactions.usage import encode_usage
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

PING: Final = ServerSentEvent(b"", comment="ping")
_END: Final = ServerSentEvent(DONE, "done")


def event(kind: str, /, **fields: JSON) -> ServerSentEvent:
    """Return an event with its name and type."""
    return ServerSentEvent(encode_json({"event_type": kind, **fields}), kind)


class StreamEncoder:
    """A stage from canonical events to server-sent events: the answer to `request`."""

    __slots__ = ("_blocks", "_ended", "_finished", "_head", "_losses", "_own", "_request", "_usage")

    def __init__(self, request: Request, losses: Losses) -> None:
        self._request = request
        self._losses = losses
        self._blocks = BlockEncoder(losses)
        self._head: JSONObject | None = None
        self._own: JSONObject = {}
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
        return self._blocks.text(event) if type(event) is TextDelta else self._feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the answer; without a `Finished` before it, an error."""
        if self._ended:
            return ()
        if self._finished is None or self._head is None:
            return self._fail(Failure(kind="upstream", message=ENDED_EARLY))
        self._ended = True
        finished = self._finished
        stopped = self._blocks.close()
        news = form_of(finished.extra, NAME)
        body = {**self._head, **news.get("head", {}), **news.get("echo", {})}
        body["status"] = encode_finish(finished.finish, self._blocks.refusals, self._losses)
        if self._usage is not None:
            body["usage"] = encode_usage(self._usage, self._losses)
        body |= self._own | own_fields(finished.extra, WHERE, self._losses)
        return (*stopped, event("interaction.completed", interaction=body), _END)

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        made: Sequence[ServerSentEvent] = ()
        match event:
            case Started():
                made = self._start(event)
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Finished():
                self._finished = event
            case BlockStarted(part=part):
                made = self._blocks.begin(part)
            case BlockEnded(part=part):
                made = self._blocks.end(part)
            case Ping():
                made = (PING,)
            case OpaqueDelta():
                made = self._carry(event)
            case Failed(failure=failure):
                made = self._fail(failure)
            case _:
                made = self._blocks.grow(event)
        return made

    def _start(self, started: Started) -> Sequence[ServerSentEvent]:
        self._head, self._own = encode_head(started, self._request, self._losses)
        begun = {**self._head, "status": IN_PROGRESS, **self._own}
        created = event("interaction.created", interaction=begun)
        answer_id = self._head.get("id", "")
        return (created, event("interaction.status_update", interaction_id=answer_id, status=IN_PROGRESS))

    def _carry(self, carried: OpaqueDelta) -> Sequence[ServerSentEvent]:
        """Carry an event that only this dialect knows."""
        if carried.dialect != NAME or not isinstance(carried.data, dict):
            self._losses.dropped(WHERE, carried.name or "event", f"only {carried.dialect} has it")
            return ()
        return (self._blocks.carry(carried.data, carried.name or "event"),)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        return (event("error", error=error_of(failure)),)
