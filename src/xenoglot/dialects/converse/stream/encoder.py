"""Encodes a stream: canonical events to the events of `ConverseStreamOutput`.

`messageStop` and `metadata` wait for the end of the stream, for usage may come after the reason of the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.binary_events import EXCEPTION
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.converse.errors import broken, encode_streamed
from xenoglot.dialects.converse.extras import NAME, with_rest
from xenoglot.dialects.converse.finish import encode_fields, encode_finish
from xenoglot.dialects.converse.response import note_head
from xenoglot.dialects.converse.stream.block_encoder import WHERE, BlockEncoder, wire_event
from xenoglot.dialects.converse.usage import encode_metadata
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage


class StreamEncoder:
    """A stage from canonical events to framed events: the answer to `request`."""

    __slots__ = ("_blocks", "_ended", "_finished", "_losses", "_usage")

    def __init__(self, request: Request, losses: Losses) -> None:  # noqa: ARG002  the record's form
        self._losses = losses
        self._blocks = BlockEncoder(losses)
        self._usage: Usage | None = None
        self._finished: Finished | None = None
        self._ended = False

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return what it makes on the wire. There is no event for a ping."""
        if self._ended or type(event) is Ping:
            return ()
        if (candidate := getattr(event, "candidate", 0)) != 0:
            self._losses.dropped(f"$.candidates[{candidate}]", "candidate", "an answer of the dialect is one")
            return ()
        return self._fail(event.failure) if type(event) is Failed else self._feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the answer; without a `Finished` before it, an exception."""
        if self._ended:
            return ()
        if self._finished is None:
            return self._fail(broken("connection lost: the answer ended without being complete"))
        self._ended = True
        stop: JSONObject = {"stopReason": encode_finish(self._finished.finish, self._blocks.begun, self._losses)}
        stop |= encode_fields(self._finished.finish, self._losses.carry(self._finished.extra, WHERE, NAME))
        metadata = encode_metadata(self._usage, self._losses)
        return (wire_event("messageStop", stop), wire_event("metadata", metadata))

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        match event:
            case Started(extra=extra):
                note_head(event.id, event.model, event.service_tier, self._losses)
                return (wire_event("messageStart", with_rest({"role": "assistant"}, extra, "$", self._losses)),)
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Finished():
                self._finished = event
            case BlockStarted(part=part):
                return self._blocks.begin(part)
            case BlockEnded(part=part):
                return self._blocks.end(part)
            case OpaqueDelta():
                return self._blocks.carry(event)
            case _:
                return self._blocks.grow(event)
        return ()

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        name, body = encode_streamed(failure)
        return (ServerSentEvent(encode_json(body), name, EXCEPTION),)
