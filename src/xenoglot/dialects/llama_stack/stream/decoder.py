"""Decodes streams of chat completion.

A stream starts, makes progress, and is whole when its `complete` event came: the wire has no other end
(`ChatCompletionResponseEvent` in `llama_stack/apis/inference/inference.py`). A tool call comes twice: first as it is
made, in pieces of text of whatever syntax the model has (L17, L18), then parsed. The pieces are held; they are words of
the answer where no call came of them (L11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader, expected, leave, need_object, take_blanks
from xenoglot.dialects.llama_stack.errors import decode_error
from xenoglot.dialects.llama_stack.extras import NAME
from xenoglot.dialects.llama_stack.finish import decode_finish
from xenoglot.dialects.llama_stack.logprobs import take_logprobs
from xenoglot.dialects.llama_stack.parts import media_type
from xenoglot.dialects.llama_stack.tool_calls import decode_call
from xenoglot.dialects.llama_stack.usage import take_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Image, Inline, Text
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
from xenoglot.model.fold import unfold_part
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject

ENDED_EARLY = "connection lost: the upstream's stream ended without being complete"

_PARSED = (None, "succeeded", "failed")


class _Delta(msgspec.Struct, tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _Progress(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    event_type: Literal["progress"]
    delta: _Delta
    logprobs: None = None
    stop_reason: None = None


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    event: _Progress
    metrics: None = None


_decode_text = msgspec.json.Decoder(_Chunk).decode


@shortcut("chunks")
def _plain_text(data: bytes) -> str | None:
    """Return the text of the commonest event, or `None` for any other, which is read with all care."""
    try:
        return _decode_text(data).event.delta.text
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def failed(message: str) -> Failed:
    """Return the end of a stream that failed without a report of its own."""
    return Failed(failure=Failure(kind="upstream", message=message))


class StreamDecoder:
    """A stage from server-sent events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = ("_calls", "_done", "_finished", "_held", "_started", "_stop", "_writing")

    def __init__(self) -> None:
        self._started = self._writing = self._finished = self._done = False
        self._held: list[str] = []  # pieces of calls that are not parsed yet
        self._calls = 0
        self._stop: str | None = None

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one server-sent event; return its canonical events."""
        if self._done or not event.data or event.data == b"[DONE]":
            return ()
        if self._writing and (text := _plain_text(event.data)) is not None:
            return (TextDelta(text=text),) if text else ()
        try:
            return self._feed(decode_answer(event.data))
        except WireError as error:
            return () if self._finished else self._fail(failed(f"the upstream's stream is malformed: {error}"))

    @property
    def terminated(self) -> bool:
        """Whether the `complete` event was read."""
        return self._finished

    def close(self) -> Sequence[Event]:
        """The stream is over: fail if it is not complete."""
        return () if self._done or self._finished else self._fail(failed(ENDED_EARLY))

    def _fail(self, failure: Failed) -> Sequence[Event]:
        self._done = True
        return (failure,)

    def _feed(self, data: JSON) -> Sequence[Event]:
        chunk = Reader(data)
        if self._finished:
            return self._usage(chunk)
        if "error" in chunk and "event" not in chunk:
            return self._fail(Failed(failure=decode_error(200, data)))
        event = need_object(chunk, "event")
        kind = event.need("event_type", str)
        started = () if self._started else (Started(),)
        if kind not in ("start", "progress", "complete"):
            self._started = True
            return (*started, OpaqueDelta(dialect=NAME, data=data, name=kind))
        told = self._progress(chunk, event)
        self._started = True
        return (*started, *told, *(self._complete(chunk) if kind == "complete" else ()))

    def _progress(self, chunk: Reader, event: Reader) -> Sequence[Event]:
        """Return the events in an event's delta, and its other fields."""
        self._stop = event.take("stop_reason", str) or self._stop
        delta = need_object(event, "delta")
        told = self._delta(event, delta)
        take_blanks(event, "logprobs")
        leave(event, "delta", delta)
        rest = {key: value for key, value in event.rest().items() if value is not None}
        usage = self._usage(chunk)
        beside = {key: value for key, value in chunk.rest().items() if value is not None}
        return (*told, *usage, *([_carried(rest, beside)] if rest or beside else ()))

    def _delta(self, event: Reader, delta: Reader) -> Sequence[Event]:
        match delta.peek("type"):
            case "text":
                delta.take("type", str)
                return self._text(delta.need("text", str), event)
            case "tool_call":
                delta.take("type", str)
                return self._call(delta)
            case "image" if isinstance(delta.peek("image"), str):
                delta.take("type", str)
                data = delta.need("image", str)
                said = Extra(dialect=NAME, form={"data": True})
                image = Image(source=Inline(data=data, media_type=media_type(data)), extra=said)
                return (*self._end_text(), *unfold_part(image))
            case str():  # of a kind that we do not know: it stays in the event, which is carried
                return ()
            case other:
                raise expected(delta.at("type"), "str", other)

    def _text(self, text: str, event: Reader) -> Sequence[Event]:
        logprobs = take_logprobs(event, text)
        if not text:
            return ()
        begun = () if self._writing else (BlockStarted(part=Text(text="")),)
        self._writing = True
        return (*begun, TextDelta(text=text, logprobs=logprobs))

    def _end_text(self) -> Sequence[Event]:
        ended = (BlockEnded(),) if self._writing else ()
        self._writing = False
        return ended

    def _call(self, delta: Reader) -> Sequence[Event]:
        status = delta.take("parse_status", str)
        value = delta.take_any("tool_call")
        if isinstance(value, str):
            return self._piece(value, status, delta)
        if status not in _PARSED:  # what is known of it so far; the whole will come
            return (Ping(),)
        call = decode_call(value, delta.at("tool_call"), self._calls)
        self._calls += 1
        self._held = []
        return (*self._end_text(), *unfold_part(call))

    def _piece(self, piece: str, status: str | None, delta: Reader) -> Sequence[Event]:
        if status != "failed":
            self._held.append(piece)
            return (Ping(),)
        text = piece or "".join(self._held)
        self._held = []
        return self._text(text, delta)

    def _complete(self, chunk: Reader) -> Sequence[Event]:
        self._finished = True
        held = self._text("".join(self._held), chunk)
        finish = decode_finish(self._stop, calls=self._calls > 0)
        return (*held, *self._end_text(), Finished(finish=finish))

    def _usage(self, chunk: Reader) -> Sequence[Event]:
        usage = take_usage(chunk, NAME)
        take_blanks(chunk, "metrics")
        return () if usage is None else (UsageReported(usage=usage),)


def _carried(rest: JSONObject, beside: JSONObject) -> OpaqueDelta:
    """Return the unknown fields of an event, as an event with nothing else."""
    event = {"event_type": "progress", **rest}
    delta = rest.get("delta", {})
    event["delta"] = delta if "type" in delta else {"type": "text", "text": "", **delta}
    return OpaqueDelta(dialect=NAME, data={"event": event, **beside}, name="event")
