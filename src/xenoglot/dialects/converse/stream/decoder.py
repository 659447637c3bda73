"""Decodes a stream: the events of `ConverseStreamOutput` to canonical events.

A block of text or reasoning begins with its first delta; only calls, results and images have a `contentBlockStart`.
`messageStop` has why the answer ended, `metadata` after it has the usage and terminates the stream. Servers add a field
`p` of random length to each event, against guesses at a text by the lengths of packets: it is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader
from xenoglot.dialects.converse.errors import broken, read_error
from xenoglot.dialects.converse.extras import NAME
from xenoglot.dialects.converse.finish import decode_finish
from xenoglot.dialects.converse.response import late_fields
from xenoglot.dialects.converse.stream.block_decoder import BlockDecoder, kind_of_delta
from xenoglot.dialects.converse.usage import decode_metadata
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall
from xenoglot.model.events import Event, Failed, Finished, OpaqueDelta, Started, UsageReported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

ENDED_EARLY: Final = "connection lost: the upstream's stream ended without being complete"

START, DELTA, STOP = "contentBlockStart", "contentBlockDelta", "contentBlockStop"
PADDING: Final = "p"


class StreamDecoder:
    """A stage from framed events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = ("_block", "_calls", "_done", "_finished", "_reported", "_started", "_waiting", "terminated")

    def __init__(self) -> None:
        self._started = self._finished = self._reported = self._done = False
        self.terminated = False
        """Whether `metadata` was read after `messageStop`."""
        self._block: BlockDecoder | None = None
        self._waiting: dict[int, list[tuple[str, JSONObject]]] = {}  # events of blocks that are not open yet
        self._calls: list[Part] = []

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one framed event; return its canonical events."""
        if self._done or not (event.data or event.id):
            return ()
        try:
            data = decode_answer(event.data or b"{}")  # an exception may have a name alone
            name = event.event or ""
            if event.id is not None or name.endswith("Exception"):
                self._done = True
                return (Failed(failure=read_error(data, name=name)),)
            return self._feed(name, data)
        except WireError as error:
            return self._fail(f"the upstream's stream is malformed: {error}")

    def close(self) -> Sequence[Event]:
        """The stream is over: fail if the answer is not."""
        return () if self._done or self._finished else self._fail(ENDED_EARLY)

    def _fail(self, message: str) -> Sequence[Event]:
        self._done = True
        return (Failed(failure=broken(message)),)

    def _feed(self, name: str, data: JSON) -> Sequence[Event]:
        reader = Reader(data)
        reader.rest().pop(PADDING, None)
        match name:
            case "messageStart":
                return self._start(reader)
            case "contentBlockStart" | "contentBlockDelta" | "contentBlockStop":
                return (*self._begun(), *self._grow(name, reader))
            case "messageStop":
                return (*self._begun(), *self._stop(reader))
            case "metadata":
                return (*self._begun(), *self._report(reader))
            case _:
                return (OpaqueDelta(dialect=NAME, data=data, name=name),)

    def _begun(self) -> Sequence[Event]:
        """Return the start of an answer whose server sent none."""
        return () if self._started else self._start(Reader({}))

    def _start(self, event: Reader) -> Sequence[Event]:
        if self._started:
            return ()
        self._started = True
        event.take_word("role", ("assistant",))
        return (Started(extra=event.extra(NAME)),)

    def _grow(self, name: str, event: Reader) -> Sequence[Event]:
        """Take the start, a delta or the stop of a block."""
        if self._finished:
            return ()
        index = event.take("contentBlockIndex", int)
        block = self._block
        if block is not None and index not in (None, block.index) and block.is_call:
            self._waiting.setdefault(index or 0, []).append((name, event.rest()))
            return ()
        events = self._step(name, event, (block.index if block is not None and index is None else index) or 0)
        return (*events, *self._resume()) if self._waiting else events

    def _step(self, name: str, event: Reader, index: int) -> Sequence[Event]:
        block = self._block
        if name == STOP:
            return self._close_block() if block is not None and block.index == index else ()
        if name == START:
            start = Reader(event.need("start", dict), event.at("start"))
            closed = self._close_block()
            if all(value is None for value in start.rest().values()):
                return closed  # of no kind: the first delta has it
            return (*closed, *self._open(BlockDecoder.started(index, start)))
        delta = event.need("delta", dict)
        kind = kind_of_delta(delta)
        if kind is None:
            return (OpaqueDelta(dialect=NAME, data={"contentBlockIndex": index, "delta": delta}, name=DELTA),)
        if block is None or block.index != index or not block.grows_by(kind):
            closed = self._close_block()
            return (*closed, *self._open(BlockDecoder.of_delta(index, kind)), *self._delta(kind, delta))
        return self._delta(kind, delta)

    def _delta(self, kind: str, delta: JSONObject) -> Sequence[Event]:
        return () if self._block is None else self._block.grow(kind, delta)

    def _open(self, block: BlockDecoder) -> Sequence[Event]:
        self._block = block
        if isinstance(block.header, ToolCall):
            self._calls.append(block.header)
        return block.first()

    def _close_block(self) -> Sequence[Event]:
        block, self._block = self._block, None
        return () if block is None else block.end()

    def _resume(self) -> Sequence[Event]:
        """Read the events of blocks that waited, in the order of their indexes."""
        events: list[Event] = []
        while self._waiting and (self._block is None or not self._block.is_call):
            index = min(self._waiting)
            for name, data in self._waiting.pop(index):
                events += self._step(name, Reader(data), index)
        return events

    def _close_all(self) -> list[Event]:
        events: list[Event] = []
        while self._block is not None or self._waiting:
            events += self._close_block()
            events += self._resume()
        return events

    def _stop(self, event: Reader) -> Sequence[Event]:
        if self._finished:
            return ()
        events = self._close_all()
        raw = event.take("stopReason", str)
        if raw is None:
            raise WireError("$.stopReason", "required, expected str")
        self._finished = True
        self._end()
        late = event.rest()
        return (*events, Finished(finish=decode_finish(raw, self._calls, late), extra=late_fields(late)))

    def _report(self, event: Reader) -> Sequence[Event]:
        usage = decode_metadata(event)
        self._reported = True
        self._end()
        return () if usage is None else (UsageReported(usage=usage),)

    def _end(self) -> None:
        """Note the end of a stream of which both the reason and the usage were read."""
        self._done = self.terminated = self._finished and self._reported
