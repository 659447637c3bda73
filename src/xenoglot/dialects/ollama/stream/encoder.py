"""Encodes a stream: events to lines of JSON.

Calls wait until they are whole: the wire has them so. The end waits until the stream is over: what an answer cost may
come after why it ended, and both stand in one last line. After an error nothing comes, least of all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.target import Target
from xenoglot.dialects.ollama.errors import encode_error
from xenoglot.dialects.ollama.logprobs import encode_logprobs
from xenoglot.dialects.ollama.response_envelope import around, encode_end, encode_head, is_own
from xenoglot.dialects.ollama.stream.block_encoder import Block, ReasoningBlock, TextBlock
from xenoglot.model.content import Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    HostedProgress,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage
from xenoglot.model.response import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.dialects.ollama.extras import OllamaEndpoint
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

    Written = Block | ReasoningBlock | TextBlock
    GrowthEvent = (
        BlockStarted
        | TextDelta
        | CitationDelta
        | ReasoningDelta
        | SignatureDelta
        | ArgumentsDelta
        | AudioDelta
        | HostedProgress
        | BlockEnded
    )

_OWN = frozenset({"model", "created_at", "done", "done_reason", "error"})
"""What an encoder writes itself, whatever a piece carries along."""

_WHERE = "$.candidates[0]"


_LINE_ENDS = tuple((end.encode(), b"\\u%04x" % ord(end)) for end in "\x85\u2028\u2029")
"""What ends a line in Unicode but not in JSON, and how it is escaped there: python's SDK ends lines as Unicode does."""


def _on_one_line(data: bytes) -> bytes:
    for end, escaped in _LINE_ENDS:
        if end in data:
            data = data.replace(end, escaped)
    return data


class StreamEncoder:
    """A stage from canonical events to lines, for the client that sent `request`."""

    def __init__(self, request: Request, losses: Losses, endpoint: OllamaEndpoint) -> None:
        self._request = request
        self._losses = losses
        self._endpoint = endpoint
        self._crossing = EncodeContext(losses, Target(), home=True)
        self._block: Written | None = None
        self._blocks = 0
        self._calls = 0
        self._usage: Usage | None = None
        self._finished: dict[int, Finished | None] = {}
        self._refused = self._own = False
        self._ended = False
        self._head: JSONObject = {}
        self._wraps: dict[str, tuple[bytes, bytes]] = {}
        self._start(Started())

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return the frames for the client."""
        if self._ended:
            return ()
        match event:
            case Started():
                self._start(event)
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Ping():
                return (self._line({}, {}),)
            case Failed(failure=failure):
                return self._fail(failure)
            case OpaqueDelta():
                return self._opaque(event)
            case Finished(candidate=candidate):
                self._finished[candidate] = event
            case _:
                return self._grow(event)
        return ()

    def close(self) -> Sequence[ServerSentEvent]:
        """The answer is over: return its last line, or an error where it has no end."""
        if self._ended:
            return ()
        last = self._finished.get(0)
        if last is None or not all(self._finished.get(index) for index in range(max(self._finished) + 1)):
            return self._fail(
                Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
            )
        self._ended = True
        ended = Candidate(finish=last.finish, extra=last.extra)
        end = encode_end(ended, self._usage, self._endpoint, self._losses, refused=self._refused)
        return (self._line({}, end),)

    def _start(self, started: Started) -> None:
        self._own = is_own(started.extra)
        self._head = encode_head(started, self._request, self._endpoint, self._losses)
        common = _on_one_line(encode_json({**self._head, "done": False}))[:-1]
        nested = self._endpoint.nested
        opening, closing = (b',"message":{"role":"assistant",', b"}}") if nested else (b",", b"}")
        words = b'"%s":' % self._endpoint.words.encode()
        self._wraps = {
            "content": (common + opening + words, closing),
            "thinking": (common + opening + words + b'"","thinking":', closing),
        }

    def _grow(self, event: GrowthEvent) -> Sequence[ServerSentEvent]:
        self._finished.setdefault(event.candidate, None)
        if event.candidate:
            self._losses.dropped(f"$.candidates[{event.candidate}]", "candidate", "the wire holds one answer")
            return ()
        match event:
            case BlockStarted(part=part):
                self._block = self._open(part, f"{_WHERE}.content[{self._blocks}]")
                self._blocks += 1
                logprobs = part.logprobs if isinstance(part, Text | Refusal) else ()
                return self._written(self._block.begin(), logprobs)
            case BlockEnded(part=part):
                block, self._block = self._block, None
                return () if block is None else self._written(block.end(part))
            case TextDelta(logprobs=logprobs):
                return () if self._block is None else self._written(self._block.grow(event), logprobs)
            case _:
                return () if self._block is None else self._written(self._block.grow(event))

    def _open(self, part: Part, where: str) -> Written:
        match part:
            case Text() | Refusal():
                self._refused = self._refused or isinstance(part, Refusal)
                return TextBlock(part, where, self._losses)
            case Reasoning():
                return ReasoningBlock(part, where, self._losses)
            case ToolCall():
                self._calls += 1
                return Block(part, where, self._crossing, own=True, place=self._calls - 1)
            case _:
                return Block(part, where, self._crossing, own=self._own)

    def _written(self, pieces: Sequence[JSONObject], logprobs: Sequence[Logprob] = ()) -> Sequence[ServerSentEvent]:
        if logprobs:
            said = encode_logprobs(logprobs, _WHERE, self._losses)
            return [self._line(pieces[0] if pieces else {}, {"logprobs": said})]
        lines = []
        for piece in pieces:
            ((key, value),) = piece.items()
            wraps = self._wraps.get(key)
            if wraps is None:
                lines.append(self._line(piece, {}))
            else:
                lines.append(ServerSentEvent(wraps[0] + _on_one_line(encode_json(value)) + wraps[1]))
        return lines

    def _line(self, piece: JSONObject, beside: JSONObject) -> ServerSentEvent:
        """Return a line with the fields of a message, and the other fields."""
        own = {key: value for key, value in beside.items() if value is not None}
        words = {self._endpoint.words: piece.get("content", ""), **piece}
        if self._endpoint.words != "content":
            words.pop("content", None)
        inner = around(words, self._endpoint, own, {})
        return ServerSentEvent(_on_one_line(encode_json({**self._head, **inner, "done": False, **own})))

    def _opaque(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        if event.dialect != self._endpoint.name or not isinstance(event.data, dict):
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return ()
        return (self._line({}, {key: value for key, value in event.data.items() if key not in _OWN}),)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        return (ServerSentEvent(_on_one_line(encode_json(encode_error(failure)[1]))),)
