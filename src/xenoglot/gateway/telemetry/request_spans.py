"""Spans of a request: a SERVER span for it, and a CLIENT span below that for each try of a target.

A span begins when the request comes, or when a target is called; its context goes to the upstream. It ends with what
the record of the request knows by then.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace.span import TraceState

from xenoglot.codec.features.operation import EMBED
from xenoglot.gateway.observability.request_log import CLIENT_GONE, MICRO, loss_texts
from xenoglot.gateway.observability.trace_context import TRACEPARENT, TRACESTATE
from xenoglot.gateway.telemetry import conventions as names
from xenoglot.gateway.telemetry.content import content_attributes
from xenoglot.model.events import PIECES, Started
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.observability.trace_context import TraceContext
    from xenoglot.gateway.observability.tracing import LoggedTarget
    from xenoglot.gateway.telemetry.exporters import Telemetry
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

UNTRACED: Final = frozenset({"/", "/api/hello", "/health", "/health/ready", "/livez", "/readyz", "/metrics"})
"""Routes of monitoring: a request of theirs that does not fail has no span."""
FIRST_FAILED_STATUS: Final = 400
FIRST_SERVER_ERROR: Final = 500
LONGEST_ANSWER: Final = 65_536
"""Characters of a streamed answer that are kept for an attribute."""
MOST_MODELS: Final = 100
"""Names of models in metrics; others are called so: """
OTHER: Final = "other"

_SAMPLING: Final = {
    "max_tokens": names.GEN_AI_REQUEST_MAX_TOKENS,
    "temperature": names.GEN_AI_REQUEST_TEMPERATURE,
    "top_p": names.GEN_AI_REQUEST_TOP_P,
    "top_k": names.GEN_AI_REQUEST_TOP_K,
    "frequency_penalty": names.GEN_AI_REQUEST_FREQUENCY_PENALTY,
    "presence_penalty": names.GEN_AI_REQUEST_PRESENCE_PENALTY,
    "seed": names.GEN_AI_REQUEST_SEED,
    "n": names.GEN_AI_REQUEST_CHOICE_COUNT,
}
_USAGE: Final = {
    "input_tokens": names.GEN_AI_USAGE_INPUT_TOKENS,
    "output_tokens": names.GEN_AI_USAGE_OUTPUT_TOKENS,
    "cache_read": names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "cache_write": names.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
    "reasoning": names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
}


class TracedUpstream(Struct, frozen=True):
    """Attributes of an upstream: its provider by the names of the conventions, its dialect and its address."""

    provider: str
    dialect: str
    address: str | None = None
    port: int | None = None


class RequestTracing:
    """Makes the spans of the requests of one gateway. `redact` takes keys out of content."""

    def __init__(
        self, telemetry: Telemetry, upstreams: Mapping[str, TracedUpstream], redact: Callable[[str], str]
    ) -> None:
        self.telemetry = telemetry
        self.upstreams = upstreams
        self.redact = redact
        self._models: set[str] = set()

    def begin(self, record: RequestLog) -> RequestSpans:
        """Return the spans of a request that begins now."""
        return RequestSpans(self, record)

    def upstream(self, name: str | None) -> TracedUpstream:
        """Return the attributes of an upstream; what answers in this process is called by its own name."""
        return self.upstreams.get(name or "") or TracedUpstream(name or "xenoglot", "")

    def model_label(self, record: RequestLog) -> str:
        """Return the model's name for a metric: one of a bounded number, and none that only failed requests named."""
        model = record.target or ""
        if model in self._models:
            return model
        if record.failure is not None or len(self._models) >= MOST_MODELS:
            return OTHER
        self._models.add(model)
        return model


class RequestSpans:
    """The spans of one request."""

    __slots__ = ("_client", "_folder", "_record", "_response", "_server", "_size", "_tracing", "content")

    def __init__(self, tracing: RequestTracing, record: RequestLog) -> None:
        self.content = tracing.telemetry.content
        """Whether answers are observed piece by piece."""
        self._tracing = tracing
        self._record = record
        self._server: Span | None = None
        self._client: _Try | None = None
        self._folder = Folder() if self.content else None
        self._size = 0
        self._response: tuple[str | None, str | None] = (None, None)
        """The id of the answer, and the model in it."""

    @property
    def trace_id(self) -> str:
        """The id of the trace, as 32 hexadecimal digits."""
        return f"{self.server().get_span_context().trace_id:032x}"

    def server(self) -> Span:
        """Return the span of the request; it is made when it is first wanted, and begins when the request came."""
        if self._server is None:
            record = self._record
            name = record.method if record.route is None else f"{record.method} {record.route}"
            begun = time.time_ns() - int((record.clock() - record.started) * 1e9)
            self._server = self._tracing.telemetry.tracer.start_span(
                name, _parent(record.trace_context), SpanKind.SERVER, start_time=begun
            )
        return self._server

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers with the context of the try for its upstream."""
        span = self.server() if self._client is None else self._client.span
        context = span.get_span_context()
        if not context.is_valid:  # the SDK is off: the client's own is passed on
            return () if self._record.trace_context is None else self._record.trace_context.headers
        parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        state = context.trace_state.to_header()
        return ((TRACEPARENT, parent), (TRACESTATE, state)) if state else ((TRACEPARENT, parent),)

    def tried(self, target: LoggedTarget, operation: str | None) -> None:
        """Begin the span of a try, and end that of a call before it whose answer is a part of the request's."""
        self._end_part()
        upstream = self._tracing.upstream(target.backend)
        doing = _operation(operation)
        attributes: dict[str, AttributeValue] = {
            names.GEN_AI_OPERATION_NAME: doing,
            names.GEN_AI_PROVIDER_NAME: upstream.provider,
            names.GEN_AI_REQUEST_MODEL: target.model,
            names.XENOGLOT_UPSTREAM: target.backend,
        }
        if upstream.address is not None and upstream.port is not None:
            attributes |= {names.SERVER_ADDRESS: upstream.address, names.SERVER_PORT: upstream.port}
        tracer, below = self._tracing.telemetry.tracer, set_span_in_context(self.server(), Context())
        span = tracer.start_span(f"{doing} {target.model}", below, SpanKind.CLIENT, attributes)
        self._client = _Try(span, self._record.clock())

    def _end_part(self) -> None:
        """End the span of a round before another. The usage of all rounds is on the last span."""
        mine, self._client = self._client, None
        if mine is not None and mine.span.is_recording():
            mine.span.set_attributes(self._request_attributes(mine))
            mine.span.end()

    def not_sent(self) -> None:
        """Forget the try: nothing was sent."""
        self._client = None

    def asked(self, request: Request) -> None:
        """Note the request to the target."""
        if self._client is not None:
            self._client.request = request

    def failed(self, error: str, why: str) -> None:
        """End the span of a try that failed; `error` is of few kinds, `why` is for a person."""
        mine, self._client = self._client, None
        if mine is None or not mine.span.is_recording():
            return
        mine.span.set_attributes({**self._request_attributes(mine), names.ERROR_TYPE: error})
        mine.span.set_status(Status(StatusCode.ERROR, why))
        mine.span.end()

    def observe(self, events: Sequence[Event]) -> None:
        """Note the id and the model of an answer, and its content if that is wanted."""
        folder = self._folder
        for event in events:
            if type(event) is Started:
                self._response = (event.id, event.model)
            if folder is None or self._size > LONGEST_ANSWER:
                continue
            if isinstance(event, PIECES):
                self._size += len(event.text)
            folder.feed(event)

    def note(self, response: Response) -> None:
        """Note the same of a whole answer."""
        self._response = (response.id, response.model)
        if self._client is not None:
            self._client.response = response

    def end(self, ended: float) -> None:
        """End all spans; the request was over at this time of its clock."""
        record = self._record
        failed = record.failure is not None or (record.status or 0) >= FIRST_FAILED_STATUS
        if self._server is None and record.model is None and record.route in UNTRACED and not failed:
            return
        if record.tries:
            upstream = self._tracing.upstream(record.backend)
            labels = {
                names.GEN_AI_OPERATION_NAME: _operation(record.operation),
                names.GEN_AI_PROVIDER_NAME: upstream.provider,
                names.GEN_AI_REQUEST_MODEL: self._tracing.model_label(record),
            }
            self._tracing.telemetry.instruments.record(record, ended, labels)
        self._end_try(record)
        self._end_server(record)

    def _end_try(self, record: RequestLog) -> None:
        mine, self._client = self._client, None
        if mine is None or not mine.span.is_recording():
            return
        attributes = self._request_attributes(mine) | self._answer_attributes(mine, record)
        if self.content:
            response = mine.response or self._folded()
            attributes |= content_attributes(mine.request, response, self._tracing.redact)
            if self._size > LONGEST_ANSWER:
                attributes[names.XENOGLOT_CONTENT_TRUNCATED] = True
        if record.failure is not None:
            attributes[names.ERROR_TYPE] = record.failure
            mine.span.set_status(Status(StatusCode.ERROR, (record.failed_tries or [record.failure])[-1]))
        mine.span.set_attributes(attributes)
        mine.span.end()

    def _end_server(self, record: RequestLog) -> None:
        span = self.server()
        if not span.is_recording():
            return
        status = record.status or (CLIENT_GONE if record.failure == "cancelled" else None)
        upstream = self._tracing.upstreams.get(record.backend or "")
        told: dict[str, AttributeValue | None] = {
            names.HTTP_REQUEST_METHOD: record.method,
            names.HTTP_ROUTE: record.route,
            names.HTTP_RESPONSE_STATUS_CODE: status,
            names.ERROR_TYPE: record.failure,
            names.XENOGLOT_REQUEST_ID: record.request_id,
            names.XENOGLOT_TENANT: record.client.tenant,
            names.XENOGLOT_DIALECT_IN: record.dialect,
            names.XENOGLOT_DIALECT_OUT: None if upstream is None else upstream.dialect,
            names.XENOGLOT_UPSTREAM: record.backend,
            names.XENOGLOT_TRIES: record.tries,
            names.XENOGLOT_LOSSES: loss_texts(record) or None,
        }
        if record.tags is not None:
            told |= {f"{names.XENOGLOT_TAG}.{name}": value for name, value in record.tags.items()}
        if record.cost is not None:
            told[names.XENOGLOT_COST] = record.cost.amount / MICRO
            told[names.XENOGLOT_COST_CURRENCY] = record.cost.currency
        span.set_attributes({name: value for name, value in told.items() if value is not None})
        broken = record.failure is not None and record.failure != "cancelled"
        if (status or 0) >= FIRST_SERVER_ERROR or (broken and (status or 0) < FIRST_FAILED_STATUS):
            span.set_status(Status(StatusCode.ERROR, record.failure))
        span.end()

    def _request_attributes(self, mine: _Try) -> dict[str, AttributeValue]:
        request = mine.request
        if request is None:
            return {}
        sampling = request.sampling
        given = {name: getattr(sampling, field) for field, name in _SAMPLING.items()}
        attributes: dict[str, AttributeValue] = {name: value for name, value in given.items() if value is not None}
        attributes[names.GEN_AI_REQUEST_STREAM] = request.stream
        if request.output is not None:
            attributes[names.GEN_AI_OUTPUT_TYPE] = "text" if request.output.kind == "text" else "json"
        return attributes

    def _answer_attributes(self, mine: _Try, record: RequestLog) -> dict[str, AttributeValue]:
        identifier, model = self._response
        told: dict[str, AttributeValue | None] = {
            names.GEN_AI_RESPONSE_ID: identifier,
            names.GEN_AI_RESPONSE_MODEL: model,
            names.GEN_AI_RESPONSE_FINISH_REASONS: None if record.finish is None else (record.finish,),
        }
        if record.stream and record.first_token is not None:
            told[names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] = max(0.0, record.first_token - mine.began)
        usage = record.usage
        if usage is not None:
            told |= {name: getattr(usage, field) for field, name in _USAGE.items()}
            told[names.XENOGLOT_USAGE_ESTIMATED] = True if usage.estimated else None
        return {name: value for name, value in told.items() if value is not None}

    def _folded(self) -> Response | None:
        folder = self._folder
        return None if folder is None or self._size > LONGEST_ANSWER else folder.response(growing=True)


class _Try:
    """A try in progress: its span, when it began, and what is known of it."""

    __slots__ = ("began", "request", "response", "span")

    def __init__(self, span: Span, began: float) -> None:
        self.span = span
        self.began = began
        self.request: Request | None = None
        self.response: Response | None = None


def _operation(name: str | None) -> str:
    """Return what the conventions call an operation; what they do not know has its own name."""
    return names.CHAT if name is None else names.EMBEDDINGS if name == EMBED.name else name


def _parent(context: TraceContext | None) -> Context:
    """Return the context of the client's span; an empty one if it has none."""
    if context is None:
        return Context()
    state = TraceState() if context.state is None else TraceState.from_header([context.state])
    theirs = SpanContext(
        int(context.trace_id, 16),
        int(context.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(context.flags),
        trace_state=state,
    )
    return set_span_in_context(NonRecordingSpan(theirs), Context())
