"""Decodes a stream: chunks to events.

Theory of operation. Each chunk is an answer of its own: it holds the new parts, and the other fields as far as they
are known. There is no mark of the end. A candidate has ended when a chunk has its `finishReason`, but words may still
come with a later one (older models send `STOP` in every chunk), so the ends are events when the stream is over; if a
candidate has none by then, the stream was cut (pitfall-103). Usage grows from chunk to chunk: the last one counts
(C-W5).

Source: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.candidate import BLANK
from xenoglot.dialects.gemini.errors import read_error
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.dialects.gemini.response import USAGE, take_block, take_head
from xenoglot.dialects.gemini.stream.candidate_decoder import CandidateDecoder
from xenoglot.dialects.gemini.usage import decode_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.events import Event, Failed, OpaqueDelta, Ping, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage

ENDED_EARLY = "connection lost: the upstream's stream ended without being complete"

_MOST_CANDIDATES = 128
"""Far more than any server makes: an index beyond it is a mistake or an attack."""

_MISSING = object()
_SILENT: JSONObject = {"parts": [BLANK], "role": "model"}


class StreamDecoder:
    """A stage from server-sent events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = ("_answer_id", "_candidates", "_ended", "_rest", "_started", "_usage", "terminated")

    def __init__(self) -> None:
        self._started = self._ended = False
        self.terminated = False
        """Whether `[DONE]` was read, which only gateways in front of Gemini send."""
        self._answer_id: str | None = None
        self._rest: JSONObject = {}  # what chunks said beside their candidates
        self._usage: Usage | None = None
        self._candidates: dict[int, CandidateDecoder] = {}

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one event of the wire; return its canonical events."""
        if self._ended or not event.data.strip():
            return ()
        if event.data.startswith(b"[DONE]"):  # gateways that speak several dialects let it slip
            events = self.close()
            self.terminated = not isinstance(events[-1], Failed)
            return events
        try:
            return self._chunk(decode_answer(event.data))
        except WireError as error:
            return self._fail(
                Failure(kind="upstream", message=f"server error: the upstream's stream cannot be read: {error}")
            )

    def close(self) -> Sequence[Event]:
        """End the stream: finish it if every candidate has an end, otherwise fail it."""
        if self._ended:
            return ()
        if not self._candidates or any(one.finish is None for one in self._candidates.values()):
            return self._fail(Failure(kind="upstream", message=ENDED_EARLY))
        self._ended = True
        return [event for one in self._candidates.values() for event in one.end()]

    def _fail(self, failure: Failure) -> Sequence[Event]:
        self._ended = True
        return (Failed(failure=failure),)

    def _chunk(self, chunk: JSON) -> Sequence[Event]:
        if isinstance(chunk, list) and len(chunk) == 1:  # how an error is told to a client that requested no events
            (chunk,) = chunk
        reader = Reader(chunk)
        if "error" in reader:
            return self._fail(read_error(chunk))
        answer_id, model = take_head(reader)
        if answer_id is None and _is_silent(reader):
            return (Ping(),)
        items = list(reader.objects("candidates"))
        blocked = None if items else take_block(reader)
        usage = self._take_usage(reader)
        events = self._start(answer_id, model, reader.rest())
        for place, item in enumerate(items):
            events += self._candidate(item, place).feed(item)
        if blocked is not None:
            self._grown(0).block(blocked)
        return [*events, *usage]

    def _start(self, answer_id: str | None, model: str | None, rest: JSONObject) -> list[Event]:
        """Begin the stream, or carry new fields of a later chunk."""
        news = {key: value for key, value in rest.items() if self._rest.get(key, _MISSING) != value}
        self._rest |= news
        if self._started:
            said = {key: value for key, value in news.items() if value is not None}
            return [OpaqueDelta(dialect=NAME, data=said)] if said else []
        self._started = True
        self._answer_id = answer_id
        form: JSONObject = {} if model is not None else {"model": "absent"}
        extra = Extra(dialect=NAME, fields=news, form=form) if news or form else None
        return [Started(id=answer_id, model=model, extra=extra)]

    def _take_usage(self, reader: Reader) -> Sequence[Event]:
        usage = decode_usage(reader.peek(USAGE), "$.usageMetadata")
        if usage is None:
            return ()
        reader.take(USAGE, dict)
        grown = merge_usage(self._usage, usage)
        if grown == self._usage:
            return ()
        self._usage = grown
        return (UsageReported(usage=grown),)

    def _candidate(self, item: Reader, place: int) -> CandidateDecoder:
        index = item.take("index", int)
        index = place if index is None or index < 0 else index
        if index >= _MOST_CANDIDATES:
            raise WireError(item.at("index"), f"must be less than {_MOST_CANDIDATES}")
        return self._grown(index)

    def _grown(self, index: int) -> CandidateDecoder:
        if index not in self._candidates:
            self._candidates[index] = CandidateDecoder(index, self._answer_id)
        return self._candidates[index]


def _is_silent(reader: Reader) -> bool:
    """Whether a chunk is but a sign of life: one candidate of an empty text, and no reason of an end; or nothing."""
    candidates = reader.peek("candidates")
    if not reader.rest():
        return True
    if reader.rest().keys() != {"candidates"} or not isinstance(candidates, list) or len(candidates) != 1:
        return False
    one = candidates[0]
    return isinstance(one, dict) and one.keys() <= {"content", "index"} and one.get("content") == _SILENT
