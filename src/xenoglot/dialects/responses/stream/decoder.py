"""Decodes a stream: server-sent events to canonical events.

An answer ends with `response.completed`, `response.incomplete` or `response.failed`; a stream that stops before one of
them is broken, however much of the answer it had (pitfall-103, pitfall-104). Those events, like the first, contain the
whole answer: what is new in the last belongs to its end.

Source: `openai/types/responses/response_stream_event.py` and https://www.openresponses.org/specification#streaming.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.event_template import TemplateHint
from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.responses.errors import broken, read_failure
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.finish import take_finish
from xenoglot.dialects.responses.response import ALWAYS, BESIDE, take_extra, take_head, take_late, take_usage
from xenoglot.dialects.responses.stream.output_decoder import OutputDecoder
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
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

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject

ENDED_EARLY = "connection lost: the upstream's stream ended without being complete"
"""The error text for a stream without an end (U14)."""

_ITEM_KEYS = frozenset({"item", "item_id", "output_index"})
"""An event that has one of these is about an item."""

_HEAD = frozenset({"id", "model", "created_at", "service_tier"})

_ENVELOPE = frozenset({"sequence_number", "response"})
"""The ordinary fields of the last event; others are carried."""

_STATUS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.done": "completed"}
"""The events that end an answer, and what they mean by themselves."""

_LIFE = frozenset(
    {*_STATUS, *(f"response.{word}" for word in ("created", "queued", "in_progress", "failed", "cancelled"))}
)

_PASSED = ("sequence_number", "obfuscation")
"""Fields that differ from delta to delta without any meaning."""

_MISSING = object()


class StreamDecoder:
    """A stage from server-sent events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = ("_done", "_items", "_lives", "_started", "terminated")

    def __init__(self) -> None:
        self._lives = False  # whether `response.in_progress` has been told
        self._started: Started | None = None
        self._items = OutputDecoder("")
        self._done = False
        self.terminated = False
        """Whether `response.completed` or `response.incomplete` was read."""

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one server-sent event; return its canonical events."""
        if self._done or not event.data or event.data == b"[DONE]":
            return ()
        try:
            return self._feed(decode_answer(event.data), event.event)
        except WireError as error:
            return self._fail(f"the upstream's stream is malformed: {error}")

    @property
    def state(self) -> object:
        """The open block, and where in it: what grows it means the same for as long as that is so."""
        return None if self._items.open is None or self._done else self._items.open.state

    def lesson(self, event: ServerSentEvent, /) -> TemplateHint | None:
        """Return how to read an event that differs from the last one in a piece of text alone."""
        data = decode_answer(event.data)
        item, kind = self._items.open, data.get("type", event.event)
        if item is None or data.get("logprobs") or (take := item.taker(kind, data.get("summary_index"))) is None:
            return None
        return TemplateHint(("delta",), take, _PASSED)

    def close(self) -> Sequence[Event]:
        """The stream is over: fail, for the answer is not."""
        return () if self._done else self._fail(ENDED_EARLY)

    def _feed(self, data: JSON, name: str | None) -> Sequence[Event]:
        reader = Reader(data)
        kind = reader.take_if("type", str) or name or ""
        if kind == "error" or ("error" in reader and not kind.startswith("response.")):
            return self._failed(data)
        if kind in _LIFE:
            return self._live(reader, kind)
        if kind in ("keepalive", "ping"):
            return (Ping(),)
        if _ITEM_KEYS & data.keys():
            return (*self._begin({}), *self._items.feed(data | {"type": kind}, kind))
        return (OpaqueDelta(dialect=NAME, data=data, name=kind or None),)

    def _live(self, event: Reader, kind: str) -> Sequence[Event]:
        """Take an event that contains the whole answer."""
        answer = event.take("response", dict) or {}
        match kind:
            case "response.created" | "response.queued":
                return self._begin(answer)
            case "response.in_progress":
                return self._go_on(answer)
            case "response.failed" | "response.cancelled":
                return self._failed(answer)
            case _:
                return self._finish(event, answer, kind)

    def _fail(self, message: str) -> Sequence[Event]:
        self._done = True
        return (Failed(failure=broken(message)),)

    def _failed(self, body: JSONObject) -> Sequence[Event]:
        self._done = True
        return (Failed(failure=read_failure(body)),)

    def _go_on(self, answer: JSONObject) -> Sequence[Event]:
        """Take the answer as it is repeated after its start; every later repetition is a heartbeat."""
        lived, self._lives = self._lives, True
        return (Ping(),) if lived else self._begin(answer)

    def _begin(self, answer: JSONObject) -> Sequence[Event]:
        if self._started is not None:
            return ()
        reader = Reader(answer, "$.response")
        head = take_head(reader)
        reader.take_any("output")
        status = reader.take_if("status", str)
        form = head.pop("form") | ({"status": status} if status not in (None, "in_progress") else {})
        take_usage(reader)
        take_late(reader)
        self._started = Started(**head, extra=take_extra(reader, form))
        self._items = OutputDecoder(self._started.id or "")
        return (self._started,)

    def _finish(self, event: Reader, answer: JSONObject, kind: str) -> Sequence[Event]:
        if answer.get("status") == "failed":
            return self._failed(answer)
        begun = self._begin({key: value for key, value in answer.items() if key != "status"})
        output = answer.get("output")
        items = self._items.close(output if isinstance(output, list) else ())
        reader = Reader({"status": _STATUS[kind], **answer}, "$.response")
        if not isinstance(reader.peek("status"), str) or reader.peek("status") == "in_progress":
            reader.rest()["status"] = _STATUS[kind]
        usage = take_usage(reader)
        finish = take_finish(reader, self._items.parts)
        if finish is None:
            return self._fail(f"the answer ended while `{answer.get('status')}`")
        reported = () if usage is None else (UsageReported(usage=usage),)
        self._done = self.terminated = True
        return (*begun, *items, *reported, Finished(finish=finish, extra=self._news(event, reader, answer)))

    def _news(self, event: Reader, reader: Reader, answer: JSONObject) -> Extra | None:
        """Return what the end of the answer repeats or changes; fields outside the answer get the event's prefix."""
        late = take_late(reader) or Extra(dialect=NAME)
        started = self._started or Started()
        known = started.extra or Extra(dialect=NAME)
        before = form_of(known, NAME)
        reader.take_any("output")
        take_head(reader)
        rest, echo = take_extra(reader, {}), before.get("echo", {})
        changed = {key: answer[key] for key in _HEAD & answer.keys() if _is_new(started, key, before, answer[key])}
        changed |= {key: value for key, value in rest.form["echo"].items() if echo.get(key, _MISSING) != value}
        fields = {key: value for key, value in rest.fields.items() if known.fields.get(key, _MISSING) != value}
        fields |= {f"{BESIDE}{key}": value for key, value in event.rest().items() if key not in _ENVELOPE}
        form = dict(late.form) | ({"changed": changed} if changed else {})
        absent = [key for key in ALWAYS if key not in answer]
        if absent != before.get("absent", []):
            form["absent"] = absent
        fields |= late.fields
        return Extra(dialect=NAME, fields=fields, form=form) if form or fields else None


def _is_new(started: Started, key: str, form: JSONObject, value: JSON) -> bool:
    """Whether the end of the answer has a value that its start did not have; an id is reported once."""
    match key:
        case "id":
            return started.id is None
        case "model":
            return bool(started.model != value)
        case "created_at":
            return bool(form.get("created_at", started.created) != value)
        case _:
            return bool(started.service_tier != value)
