"""Encodes a stream: canonical events to server-sent events.

`message_start` waits for the event after it, which may be the usage that it has to contain; `message_delta` waits for
the end of the stream, for usage may come after the reason of the end (pitfall-102). All else is written as it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.messages.errors import broken, encode_error
from xenoglot.dialects.messages.extras import NAME, with_rest
from xenoglot.dialects.messages.response import encode_finish, encode_head
from xenoglot.dialects.messages.stream.block_encoder import WHERE, BlockEncoder, wire_event
from xenoglot.dialects.messages.usage import at_the_end, completed, encode_usage
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

PING = ServerSentEvent(b'{"type":"ping"}', "ping")


class StreamEncoder:
    """A stage from canonical events to server-sent events: the answer to `request`."""

    __slots__ = (
        "_blocks",
        "_ended",
        "_finished",
        "_losses",
        "_request",
        "_start_usage",
        "_started",
        "_usage",
        "frame",
        "frames",
    )

    def __init__(self, request: Request, losses: Losses) -> None:
        self._request = request
        self._losses = losses
        self._blocks = BlockEncoder(losses)
        self.frame, self.frames = self._blocks.frame, self._blocks.frames
        """As `Framer` and `RunFramer`: a piece grows the open block, and makes nothing else."""
        self._started: Started | None = None  # held until the next event
        self._start_usage: JSONObject = {}
        self._usage: Usage | None = None
        self._finished: Finished | None = None
        self._ended = False

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return what it makes on the wire."""
        if self._ended:
            return ()
        if (candidate := getattr(event, "candidate", 0)) != 0:
            self._losses.dropped(f"$.candidates[{candidate}]", "candidate", "an answer of the dialect is one")
            return ()
        if type(event) is Ping:
            return (PING,)
        return self._fail(event.failure) if type(event) is Failed else self._feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the message; without a `Finished` before it, an error."""
        if self._ended:
            return ()
        if self._finished is None:
            return self._fail(broken("connection lost: the answer ended without being complete"))
        self._ended = True
        self._blocks.stop()
        start = self._start()
        finish = encode_finish(self._finished.finish, self._blocks.told, self._losses)
        required = ("output_tokens",) if self._finished.finish.dialect == NAME else ("input_tokens", "output_tokens")
        usage = completed(encode_usage(self._usage, None, self._losses), self._losses, *required)
        late = with_rest({}, self._finished.extra, WHERE, self._losses)
        if "container" in late:  # the one field that stands beside the reason
            finish["container"] = late.pop("container")
        body = {"type": "message_delta", "delta": finish, "usage": at_the_end(usage, self._start_usage), **late}
        return (*start, wire_event(body), wire_event({"type": "message_stop"}))

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        made: Sequence[ServerSentEvent] = ()
        if type(event) is Started:
            self._started = event
            return made
        match event:
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Finished():
                self._finished = event
            case BlockStarted(part=part):
                made = self._blocks.begin(part)
            case BlockEnded(part=part):
                made = self._blocks.end(part)
            case OpaqueDelta():
                made = self._blocks.carry(event)
            case _:
                made = self._blocks.grow(event)
        return made if self._started is None else (*self._start(), *made)

    def _start(self) -> Sequence[ServerSentEvent]:
        """Return `message_start`, if it is still held."""
        started, self._started = self._started, None
        if started is None:
            return ()
        self._start_usage = encode_usage(self._usage, started.service_tier, self._losses)
        message: JSONObject = {
            **encode_head(started.id, started.model or self._request.model),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 0,
                "output_tokens": 0,
                **self._start_usage,
            },  # `message_delta` tells what is known by then
        }
        message = with_rest(message, started.extra, "$", self._losses)
        return (wire_event({"type": "message_start", "message": message}),)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        self._blocks.stop()
        return (ServerSentEvent(encode_json(encode_error(failure)[1]), "error"),)
