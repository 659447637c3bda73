"""Decodes a stream: server-sent events to canonical events.

The wire has blocks too, and a valid stream opens one at a time, so what comes in order is forwarded in order. What a
server sends for a block while another is open waits until that one is closed. A missing `message_stop` is accepted once
the reason of the end has been sent and the bytes end cleanly; a stream that ends without a reason is broken
(pitfall-103). Events of blocks before the message starts are carried like those of unknown kinds: the official SDK
ignores both.

Source: https://docs.claude.com/en/docs/build-with-claude/streaming and `anthropic/types/beta/beta_raw_*_event.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.errors import broken, read_error
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.part_decoder import derived_id, with_own_id
from xenoglot.dialects.messages.response import AT_THE_END, late_fields, take_finish, take_head
from xenoglot.dialects.messages.stream.block_decoder import BlockDecoder, begin
from xenoglot.dialects.messages.usage import decode_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Part, ToolCall
from xenoglot.model.events import (
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    UsageReported,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.event_template import TemplateHint
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject

ENDED_EARLY = "connection lost: the upstream's stream ended without being complete"
"""The error text for a stream without an end (U14)."""


_INSIDE = frozenset({"content_block_start", "content_block_delta", "content_block_stop"})
"""Events of blocks, which have no place before `message_start`."""


class StreamDecoder:
    """A stage from server-sent events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = (
        "_answer_id",
        "_block",
        "_calls",
        "_done",
        "_finished",
        "_late",
        "_started",
        "_usage",
        "_waiting",
        "terminated",
    )

    def __init__(self) -> None:
        self._started = self._finished = self._done = False
        self.terminated = False
        """Whether `message_stop` was read after the finish reason."""
        self._answer_id = ""
        self._block: BlockDecoder | None = None
        self._waiting: OrderedDict[int, list[JSONObject]] = (
            OrderedDict()
        )  # events of blocks that are not open yet, by index
        self._usage: JSONObject = {}
        self._late: JSONObject = {}  # fields of `message_start` that `message_delta` tells again
        self._calls: dict[str, Part] = {}

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one server-sent event; return its canonical events."""
        if self._done or not event.data or event.data == b"[DONE]":
            return ()
        try:
            return self._feed(decode_answer(event.data))
        except WireError as error:
            return self._fail(f"the upstream's stream is malformed: {error}")

    @property
    def state(self) -> object:
        """The open block: what grows it means the same for as long as it is open."""
        return None if self._done else self._block

    def lesson(self, event: ServerSentEvent, /) -> TemplateHint | None:  # noqa: ARG002  all deltas of a block are alike
        """Return how to read an event that differs from the last one in a piece of text alone."""
        return None if self._block is None else self._block.lesson

    def close(self) -> Sequence[Event]:
        """The stream is over: fail if the answer is not."""
        if self._done or self._finished:
            return ()
        return self._fail(ENDED_EARLY)

    def _feed(self, data: JSON) -> Sequence[Event]:
        reader = Reader(data)
        kind = reader.take("type", str)
        if not self._started and kind in _INSIDE:
            return (OpaqueDelta(dialect=NAME, data=data, name=kind),)
        match kind:
            case "message_start":
                return self._start(reader)
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._grow(data, reader)
            case "message_delta":
                return self._finish(data, reader)
            case "message_stop":
                return self._end()
            case _:
                return self._aside(data, kind)

    def _aside(self, data: JSONObject, kind: str | None) -> Sequence[Event]:
        """Take what is no part of the message: a sign of life, an error, or an event of a kind that we do not know."""
        if kind == "ping":
            return (Ping(),)
        if kind == "error" or data.get("error") is not None:
            self._done = True
            return (Failed(failure=read_error(data)),)
        return (OpaqueDelta(dialect=NAME, data=data, name=kind),)

    def _fail(self, message: str) -> Sequence[Event]:
        self._done = True
        return (Failed(failure=broken(message)),)

    def _start(self, event: Reader) -> Sequence[Event]:
        if self._started:
            return ()
        message = Reader(event.need("message", dict), event.at("message"))
        answer_id, model = take_head(message)
        message.take("content", list)
        message.rest().pop("stop_details", None)
        usage, tier = self._report(message.take_any("usage"))
        take_finish(message, ())
        self._late = {key: message.rest().pop(key) for key in AT_THE_END if key in message.rest()}
        self._started = True
        self._answer_id = answer_id or ""
        started = Started(id=answer_id, model=model, service_tier=tier, extra=message.extra(NAME))
        return (started, *usage)

    def _report(self, value: JSON) -> tuple[Sequence[Event], str | None]:
        """Return the snapshot that `value` completes: fields that are left out, or `null`, stay (pitfall-99)."""
        if not isinstance(value, dict) or not value:
            return (), None
        self._usage = {**value, **self._usage, **{key: item for key, item in value.items() if item is not None}}
        usage, tier = decode_usage(self._usage)
        return (UsageReported(usage=usage),), tier

    def _grow(self, data: JSONObject, event: Reader) -> Sequence[Event]:
        """Take the start, a delta or the stop of a block."""
        if self._finished:
            return ()
        index = event.take("index", int)
        block = self._block
        if block is not None and index not in (None, block.index):
            self._waiting.setdefault(index or 0, []).append(data)
            return ()
        events = self._step(data, event, (block.index if block and index is None else index) or 0)
        return (*events, *self._resume()) if self._waiting else events

    def _step(self, data: JSONObject, event: Reader, index: int) -> Sequence[Event]:
        block = self._block
        if data["type"] == "content_block_start":
            closed = self._stop()
            content = with_own_id(event.need("content_block", dict), self._calls)
            path = f"$.content[{index}]"
            if content.get("type") == "tool_use" and not content.get("id"):
                content = {**content, "id": self._derived_id(path)}
            self._block, events = begin(content, path, index, self._answer_id)
            if isinstance(self._block.header, ToolCall):
                self._calls[self._block.header.id] = self._block.header
            return (*closed, *events)
        if data["type"] == "content_block_stop":
            return self._stop()
        if block is None:
            raise WireError("$.index", "a block grows that is not open")
        return block.grow(data, Reader(event.need("delta", dict), event.at("delta")))

    def _derived_id(self, path: str) -> str:
        """Return an id for the call at `path`; a server that counts none of its blocks has several there."""
        call_id = derived_id(self._answer_id, path)
        return derived_id(self._answer_id, f"{path}:{len(self._calls)}") if call_id in self._calls else call_id

    def _stop(self) -> Sequence[Event]:
        block, self._block = self._block, None
        return () if block is None else block.end()

    def _resume(self) -> Sequence[Event]:
        """Let the blocks that waited have their turn, as far as they came."""
        events: list[Event] = []
        while self._waiting and self._block is None:
            index, waiting = self._waiting.popitem(last=False)
            for data in waiting:
                events += self._step(data, Reader(data), index)
        return events

    def _finish(self, data: JSONObject, event: Reader) -> Sequence[Event]:
        """Take a `message_delta`; one without a reason is but a report of usage."""
        if not self._started:
            raise WireError("$.type", "`message_start` must come first")
        usage, _ = self._report(event.take_any("usage"))
        delta = Reader(event.take("delta", dict) or {}, event.at("delta"))
        finish = take_finish(delta, self._calls.values())
        if finish is None or self._finished:
            rest = event.rest() or delta.rest()
            return (*usage, OpaqueDelta(dialect=NAME, data=data, name="message_delta")) if rest else usage
        events = self._close_all()
        self._finished = True
        late = {**self._late, **delta.rest(), **event.rest()}
        return (*events, *usage, Finished(finish=finish, extra=late_fields(late)))

    def _close_all(self) -> list[Event]:
        """Close what is open, and what waited for its turn."""
        events: list[Event] = []
        while self._block is not None or self._waiting:
            events += self._stop()
            events += self._resume()
        return events

    def _end(self) -> Sequence[Event]:
        events = self.close()
        self._done, self.terminated = True, self._finished
        return events
