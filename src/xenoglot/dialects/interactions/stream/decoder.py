"""Decodes streams: server-sent events to canonical events.

The answer is created, its steps start, grow and stop one after the other, and it is completed. What is a content on the
wire is a block here; reasoning is one, a call of a function is one. Steps of tools that the server ran are known when
they stop. Source: `InteractionSSEEvent` and `StepDelta` in `google/genai/_gaos/types/interactions` of the official SDK,
and https://ai.google.dev/gemini-api/docs/interactions/streaming.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader
from xenoglot.dialects.interactions.errors import read_error
from xenoglot.dialects.interactions.extras import NAME
from xenoglot.dialects.interactions.finish import BROKEN, COMPLETED, decode_finish
from xenoglot.dialects.interactions.response import take_extra, take_head, take_usage
from xenoglot.dialects.interactions.stream.step_block import StepBlock
from xenoglot.dialects.interactions.usage import decode_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.events import Event, Failed, Finished, OpaqueDelta, Ping, Started, UsageReported
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

DONE: Final = b"[DONE]"
ENDED_EARLY: Final = "connection lost: the upstream's stream ended without being complete"

_UPDATED: Final = "interaction.status_update"

_ENVELOPE: Final = frozenset({"event_type", "event_id", "interaction"})


class StreamDecoder:
    """A stage from server-sent events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = ("_before", "_block", "_done", "_started", "_status", "_waiting", "terminated")

    def __init__(self) -> None:
        self._started: Started | None = None
        self._block: StepBlock | None = None
        self._waiting: dict[int, list[tuple[str, JSONObject]]] = {}  # events of steps next to a call that grows
        self._before: Part | None = None  # the last part of the steps that stopped
        self._status: JSON = None
        self._done = False
        self.terminated = False
        """Whether the event was read that completes the answer."""

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one server-sent event; return its canonical events."""
        if self._done or not event.data or event.data == DONE:
            return ()
        try:
            data = decode_answer(event.data)
            return self._feed(Reader(data), data, event.event)
        except WireError as error:
            return self._fail(Failure(kind="upstream", message=f"the upstream's stream is malformed: {error}"))

    def close(self) -> Sequence[Event]:
        """The stream is over: fail if it is not complete."""
        return () if self._done else self._fail(Failure(kind="upstream", message=ENDED_EARLY))

    def _fail(self, failure: Failure) -> Sequence[Event]:
        self._done = True
        return (Failed(failure=failure),)

    def _feed(self, reader: Reader, data: JSONObject, name: str | None) -> Sequence[Event]:
        kind = reader.take_if("event_type", str) or name or ""
        reader.take_any("event_id")  # a place in the server's own stream
        if kind.startswith("step."):
            return self._feed_step(reader, data, kind)
        if kind.startswith("interaction."):
            return self._feed_life(reader, data, kind)
        if kind == "error" or "error" in reader:
            return self._fail(read_error(data))
        return (OpaqueDelta(dialect=NAME, data=data, name=kind or None),)

    def _feed_step(self, reader: Reader, data: JSONObject, kind: str) -> Sequence[Event]:
        """Take the start, a delta or the stop of a step; while a call grows, those of other steps wait."""
        index, block = reader.take_if("index", int), self._block
        if block is not None and block.has(index):
            if kind == "step.delta":
                return self._grow(reader, block)
        elif block is not None and block.is_call and index is not None:
            self._waiting.setdefault(index, []).append((kind, data))
            return ()
        events = (*self._begin({}), *self._step(reader, data, kind, index))
        return (*events, *self._resume()) if self._waiting else events

    def _step(self, reader: Reader, data: JSONObject, kind: str, index: int | None) -> Sequence[Event]:
        block = self._block
        match kind:
            case "step.start":
                return (*self._stop(), *self._start(reader, index))
            case "step.stop":
                stopped = self._stop() if block is not None and block.has(index) else ()
                return (*stopped, *_reported(reader.take_any("usage")))
            case "step.delta" if block is not None and block.has(index):
                return self._grow(reader, block)
            case "step.delta":
                return (*self._stop(), *self._lone(reader, index))
            case _:
                return (OpaqueDelta(dialect=NAME, data=data, name=kind),)

    def _resume(self) -> Sequence[Event]:
        """Read the events of steps that waited, in the order of their indexes."""
        events: list[Event] = []
        while self._waiting and (self._block is None or not self._block.is_call):
            index = min(self._waiting)
            for kind, data in self._waiting.pop(index):
                events += self._step(Reader(data), data, kind, index)
        return events

    def _feed_life(self, reader: Reader, data: JSONObject, kind: str) -> Sequence[Event]:
        match kind:
            case "interaction.created":
                return self._begin(reader.take("interaction", dict) or {})
            case "interaction.status_update":
                return self._update(reader, data)
            case "interaction.completed":
                return self._complete(reader)
            case _:
                return (OpaqueDelta(dialect=NAME, data=data, name=kind),)

    def _begin(self, answer: JSONObject) -> Sequence[Event]:
        if self._started is not None:
            return ()
        reader = Reader(answer, "$.interaction")
        head, form = take_head(reader)
        reader.take_any("status")
        reader.take_any("steps")
        take_usage(reader)
        self._started = Started(**head, extra=take_extra(reader, form))
        return (self._started,)

    def _start(self, reader: Reader, index: int | None) -> Sequence[Event]:
        started = self._started
        self._block = StepBlock(reader.need("step", dict), self._before, (started and started.id) or "", index)
        return self._block.start()

    def _lone(self, reader: Reader, index: int | None) -> Sequence[Event]:
        """Take a delta of a step that did not start, or has stopped: what it is follows from the delta.

        Raises:
            WireError: it is of a call, which cannot be without its start.
        """
        delta = reader.peek("delta")
        kind = delta.get("type") if isinstance(delta, dict) else None
        if kind == "arguments_delta":
            raise WireError(reader.at("delta"), "arguments of a step that did not start, or has stopped")
        step = "thought" if isinstance(kind, str) and kind.startswith("thought") else "model_output"
        block = self._block = StepBlock({"type": step}, self._before, "", index)
        return (*block.start(), *self._grow(reader, block))

    def _grow(self, reader: Reader, block: StepBlock) -> Sequence[Event]:
        metadata = reader.peek("metadata")
        usage = metadata.get("total_usage") if isinstance(metadata, dict) else None
        return (*block.grow(reader.need("delta", dict)), *_reported(usage))

    def _stop(self) -> Sequence[Event]:
        if self._block is None:
            return ()
        block, self._block = self._block, None
        events = block.stop()
        self._before = block.last or self._before
        return events

    def _stop_all(self) -> Sequence[Event]:
        events: list[Event] = []
        while self._block is not None or self._waiting:
            events += self._stop()
            events += self._resume()
        return events

    def _update(self, reader: Reader, data: JSONObject) -> Sequence[Event]:
        """Take a status: one that broke the interaction ends it; others are signs of life."""
        status = reader.take_any("status")
        self._status = status
        begun = self._begin({"id": reader.take_any("interaction_id")})
        if status in BROKEN:
            return self._fail(read_error(data if "error" in data else {"message": f"the interaction is {status}"}))
        carried = (OpaqueDelta(dialect=NAME, data=data, name=_UPDATED),) if "continuation_token" in reader else ()
        return (*begun, *carried, *_reported(reader.take_any("usage")), *(() if carried else (Ping(),)))

    def _complete(self, event: Reader) -> Sequence[Event]:
        answer = event.take("interaction", dict) or {}
        status = answer.get("status", self._status)
        if status in BROKEN:
            return self._fail(read_error(answer | {"error": event.peek("error")} if "error" in event else answer))
        begun = self._begin({key: value for key, value in answer.items() if key != "status"})
        stopped = self._stop_all()
        reader = Reader(answer, "$.interaction")
        steps = reader.take_if("steps", list)
        told = self._told(steps) if steps and self._before is None else ()
        usage = take_usage(reader)
        finish = decode_finish(status or COMPLETED)
        if finish is None:
            problem = f"connection lost: the answer ended without being complete; its status is `{status}`"
            return self._fail(Failure(kind="upstream", message=problem))
        self._done = self.terminated = True
        reported = () if usage is None else (UsageReported(usage=usage),)
        return (*begun, *stopped, *told, *reported, Finished(finish=finish, extra=self._news(reader, event)))

    def _told(self, steps: list[JSON]) -> Sequence[Event]:
        """Return the events of an answer whose steps come with its last event alone."""
        events: list[Event] = []
        for step in steps:
            block = StepBlock(Reader({"step": step}).need("step", dict), self._before, "")
            events += [*block.start(), *block.stop()]
            self._before = block.last or self._before
        return events

    def _news(self, reader: Reader, event: Reader) -> Extra | None:
        """Return what the end of the answer has that its start did not."""
        reader.take_any("status")
        started = self._started or Started()
        known = started.extra or Extra(dialect=NAME)
        head, form = take_head(reader)
        rest = take_extra(reader, form)
        echo = {key: value for key, value in rest.form["echo"].items() if known.form["echo"].get(key) != value}
        fields = {key: value for key, value in rest.fields.items() if known.fields.get(key) != value}
        fields |= {key: value for key, value in event.rest().items() if key not in _ENVELOPE and value is not None}
        told = {key: value for key, value in head.items() if value is not None and getattr(started, key) != value}
        changed = {key: value for key, value in (("echo", echo), ("head", told)) if value}
        return Extra(dialect=NAME, fields=fields, form=changed) if fields or changed else None


def _reported(usage: JSON) -> Sequence[Event]:
    found = decode_usage(usage)
    return () if found is None else (UsageReported(usage=found),)
