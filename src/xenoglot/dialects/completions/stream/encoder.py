"""Encodes a stream: events to chunks.

The envelope is the same in every chunk; its bytes are built once (id and time come from outside; the wire requires
them, so where they did not they are empty and 0). Usage comes last, in a chunk without choices, to a client that asked
for it; then `[DONE]`. After a failure nothing comes, least of all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.requests.prompt_echo import is_echoed
from xenoglot.dialects.completions.extras import NAME, own_fields
from xenoglot.dialects.completions.response import OBJECT
from xenoglot.dialects.completions.stream.choice_encoder import ChoiceEncoder
from xenoglot.dialects.completions.stream.decoder import DONE
from xenoglot.dialects.openai.errors import WORDS, encode_error
from xenoglot.dialects.openai.usage import encode_usage
from xenoglot.model.events import Event, Failed, OpaqueDelta, Ping, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

_OWN = frozenset({"id", "object", "created", "model", "choices", "usage"})
"""What an encoder writes itself, whatever an answer carries along."""


class StreamEncoder:
    """A stage from canonical events to server-sent events, for the client that sent `request`."""

    __slots__ = ("_choices", "_echoed", "_ended", "_envelope", "_head", "_losses", "_request", "_usage")

    def __init__(self, request: Request, losses: Losses) -> None:
        self._request = request
        self._losses = losses
        self._choices: dict[int, ChoiceEncoder] = {}
        self._usage: Usage | None = None
        self._ended = False
        self._echoed = False
        self._envelope: JSONObject = {}
        self._head = b""
        self._start(Started())

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return the frames for the client."""
        if self._ended:
            return ()
        if type(event) is TextDelta and not event.logprobs:
            choice = self._choices.get(event.candidate)
            if choice is not None and (chunk := choice.text(event.text)) is not None:
                return (ServerSentEvent(chunk),)
        return self._feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """End the answer: return usage and `[DONE]`, or an error if it has no end."""
        if self._ended:
            return ()
        choices = self._choices.values()
        if not choices or not all(choice.is_finished for choice in choices):
            return self._fail(
                Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
            )
        self._ended = True
        chunks: list[ServerSentEvent] = []
        if self._usage is not None and self._request.stream_usage:
            usage = encode_usage(self._usage, self._losses, NAME)
            chunks.append(ServerSentEvent(encode_json({**self._envelope, "choices": [], "usage": usage})))
        return [*chunks, ServerSentEvent(DONE)]

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        match event:
            case Started():
                self._start(event)
                return ()
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
                return ()
            case Ping():
                return (ServerSentEvent(b"", comment="ping"),)
            case Failed(failure=failure):
                return self._fail(failure)
            case OpaqueDelta():
                return self._opaque(event)
            case _:
                choice = self._choice(event.candidate)
                return [ServerSentEvent(chunk) for chunk in choice.feed(event)]

    def _choice(self, candidate: int) -> ChoiceEncoder:
        choice = self._choices.get(candidate)
        if choice is None:
            request = None if self._echoed else self._request
            choice = ChoiceEncoder(candidate, (self._head, b"}"), request, self._losses)
            self._choices[candidate] = choice
        return choice

    def _start(self, started: Started) -> None:
        own = own_fields(started.extra, "$", self._losses)
        self._echoed = is_echoed(started.extra, NAME)
        self._envelope = {
            "id": started.id or "",
            "object": OBJECT,
            "created": started.created or 0,
            "model": self._request.model if started.model is None else started.model,
        }
        if started.service_tier is not None:
            self._envelope["service_tier"] = started.service_tier
        self._envelope |= {key: value for key, value in own.items() if key not in _OWN}
        self._head = encode_json(self._envelope)[:-1] + b',"choices":'

    def _opaque(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        if event.dialect != NAME or not isinstance(event.data, dict):
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return ()
        return (ServerSentEvent(encode_json({**self._envelope, "choices": [], **event.data})),)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        usual: JSONObject = {"message": "", "type": WORDS[failure.kind][1], "param": None, "code": None}
        error = usual | encode_error(failure)[1]["error"]
        return (ServerSentEvent(encode_json({"error": error})),)
