"""Decodes a stream: lines of JSON to events.

Theory of operation. Each line is a piece of the answer: reasoning, words and whole calls, under the same fields as in a
whole answer. A piece without content is a heartbeat. The last piece has `done`, the reason and the usage; a stream
without one is broken, and so is one with a line that holds an `error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.blocks import Blocks
from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import Reader, take_blanks
from xenoglot.dialects.ollama.errors import decode_error
from xenoglot.dialects.ollama.logprobs import encode_logprobs, take_logprobs
from xenoglot.dialects.ollama.request.message_decoder import take_parts
from xenoglot.dialects.ollama.response_envelope import take_end, take_head
from xenoglot.errors import WireError
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import (
    Event,
    Failed,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.dialects.ollama.extras import OllamaEndpoint
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.json import JSON

_WORDS, _THOUGHTS = "words", "thoughts"
_PLAIN = {"role", "content"}
_EMPTY = Text(text="")


class StreamDecoder:
    """A stage from JSON values to canonical events. Invalid data gives one `Failed`, and nothing after it."""

    __slots__ = ("_blocks", "_calls", "_ended", "_endpoint", "_fields", "_pending", "_started", "terminated")

    def __init__(self, endpoint: OllamaEndpoint) -> None:
        self._endpoint = endpoint
        self._fields = {"model", "created_at", "done", "message" if endpoint.nested else endpoint.words}
        self._blocks = Blocks()
        self._started = False
        self._ended = False
        self.terminated = False
        """Whether a line with `done` was read."""
        self._calls = 0
        self._pending: list[Logprob] = []  # probabilities that no words came with

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one line; return its events."""
        if self._ended:
            return ()
        try:
            piece = decode_answer(event.data)
            text = self._plain(piece) if self._started and not self._pending else None
            return self._piece(piece) if text is None else self._blocks.grow(_WORDS, TextDelta(text=text), _EMPTY)
        except WireError as error:
            return self._fail(
                Failure(kind="upstream", message=f"server error: the upstream's stream cannot be read: {error}")
            )

    def close(self) -> Sequence[Event]:
        """The stream is over: it had its last piece, or it is broken."""
        if self._ended:
            return ()
        return self._fail(
            Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
        )

    def _plain(self, piece: JSON) -> str | None:
        """Return the text of a piece that holds nothing else, the commonest of all; `None` for any other."""
        if type(piece) is not dict or piece.keys() != self._fields or piece["done"] is not False:
            return None
        inner = piece
        if self._endpoint.nested:
            inner = piece["message"]
            if type(inner) is not dict or inner.keys() != _PLAIN:
                return None
        text = inner[self._endpoint.words]
        return text if type(text) is str and text else None

    def _piece(self, piece: JSON) -> Sequence[Event]:
        reader = Reader(piece)
        if "error" in reader:
            return self._fail(decode_error(200, piece))
        scope = str(reader.peek("created_at"))
        head, parts = take_head(reader, self._endpoint), self._take_parts(reader, scope)
        probable = take_logprobs(reader)
        self._pending += probable
        done = reader.take("done", bool) is True
        grown = self._grow(parts)
        if done:
            return [*self._start(head), *grown, *self._end(reader)]
        said = {key: value for key, value in reader.rest().items() if value is not None and key != "done_reason"}
        if said:
            grown.append(OpaqueDelta(dialect=self._endpoint.name, data=said))
        return [*self._start(head), *grown] if grown or probable else (Ping(),)

    def _start(self, head: Started) -> list[Event]:
        begun, self._started = self._started, True
        return [] if begun else [head]

    def _take_parts(self, reader: Reader, scope: str) -> list[Part]:
        inner = reader.object("message") if self._endpoint.nested else reader
        if inner is None:  # the last piece of older servers
            return []
        inner.take_word("role", ("assistant",))
        parts, _ = take_parts(inner, self._endpoint.words, scope, self._calls)
        self._calls += sum(isinstance(part, ToolCall) for part in parts)
        said = {key: value for key, value in inner.rest().items() if value is not None}
        if said and inner is not reader:
            reader.rest()["message"] = said
        return parts

    def _grow(self, parts: list[Part]) -> list[Event]:
        events: list[Event] = []
        for part in parts:
            match part:
                case Text(text=text):
                    events += self._words(text)
                case Reasoning(text=str(text)):
                    events += self._blocks.grow(_THOUGHTS, ReasoningDelta(text=text), Reasoning(text=""))
                case _:
                    events += [*self._blocks.close(), *unfold_part(part)]
        return events

    def _words(self, text: str) -> list[Event]:
        """Return more words, with the probabilities so far: those of reasoning and of invisible tokens too."""
        delta = TextDelta(text=text, logprobs=tuple(self._pending))
        self._pending.clear()
        return self._blocks.grow(_WORDS, delta, _EMPTY)

    def _end(self, reader: Reader) -> list[Event]:
        self._ended = self.terminated = True
        take_blanks(reader, "done_reason")  # `""` is how nothing is said
        if self._pending:
            reader.rest()["logprobs"] = encode_logprobs(self._pending, "$", Losses())
        usage, finished = take_end(reader, self._endpoint, {}, calls=self._calls > 0)
        reported: list[Event] = [] if usage is None else [UsageReported(usage=usage)]
        return [*self._blocks.close(), *reported, finished]

    def _fail(self, failure: Failure) -> Sequence[Event]:
        self._ended = True
        return (Failed(failure=failure),)
