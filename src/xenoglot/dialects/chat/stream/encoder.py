"""Encodes a stream: events to chunks.

The envelope is the same in every chunk; its bytes are built once (id and time come from outside; the wire requires
them, so where they did not they are empty and 0). Usage comes last, in a chunk without choices, to a
client that requested it; then `[DONE]`. After a failure nothing comes, least of all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.chat.extras import NAME, own_fields
from xenoglot.dialects.chat.response import is_legacy
from xenoglot.dialects.chat.stream.choice_encoder import ChoiceEncoder
from xenoglot.dialects.chat.stream.decoder import DONE
from xenoglot.dialects.chat.usage import encode_usage
from xenoglot.dialects.openai.errors import WORDS, encode_error
from xenoglot.model.content import ToolCall
from xenoglot.model.events import (
    BlockStarted,
    Event,
    Failed,
    OpaqueDelta,
    Ping,
    Started,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Piece
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

_OWN = frozenset({"id", "object", "created", "model", "choices", "usage"})
"""What an encoder writes itself, whatever an answer carries along."""


class StreamEncoder:
    """A stage from canonical events to server-sent events, for the client that sent `request`."""

    __slots__ = ("_choices", "_ended", "_envelope", "_head", "_legacy", "_losses", "_request", "_tail", "_usage")

    def __init__(self, request: Request, losses: Losses) -> None:
        self._request = request
        self._losses = losses
        self._legacy = is_legacy(request)
        self._choices: dict[int, ChoiceEncoder] = {}
        self._usage: Usage | None = None
        self._ended = False
        self._tail = b',"usage":null}' if request.stream_usage else b"}"
        self._envelope: JSONObject = {}
        self._head = b""
        self._start(Started())

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return the frames for the client."""
        return () if self._ended else self._feed(event)

    def frame(self, piece: Piece, /) -> bytes | None:
        """Take a piece that is its text and nothing else; return its frame."""
        choice = self._choices.get(piece.candidate)
        return None if choice is None or self._ended else choice.frame(piece.text)

    def close(self) -> Sequence[ServerSentEvent]:
        """End the answer: return usage and `[DONE]`, or an error if it has no end."""
        if self._ended:
            return ()
        touched = [choice for choice in self._choices.values() if choice.is_touched]
        if not touched or not all(choice.is_finished for choice in touched):
            return self._fail(
                Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
            )
        self._ended = True
        chunks: list[ServerSentEvent] = []
        if self._usage is not None and self._request.stream_usage:
            usage = encode_usage(self._usage, self._losses)
            chunks.append(ServerSentEvent(encode_json({**self._envelope, "choices": [], "usage": usage})))
        return [*chunks, ServerSentEvent(DONE)]

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        said: Sequence[ServerSentEvent] = ()
        match event:
            case Started():
                self._start(event)
                said = (ServerSentEvent(self._choice(0)[0]),)
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Ping():
                said = (ServerSentEvent(b"", comment="ping"),)
            case Failed(failure=failure):
                said = self._fail(failure)
            case OpaqueDelta():
                said = self._opaque(event)
            case _:
                said = self._feed_choice(event)
        return said

    def _feed_choice(self, event: Event) -> Sequence[ServerSentEvent]:
        candidate = getattr(event, "candidate", 0)
        chunks = [] if candidate in self._choices else self._choice(candidate)
        choice = self._choices[candidate]
        part = event.part if isinstance(event, BlockStarted) else None
        if isinstance(part, ToolCall) and is_legacy(self._request, part):
            choice.speak_legacy()
        return [ServerSentEvent(chunk) for chunk in (*chunks, *choice.feed(event))]

    def _start(self, started: Started) -> None:
        own = own_fields(started.extra, "$", self._losses)
        self._envelope = {
            "id": started.id or "",
            "object": "chat.completion.chunk",
            "created": started.created or 0,
            "model": self._request.model if started.model is None else started.model,
        }
        if started.service_tier is not None:
            self._envelope["service_tier"] = started.service_tier
        self._envelope |= {key: value for key, value in own.items() if key not in _OWN}
        self._head = encode_json(self._envelope)[:-1] + b',"choices":'

    def _choice(self, candidate: int) -> list[bytes]:
        """Begin a candidate; return its first chunk."""
        choice = ChoiceEncoder(candidate, self._head, self._tail, self._losses, legacy=self._legacy)
        self._choices[candidate] = choice
        return [choice.role()]

    def _opaque(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        if event.dialect != NAME or not isinstance(event.data, dict):
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return ()
        usage = {"usage": None} if self._request.stream_usage else {}
        return (ServerSentEvent(encode_json({**self._envelope, "choices": [], **event.data, **usage})),)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        usual: JSONObject = {"message": "", "type": WORDS[failure.kind][1], "param": None, "code": None}
        error = usual | encode_error(failure)[1]["error"]
        return (ServerSentEvent(encode_json({"error": error})),)
