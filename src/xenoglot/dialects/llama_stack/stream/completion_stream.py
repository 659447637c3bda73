"""Encodes and decodes streams of text completion: text deltas, the last one with the stop reason.

`CompletionResponseStreamChunk` of `llama_stack/apis/inference/inference.py` has no other end. Servers may send the
reason before the last piece, and again with it (L16); so an answer is over when the stream is, and a reason was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.codec.reader import Reader, take_blanks
from xenoglot.dialects.llama_stack.errors import decode_error
from xenoglot.dialects.llama_stack.extras import COMPLETION
from xenoglot.dialects.llama_stack.finish import decode_finish
from xenoglot.dialects.llama_stack.logprobs import take_logprobs
from xenoglot.dialects.llama_stack.stream.decoder import ENDED_EARLY, failed
from xenoglot.dialects.llama_stack.stream.encoder import AnswerEncoder, Block, TextBlock
from xenoglot.dialects.llama_stack.usage import take_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Refusal, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Started,
    TextDelta,
    UsageReported,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request


class StreamDecoder:
    """A stage from server-sent events to canonical events. Never raises for invalid data: it fails the stream."""

    __slots__ = ("_done", "_started", "_stop", "_writing")

    def __init__(self) -> None:
        self._started = self._writing = self._done = False
        self._stop: str | None = None

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one server-sent event; return its canonical events."""
        if self._done or not event.data or event.data == b"[DONE]":
            return ()
        try:
            return self._feed(decode_answer(event.data))
        except WireError as error:
            return self._fail(failed(f"the upstream's stream is malformed: {error}"))

    @property
    def terminated(self) -> bool:
        """Never: a stream ends with its bytes."""
        return False

    def close(self) -> Sequence[Event]:
        """The stream is over: fail if no reason was sent."""
        if self._done:
            return ()
        if self._stop is None:
            return self._fail(failed(ENDED_EARLY))
        self._done = True
        ended = (BlockEnded(),) if self._writing else ()
        return (*ended, Finished(finish=decode_finish(self._stop, calls=False, name=COMPLETION)))

    def _fail(self, failure: Failed) -> Sequence[Event]:
        self._done = True
        return (failure,)

    def _feed(self, data: JSON) -> Sequence[Event]:
        chunk = Reader(data)
        if "error" in chunk and "delta" not in chunk:
            return self._fail(Failed(failure=decode_error(200, data)))
        text = chunk.take("delta", str)
        if text is None:
            raise WireError(chunk.at("delta"), "required, expected str")
        stop = chunk.take("stop_reason", str)
        logprobs = take_logprobs(chunk, text)
        usage = take_usage(chunk, COMPLETION)
        take_blanks(chunk, "metrics", "logprobs")
        events: list[Event] = [] if self._started else [Started()]
        if text and not self._writing:
            events.append(BlockStarted(part=Text(text="")))
        if text:
            events.append(TextDelta(text=text, logprobs=logprobs))
        if usage is not None:
            events.append(UsageReported(usage=usage))
        rest = {key: value for key, value in chunk.rest().items() if value is not None}
        if rest:
            events.append(OpaqueDelta(dialect=COMPLETION, data={"delta": "", **rest}, name="chunk"))
        self._started, self._writing, self._stop = True, self._writing or bool(text), stop or self._stop
        return events


class _Continuation:
    name = COMPLETION

    def first(self) -> Sequence[ServerSentEvent]:
        return ()

    def block(self, part: Part, where: str, losses: Losses) -> Block:
        return (TextBlock if isinstance(part, Text | Refusal) else Block)(part, where, losses, _piece)

    def last(self, stop: str | None) -> JSONObject:
        return {"delta": "", "stop_reason": stop}


def _piece(text: str, logprobs: JSONObject) -> ServerSentEvent:
    return ServerSentEvent(encode_json({"delta": text, **logprobs}))


def stream_encoder(request: Request, losses: Losses) -> AnswerEncoder:  # noqa: ARG001  the shape of a record's function
    """Return the encoder for the client that sent `request`."""
    return AnswerEncoder(_Continuation(), losses)
