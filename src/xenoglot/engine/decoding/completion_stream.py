"""Decoder of the runtime's completion stream: text, logprobs, usage and finish reason of each candidate.

Its items are JSON objects in server-sent events: first the progress of prompt processing, then text, then one with
`"stop": true` for each candidate. The stream has no other end marker: without these it was truncated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json
from xenoglot.engine.decoding.prompt_logprobs import logprob_of
from xenoglot.engine.decoding.text_output import CandidateStage
from xenoglot.engine.errors import BROKEN, CRASHED
from xenoglot.engine.metrics import Timings
from xenoglot.engine.server.runtime import TokenLogprob
from xenoglot.model.content import Extra
from xenoglot.model.events import Failed, Finished, OpaqueDelta, Started, UsageReported
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.content import Logprob
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

RESPONSE_FIELDS: Final = [
    "index",
    "content",
    "stop",
    "stop_type",
    "stopping_word",
    "tokens_predicted",
    "truncated",
    "timings",
]
"""What the last item of a candidate has to hold; the others are not affected."""


NOTHING: Final = msgspec.Raw()


class _Progress(Struct):
    cache: int


class _Said(Struct):
    message: str = ""


class _Item(Struct):
    index: int = 0
    content: str = ""
    stop: bool = False
    stop_type: str = ""
    stopping_word: str = ""
    tokens_predicted: int = 0
    truncated: bool = False
    timings: msgspec.Raw = NOTHING
    prompt_progress: _Progress | None = None
    completion_probabilities: tuple[TokenLogprob, ...] = ()
    error: _Said | None = None


_decode = msgspec.json.Decoder(_Item).decode
_decode_timings = msgspec.json.Decoder(Timings).decode


class CompletionContext(Struct, frozen=True, kw_only=True):
    """Parameters for decoding a stream: the model, the tokens of the prompt, and the stage of each candidate.

    `bounded`: the context ends before the limit that the request allows. `tops` is the number of alternatives of each
    token that the request wants, `None` for no logprobs at all. `extra` holds fields of the answer that only the
    client's dialect has; `timings` names the field for the runtime's timings, empty if the request does not want them.
    """

    model: str
    prompt_tokens: int
    speeches: tuple[CandidateStage, ...]
    bounded: bool = False
    tops: int | None = None
    extra: Extra | None = None
    timings: str = ""


def unspoken(plan: CompletionContext) -> list[Event]:
    """Return the answer of candidates that add nothing to what they begin with."""
    usage = Usage(input_tokens=plan.prompt_tokens, output_tokens=0)
    events: list[Event] = [Started(model=plan.model, extra=plan.extra), UsageReported(usage=usage)]
    for candidate, speech in enumerate(plan.speeches):
        ending, finish = speech.close(Finish(reason="length"))
        events += [*ending, Finished(finish=finish, candidate=candidate)]
    return events


class CompletionDecoder:
    """A stage from server-sent events to the events of an answer."""

    def __init__(self, plan: CompletionContext) -> None:
        self._plan = plan
        self._started = False
        self._cached: int | None = None
        self._predicted = [0] * len(plan.speeches)
        self._open = set(range(len(plan.speeches)))
        self.timings: list[Timings] = []
        """The runtime's timings of the finished candidates."""
        self.extra = plan.extra
        """What the answer has in the client's dialect alone, with the timings of the first candidate so far."""

    @property
    def complete(self) -> bool:
        """Whether every candidate has finished."""
        return not self._open

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Decode one item; return the new events."""
        try:
            item = _decode(event.data)
        except msgspec.DecodeError:
            return (Failed(failure=BROKEN),)
        if item.error is not None:
            return (Failed(failure=BROKEN),)
        if item.prompt_progress is not None:
            self._cached = item.prompt_progress.cache
            return ()
        return self._read(item)

    def close(self) -> Sequence[Event]:
        """Return a failure if the stream was truncated."""
        return () if self.complete else (Failed(failure=CRASHED),)

    def _read(self, item: _Item) -> Sequence[Event]:
        self._predicted[item.index] = item.tokens_predicted
        events: list[Event] = (
            [] if self._started else [Started(model=self._plan.model, extra=self._plan.extra), self.usage()]
        )
        self._started = True
        speech = self._plan.speeches[item.index]
        events += speech.feed(item.content, self._logprobs(item))
        events += self._measured(item)
        if item.stop:
            self._open.discard(item.index)
            self.timings += () if item.timings is NOTHING else (_decode_timings(item.timings),)
            ending, finish = speech.close(self._finish(item))
            events += [*ending, self.usage(), Finished(finish=finish, candidate=item.index)]
        return events

    def usage(self) -> UsageReported:
        """Return the tokens read and generated so far."""
        prompt = self._plan.prompt_tokens
        usage = Usage(input_tokens=prompt, output_tokens=sum(self._predicted), cache_read=self._cached)
        return UsageReported(usage=usage)

    def _measured(self, item: _Item) -> Sequence[Event]:
        """Return how long the candidate took so far, in the runtime's words, if the request wants to know."""
        extra = self._plan.extra
        if item.timings is NOTHING or extra is None or not self._plan.timings:
            return ()
        data: JSONObject = {self._plan.timings: decode_json(bytes(item.timings))}
        if item.index == 0:
            self.extra = replace(extra, fields=extra.fields | data)
        return (OpaqueDelta(dialect=extra.dialect, data=data, candidate=item.index),)

    def _finish(self, item: _Item) -> Finish:
        match item.stop_type:
            case "word":
                return Finish(reason="stop_sequence", stop_sequence=item.stopping_word)
            case "limit":
                return Finish(reason="context" if self._plan.bounded or item.truncated else "length")
            case _:
                return Finish(reason="stop")

    def _logprobs(self, item: _Item) -> tuple[Logprob, ...]:
        tops = self._plan.tops
        if tops is None:
            return ()
        # a token whose text is held back, for it may begin a stop string, comes with none, and again with it
        return tuple(logprob_of(likely, tops) for likely in item.completion_probabilities if likely.token)
