"""Encodes streams of chat completion, and the code that text completion shares.

The last event is written when the answer is over, for it has the counts, which may come after the end. A call is sent
as the servers of the dialect send it (L18): that it starts, its name and arguments as text, then the whole of it; where
its arguments are no object, as a call that failed, but a whole one all the same (L-W9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.llama_stack.errors import encode_stream_error
from xenoglot.dialects.llama_stack.extras import NAME, own_fields
from xenoglot.dialects.llama_stack.finish import encode_finish
from xenoglot.dialects.llama_stack.logprobs import encode_logprobs
from xenoglot.dialects.llama_stack.parts import encode_item, media_type
from xenoglot.dialects.llama_stack.response_text import WHERE, answer_text, note_unsaid
from xenoglot.dialects.llama_stack.stream.decoder import ENDED_EARLY, failed
from xenoglot.dialects.llama_stack.tool_calls import encode_call, is_parsed
from xenoglot.dialects.llama_stack.usage import encode_usage
from xenoglot.model.content import Image, Inline, Opaque, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
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
from xenoglot.model.fold import Folder, merge_usage
from xenoglot.model.json import JSONObject
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.failure import Failure
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

_BEFORE, _AFTER = b'{"event":{"event_type":"progress","delta":{"type":"text","text":', b"}}}"


def _event(kind: str, delta: JSONObject, **fields: JSONObject | str | None) -> ServerSentEvent:
    return ServerSentEvent(encode_json({"event": {"event_type": kind, "delta": delta, **fields}}))


def _call(value: str | JSONObject, status: str) -> ServerSentEvent:
    return _event("progress", {"type": "tool_call", "tool_call": value, "parse_status": status})


def chat_text(text: str, logprobs: JSONObject) -> ServerSentEvent:
    """Return the event that holds a piece of text."""
    if logprobs:
        return _event("progress", {"type": "text", "text": text}, **logprobs)
    return ServerSentEvent(_BEFORE + encode_json(text) + _AFTER)


class AnswerEncoder:
    """A stage from canonical events to server-sent events, shared by both records of the dialect.

    `wire` writes the three things in which they differ.
    """

    __slots__ = ("_block", "_ended", "_finished", "_losses", "_parts", "_usage", "_wire")

    def __init__(self, wire: Wire, losses: Losses) -> None:
        self._wire = wire
        self._losses = losses
        self._block: Block | None = None
        self._parts = 0
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
        if type(event) is TextDelta and self._block is not None:
            return self._block.write(event)
        return self._beside(event) if isinstance(event, _BESIDE) else self._feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the answer; without a `Finished` before it, an error."""
        if self._ended:
            return ()
        if self._finished is None:
            return self._fail(failed(ENDED_EARLY).failure)
        self._ended = True
        own_fields(self._finished.extra, WHERE, self._losses, self._wire.name)
        stop = encode_finish(self._finished.finish, f"{WHERE}.finish", self._losses, name=self._wire.name)
        usage = encode_usage(self._usage, self._losses, self._wire.name)
        return (ServerSentEvent(encode_json(self._wire.last(stop) | usage)),)

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        made: Sequence[ServerSentEvent] = ()
        match event:
            case Started():
                made = self._start(event)
            case BlockStarted(part=part):
                where = f"{WHERE}.content[{self._parts}]"
                self._parts += 1
                self._block = self._wire.block(part, where, self._losses)
                made = self._block.begin()
            case BlockEnded(part=part) if self._block is not None:
                made, self._block = self._block.end(part), None
            case Finished():
                self._finished = event
            case _ if self._block is not None:
                made = self._block.grow(event)
            case _:
                pass  # growth of nothing
        return made

    def _beside(self, event: Event) -> Sequence[ServerSentEvent]:
        """Take what may come anywhere."""
        match event:
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
                return ()
            case Failed(failure=failure):
                return self._fail(failure)
            case OpaqueDelta(dialect=self._wire.name, data=dict() as data):
                return (ServerSentEvent(encode_json(data)),)
            case OpaqueDelta():
                self._losses.dropped(WHERE, event.name or "event", f"only {event.dialect} has it")
                return ()
            case _:
                return (ServerSentEvent(b"", comment="ping"),)

    def _start(self, event: Started) -> Sequence[ServerSentEvent]:
        note_unsaid(Response(id=event.id, model=event.model, service_tier=event.service_tier), self._losses)
        own_fields(event.extra, "$", self._losses, self._wire.name)
        return self._wire.first()

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        return (ServerSentEvent(encode_json(encode_stream_error(failure))),)


class Wire(Protocol):
    """What differs between the two records: the dialect name, the first and last event, and each part."""

    name: str

    def first(self) -> Sequence[ServerSentEvent]:
        """Return what begins a stream."""
        ...

    def block(self, part: Part, where: str, losses: Losses) -> Block:
        """Return what writes `part` while it grows."""
        ...

    def last(self, stop: str | None) -> JSONObject:
        """Return what ends a stream."""
        ...


class _Chat:
    name = NAME

    def first(self) -> Sequence[ServerSentEvent]:
        return (_event("start", {"type": "text", "text": ""}),)

    def block(self, part: Part, where: str, losses: Losses) -> Block:
        return _BLOCKS.get(type(part), Block)(part, where, losses, chat_text)

    def last(self, stop: str | None) -> JSONObject:
        return {"event": {"event_type": "complete", "delta": {"type": "text", "text": ""}, "stop_reason": stop}}


def stream_encoder(request: Request, losses: Losses) -> AnswerEncoder:  # noqa: ARG001  the shape of a record's function
    """Return the encoder for the client that sent `request`."""
    return AnswerEncoder(_Chat(), losses)


Said: TypeAlias = Callable[[str, JSONObject], ServerSentEvent]
"""A piece of text, and the field of its probabilities if it has any, to the event that holds them."""

_BESIDE = (UsageReported, OpaqueDelta, Ping, Failed)


class Block:
    """A part while it grows; most can be written only when complete."""

    def __init__(self, part: Part, where: str, losses: Losses, text: Said) -> None:
        self._said = text
        self._header = part
        self._folder = Folder()
        self._folder.feed(BlockStarted(part=part))
        self._where = where
        self._losses = losses

    def begin(self) -> Sequence[ServerSentEvent]:
        """Return the events for the start."""
        return ()

    def write(self, event: TextDelta) -> Sequence[ServerSentEvent]:
        """Return what a piece of text makes."""
        return self.grow(event)

    def grow(self, event: Event) -> Sequence[ServerSentEvent]:
        """Return what a delta makes."""
        self._folder.feed(event)
        return ()

    def end(self, whole: Part | None) -> Sequence[ServerSentEvent]:
        """Return the events for the end."""
        self._folder.feed(BlockEnded(part=whole))
        (part,) = self._folder.response().candidates[0].content
        return self._whole(part)

    def _whole(self, part: Part) -> Sequence[ServerSentEvent]:
        text = answer_text(part, self._where, self._losses)
        return (self._said(text, {}),) if text else ()


class TextBlock(Block):
    """Text, or the text of a refusal: written as it arrives."""

    _written = 0

    def begin(self) -> Sequence[ServerSentEvent]:
        """Return the text that stood in the start."""
        if isinstance(self._header, Text | Refusal) and (self._header.text or self._header.logprobs):
            return self._say(TextDelta(text=self._header.text, logprobs=self._header.logprobs))
        return ()

    def write(self, event: TextDelta) -> Sequence[ServerSentEvent]:
        """Return the text; a refusal's text is kept, to report what became of it."""
        if isinstance(self._header, Refusal):
            self._folder.feed(event)
        return self._say(event)

    def _say(self, event: TextDelta) -> Sequence[ServerSentEvent]:
        self._written += len(event.text)
        logprobs = encode_logprobs(event.logprobs, self._where, self._losses) if event.logprobs else {}
        return (self._said(event.text, logprobs),) if event.text or logprobs else ()

    def _whole(self, part: Part) -> Sequence[ServerSentEvent]:
        """Return what no delta had; the part has the text of its start, or all of it."""
        text = answer_text(part, self._where, self._losses) or ""
        rest = text[self._written :]
        return (self._said(rest, {}),) if rest else ()


class _Call(Block):
    """A tool call: in progress as its text grows, then complete."""

    def begin(self) -> Sequence[ServerSentEvent]:
        """Return that a call starts, and its name."""
        if not isinstance(self._header, ToolCall):
            return ()
        head = f"{self._header.name}({self._header.arguments}"
        return (_call("", "started"), _call(head, "in_progress"))

    def grow(self, event: Event) -> Sequence[ServerSentEvent]:
        """Return a piece of the arguments."""
        self._folder.feed(event)
        return (_call(event.text, "in_progress"),) if isinstance(event, ArgumentsDelta) and event.text else ()

    def _whole(self, part: Part) -> Sequence[ServerSentEvent]:
        if not isinstance(part, ToolCall):
            return ()
        call = encode_call(part, part.name, self._where, self._losses)
        status = "succeeded" if is_parsed(call) else "failed"
        return (_call(")", "in_progress"), _call(call, status))


class _Picture(Block):
    """An image: its bytes only, because a delta holds nothing else."""

    def _whole(self, part: Part) -> Sequence[ServerSentEvent]:
        if isinstance(part, Image) and isinstance(part.source, Inline):
            encode_item(part, self._where, self._losses)  # which says what is lost of it
            if part.source.media_type not in (None, media_type(part.source.data)):
                self._losses.approximated(self._where, "source", "a stream holds the bytes of an image alone")
            return (_event("progress", {"type": "image", "image": part.source.data}),)
        self._losses.dropped(self._where, "image", "a stream holds the bytes of an image only")
        return ()


class _Foreign(Block):
    """A part that only its own dialect understands."""

    def _whole(self, part: Part) -> Sequence[ServerSentEvent]:
        if isinstance(part, Opaque) and part.dialect == NAME and isinstance(part.data, dict):
            return (_event("progress", part.data),)
        return super()._whole(part)


_BLOCKS: dict[type[Part], type[Block]] = {
    Text: TextBlock,
    Refusal: TextBlock,
    ToolCall: _Call,
    Image: _Picture,
    Opaque: _Foreign,
}
