"""Encodes a stream: events to chunks.

Every chunk is an answer of its own, with the parts that are new. Why the candidates ended, what they are grounded on
and the usage stand in the last, which waits for the end of the stream, for usage may come after the reason of an end
(pitfall-102). A chunk without anything in its content would be a broken answer to the official SDKs, and a comment is
not a valid line to the one for Python; so the heartbeat is a chunk of an empty text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import form_of
from xenoglot.dialects.gemini.candidate import BLANK
from xenoglot.dialects.gemini.errors import encode_error
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.gemini.response import USAGE, encode_block, note_tier
from xenoglot.dialects.gemini.stream.candidate_encoder import CandidateEncoder
from xenoglot.dialects.gemini.stream.decoder import ENDED_EARLY
from xenoglot.dialects.gemini.usage import encode_usage
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.events import Event, Failed, OpaqueDelta, Ping, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

_NOTHING_NEW: JSONObject = {"candidates": [{"content": {"parts": [BLANK], "role": "model"}, "index": 0}]}
SIGN_OF_LIFE = ServerSentEvent(encode_json(_NOTHING_NEW))

_OWN = frozenset({"candidates", USAGE, "error"})
"""What an encoder writes itself, whatever an answer carries along."""


class StreamEncoder:
    """A stage from canonical events to server-sent events: the answer to `request`."""

    __slots__ = ("_candidates", "_ended", "_losses", "_request", "_tail", "_usage")

    def __init__(self, request: Request, losses: Losses) -> None:
        self._request = request
        self._losses = losses
        self._tail: JSONObject = {"modelVersion": request.model}  # what every chunk says
        self._candidates: dict[int, CandidateEncoder] = {}
        self._usage: Usage | None = None
        self._ended = False

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return what it makes on the wire."""
        if self._ended:
            return ()
        if type(event) is TextDelta and not event.logprobs and event.candidate in self._candidates:
            said = self._candidates[event.candidate].text(event.text)
            if said is not None:
                return said
        return self._feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the answer; without a `Finished` of every candidate before it, an error."""
        if self._ended:
            return ()
        if not self._candidates or any(one.finished is None for one in self._candidates.values()):
            return self._fail(Failure(kind="upstream", message=ENDED_EARLY))
        self._ended = True
        first = self._candidates.get(0)
        finish = None if first is None or first.finished is None else first.finished.finish
        body = encode_block(finish, self._losses)
        if not body:
            body = {"candidates": [one.end() for _, one in sorted(self._candidates.items())]}
        if self._usage is not None:
            body[USAGE] = encode_usage(self._usage, self._losses)
        return (ServerSentEvent(encode_json({**body, **self._tail})),)

    def _feed(self, event: Event) -> Sequence[ServerSentEvent]:
        match event:
            case Started():
                self._start(event)
                return ()
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
                return ()
            case Ping():
                return (SIGN_OF_LIFE,)
            case Failed(failure=failure):
                return self._fail(failure)
            case OpaqueDelta():
                return self._carry(event)
            case _:
                return self._candidate(event.candidate).feed(event)

    def _start(self, started: Started) -> None:
        note_tier(started.service_tier, self._losses)
        self._tail = with_said({}, responseId=started.id)
        if started.model is not None or "model" not in form_of(started.extra, NAME):
            self._tail["modelVersion"] = started.model or self._request.model
        rest = with_rest({}, started.extra, "$", self._losses)
        self._tail |= {key: value for key, value in rest.items() if key not in _OWN}

    def _candidate(self, index: int) -> CandidateEncoder:
        candidate = self._candidates.get(index)
        if candidate is None:
            tail = b"," + encode_json(self._tail)[1:] if self._tail else b"}"
            candidate = self._candidates[index] = CandidateEncoder(index, tail, self._losses)
        return candidate

    def _carry(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        if event.dialect != NAME or not isinstance(event.data, dict):
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return ()
        news = {key: value for key, value in event.data.items() if key not in _OWN}
        return (ServerSentEvent(encode_json({**_NOTHING_NEW, **self._tail, **news})),)

    def _fail(self, failure: Failure) -> Sequence[ServerSentEvent]:
        self._ended = True
        return (ServerSentEvent(encode_json(encode_error(failure)[1])),)
