"""Response envelope: ids, headers, reported losses, estimated usage, and what the request log records.

Agents compact their history by these counts; where an answer reports 0 they never begin to. The prompt is counted as
routing counts it, the answer by its text. Each estimate is reported as a `Loss` and marked in the request log. If a
server has the client's own dialect, it decides what it reports: its answers are not changed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.offload import LARGE
from xenoglot.codec.framing.formats import EVENT_STREAM
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import FailureError
from xenoglot.gateway.observability.request_log import COST, LOSSES
from xenoglot.model.content import Reasoning
from xenoglot.model.events import PIECES, Failed, Finished, Ping, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, merge_usage, unfold
from xenoglot.model.response import Usage
from xenoglot.policy.token_estimate import AnswerTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.observability.request_log import RequestCost
    from xenoglot.gateway.upstream.call import UpstreamCall
    from xenoglot.model.events import Event
    from xenoglot.model.limits import RateLimits
    from xenoglot.model.request import Request
    from xenoglot.model.response import Finish, Response


class ResponseIds:
    """Give an answer that came without id, model or time those of our own making, and a failure its request's id.

    An answer that is `kept` has our id whether it came with one or not. One that may begin `early` does so with the
    first sign of life, if nothing else has come by then; its own first event is too late then.
    """

    __slots__ = ("_id", "_kept", "_model", "_request_id", "begun", "early")

    def __init__(self, identifier: str, model: str, request_id: str, *, kept: bool, early: Losses | None) -> None:
        self.begun = False
        self.early = early
        self._id = identifier
        self._kept = kept
        self._model = model
        self._request_id = request_id

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event; `Started` and `Failed` are completed."""
        if type(event) is Started:
            begun, self.begun = self.begun, True
            if begun and self.early is not None:
                self.early.approximated("$", "id", "the answer was long in coming and began under our own id")
            return () if begun else (self._completed(event),)
        if type(event) is Ping and self.early is not None and not self.begun:
            self.begun = True
            return (self._completed(Started()), event)
        if type(event) is Failed:
            return (Failed(failure=replace(event.failure, request_id=self._request_id)),)
        return (event,)

    def _completed(self, started: Started) -> Started:
        if not self._kept and None not in (started.id, started.model, started.created):
            return started
        return replace(
            started,
            id=self._id if self._kept else started.id or self._id,
            model=started.model or self._model,
            created=int(time.time()) if started.created is None else started.created,
        )

    def response(self, response: Response) -> Response:
        """Return a whole answer, completed in the same way."""
        if not self._kept and None not in (response.id, response.model, response.created):
            return response
        return replace(
            response,
            id=self._id if self._kept else response.id or self._id,
            model=response.model or self._model,
            created=int(time.time()) if response.created is None else response.created,
        )

    def close(self) -> Sequence[Event]:
        """Nothing is held back."""
        return ()


_COUNTS = ("input_tokens", "output_tokens")


class UsageEstimate:
    """A stage from events to events, which at the end adds the counts that were not reported.

    `prompt` gives the tokens of the request, `note` takes what was estimated. Pieces that an encoder writes without
    this stage are counted by `count`.
    """

    __slots__ = ("_dialect", "_finish", "_losses", "_note", "_prompt", "_tokens", "_usage")

    def __init__(self, dialect: str, prompt: Callable[[], int], losses: Losses, note: Callable[[Usage], None]) -> None:
        self._dialect = dialect
        self._prompt = prompt
        self._losses = losses
        self._note = note
        self._tokens = AnswerTokens()
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event."""
        if isinstance(event, PIECES):
            self._tokens.grow(event.text)
        elif isinstance(event, UsageReported):
            self._usage = merge_usage(self._usage, event.usage)
        elif isinstance(event, Finished):
            self._finish = event.finish
        else:
            self._tokens.feed(event)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return the usage with the missing counts estimated; nothing where none is missing."""
        usage = self._estimated(self._usage, self._finish, self._tokens.count)
        return () if usage is None else (UsageReported(usage=usage),)

    def response(self, response: Response) -> Response:
        """Return a whole answer with the same counts."""
        finish = next((one.finish for one in response.candidates if one.finish is not None), None)
        usage = self._estimated(response.usage, finish, lambda: _tokens_of(response))
        return response if usage is None else replace(response, usage=usage)

    def count(self, text: str) -> None:
        """Count the text of pieces that an encoder writes without this stage."""
        self._tokens.grow(text)

    def _estimated(self, usage: Usage | None, finish: Finish | None, written: Callable[[], int]) -> Usage | None:
        reported = usage or Usage()
        missing = _missing(usage)
        if not missing or finish is None or finish.dialect == self._dialect:
            return None
        count = {"input_tokens": self._prompt, "output_tokens": written}
        estimated = replace(reported, **{name: count[name]() for name in missing})
        self._losses.approximated("$", "usage", f"the upstream does not report {' and '.join(missing)}: estimated")
        self._note(replace(estimated, estimated=True))
        return estimated


def _missing(usage: Usage | None) -> Sequence[str]:
    """Return the names of the counts that `usage` lacks."""
    if usage is None:
        return _COUNTS
    given, made = usage.input_tokens, usage.output_tokens
    if given is not None and made is not None and (given or made):
        return ()
    empty = given == made == 0  # no prompt has 0 tokens: it is a placeholder
    return [name for name in _COUNTS if empty or getattr(usage, name) is None]


def usage_estimate(
    dialect: Dialect, request: Request, prompt: Callable[[], int], losses: Losses, note: Callable[[Usage], None]
) -> UsageEstimate | None:
    """Return what estimates missing counts of the answer to `request`; `None` where the client can do without."""
    requested = dialect.usage_expected == "requested" and request.stream and request.stream_usage
    expected = dialect.usage_expected == "always" or requested
    return UsageEstimate(dialect.name, prompt, losses, note) if expected else None


def _has_reasoning(response: Response) -> bool:
    """Whether `response` contains reasoning: most do not, and need no filter."""
    for candidate in response.candidates:
        for part in candidate.content:
            if type(part) is Reasoning:
                return True
    return False


def _tokens_of(response: Response) -> int:
    tokens = AnswerTokens()
    for event in unfold(response):
        tokens.feed(event)
    return tokens.count()


OK = 200
JSON_TYPE = "application/json"
_UNBUFFERED = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))


class ResponseEnvelope:
    """One answer and the client that requested it, in its dialect."""

    __slots__ = ("_asking", "_request", "dialect", "framing", "losses", "record")

    def __init__(self, asking: UpstreamCall) -> None:
        self.framing = asking.record.framing or asking.dialect.framing
        self.losses = asking.losses
        self.dialect = asking.dialect
        self.record = asking.record
        self._request = asking.request
        self._asking = asking

    def observe(self, events: Sequence[Event]) -> None:
        """Note what the log wants to know."""
        record = self.record
        if record.spans is not None:
            record.spans.observe(events)
        texts = [event.text for event in events if type(event) is TextDelta]
        pieces, characters = len(texts), sum(map(len, texts))
        for event in [event for event in events if type(event) is not TextDelta]:  # few
            if isinstance(event, PIECES):
                pieces += 1
                characters += len(event.text)
            elif type(event) is UsageReported:
                record.used(event.usage)
            elif type(event) is Finished:
                record.finish = event.finish.reason
            elif type(event) is Failed:
                record.failed(event.failure)
        if pieces and not record.pieces:
            record.first_token = record.clock()
        record.pieces += pieces
        record.characters += characters

    def note(self, response: Response) -> None:
        """Note the same of a whole answer."""
        if self.record.spans is not None:
            self.record.spans.note(response)
        usage = response.usage
        if usage is not None:
            self.record.used(usage)
        if usage is None or usage.output_tokens is None:
            self.observe([event for event in unfold(response) if type(event) in PIECES])
        for candidate in response.candidates:
            if candidate.finish is not None:
                self.record.finish = candidate.finish.reason

    def encoder(self, identify: ResponseIds) -> StreamWriter:
        """Return what makes bytes of the events that `identify` has completed."""
        encoder = self.dialect.stream_encoder(self._request, self.losses)
        estimate, shown = self._usage_estimate(), self._asking.reasoning_filter()
        stages = [identify, *(stage for stage in (estimate, shown) if stage is not None)]
        count = None if estimate is None else estimate.count
        return StreamWriter(identify if len(stages) == 1 else Pipeline(*stages), encoder, self.framing, count)

    def body(self, response: Response, size: int = 0) -> bytes:
        """Return the body of a whole answer of about `size` bytes.

        Raises:
            FailureError: the answer has no end. `LossError`, `WireError` and `RecursionError`: it cannot be written.
        """
        self.must_have_finished()
        if None in [candidate.finish for candidate in response.candidates]:
            response = _without_open_blocks(response)
        response = self.identify().response(response)
        estimate = self._usage_estimate() if _missing(response.usage) else None
        if estimate is not None:
            response = estimate.response(response)
        shown = self._asking.reasoning_filter() if _has_reasoning(response) else None
        if shown is not None:
            response = shown.response(response)
        encode = encode_json if size < LARGE else encode_large
        return encode(self.dialect.encode_response(response, self._request, self.losses))

    def identify(self, *, early: bool = False) -> ResponseIds:
        """Return what names an answer; `early` where it may have to begin before its own name is known."""
        request_id, kept = self.record.request_id, self.record.answer_id
        own = kept or self.dialect.id_prefix + request_id.removeprefix("req_")
        lost = self._lost_early() if early else None
        return ResponseIds(own, self._asking.model, request_id, kept=kept is not None, early=lost)

    def _usage_estimate(self) -> UsageEstimate | None:
        """Return what estimates counts that the upstream does not report; `None` where the client needs none."""
        asking = self._asking
        return usage_estimate(self.dialect, self._request, asking.prompt_tokens, self.losses, self.record.used)

    def must_have_finished(self) -> None:
        """Refuse to take for whole what no `Finished` closed: a backend may be third-party code.

        Raises:
            FailureError: nothing did.
        """
        if self.record.finish is None:
            raise FailureError(
                Failure(kind="upstream", message="connection lost: the answer ended without being complete")
            )

    def begin_stream(self, limits: RateLimits | None, *, sure: bool) -> list[tuple[str, str]]:
        """Return the headers of a streamed response, which begins now; `sure` as below."""
        headers = self._headers(limits, self.framing.media_type, *_UNBUFFERED, sure=sure)
        self.record.begin(OK)
        return headers

    def begin_whole(self, limits: RateLimits | None, size: int) -> list[tuple[str, str]]:
        """Return the headers of a whole response with a body of `size` bytes, which begins now."""
        headers = self._headers(limits, JSON_TYPE, ("content-length", str(size)))
        if (cost := self._cost()) is not None:
            headers.append((COST, str(cost)))
        self.record.begin(OK)
        return headers

    def _headers(
        self, limits: RateLimits | None, media_type: str, *more: tuple[str, str], sure: bool = True
    ) -> list[tuple[str, str]]:
        """Return the headers of a response; `sure`: the target is certain, and no other may replace it."""
        headers = [("content-type", media_type), *more]
        if limits is not None:
            headers += self.dialect.encode_limits(limits, time.time())
        if self.dialect.answer_headers is not None:
            headers += self.dialect.answer_headers(self.record.request_id)
        if said := self.record.tell_losses():
            headers.append((LOSSES, said))
        return [*headers, *self.record.headers(answering=sure or self._asking.alone)]

    def late_losses(self) -> bytes:
        """Return what was lost after the head, and the cost, as comments, which readers skip; often nothing."""
        if not self.dialect.comments or self.framing is not EVENT_STREAM:
            return b""
        told = [f"{LOSSES}: {said}"] if (said := self.record.tell_losses()) else []
        if (cost := self._cost()) is not None:
            told.append(f"{COST}: {cost}")
        encoder = self.framing.encoder()
        return b"".join(piece for said in told for piece in encoder.feed(ServerSentEvent(b"", comment=said)))

    def _cost(self) -> RequestCost | None:
        """Return what the answer costs, whose usage is known; `None` if prices are off, or its price is unknown."""
        prices = self._asking.services.prices
        return None if prices is None else prices.cost(self.record)

    def _lost_early(self) -> Losses | None:
        """Return the losses of an answer that begins early under our id; `None` where its own id may be requested."""
        ours = self.record.answer_id is not None or self._request.store is False
        return self.losses if self.dialect.begins_early and ours and not self.losses.strict else None


def _without_open_blocks(response: Response) -> Response:
    """Return an answer, some of whose candidates have no end, as its events would give it."""
    folder = Folder()
    for event in unfold(response):
        folder.feed(event)
    return folder.response()
