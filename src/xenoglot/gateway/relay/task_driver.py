"""A model request, answered: read, routed, asked of a backend, and written back in the client's dialect.

Theory of operation. The answer arrives in batches, one for each read of the upstream, and each batch leaves in one
write; while the client is slower than the upstream, that write waits, and so does the next read. The head of the
response is held until the first batch has arrived, so that a failure before it can still be a status; after it, a
failure is the dialect's error event, and the connection is broken off: no reader may take the rest for a whole answer.
While the upstream is silent a timer, not a task, looks on and sends the dialect's sign of life. Where both ends speak
the same dialect the bytes pass untouched, and a decoder only watches them; bytes in which it sees a failure that
they do not report themselves are held back.

A client that goes away cancels this task; every way out closes the upstream.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from xenoglot.backends.backend import ByteAnswer
from xenoglot.backends.offload import offload, weight_of
from xenoglot.codec.invalid_request import invalid, refusing
from xenoglot.codec.json.json_io import unambiguous
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.requests.url_params import informed
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.relay.answer import AnswerRelay, parts
from xenoglot.gateway.relay.envelope import OK, ResponseEnvelope
from xenoglot.gateway.routing.model_router import with_model
from xenoglot.gateway.upstream.call import UpstreamCall, passed_on
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.framing.formats import Framing
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.routing.reservation import Reservation
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request


class StartedCall(NamedTuple):
    """A call that was begun without a task: nothing of its answer has been sent, and it has `waited` so many seconds.

    `answer` gives the answer of the target that was called, whose reservation is `hold`.
    """

    hold: Reservation
    answer: Callable[[], Awaitable[Answer]]
    waited: float


class RelayEndpoint(Struct, frozen=True):
    """Has models answer; the client gets a heartbeat after `ping_interval` seconds of silence."""

    services: UpstreamServices
    bodies: BodyReader
    ping_interval: float

    async def serve(self, ctx: RequestContext, said: JSON | None = None) -> None:
        """Answer one request posted to `dialect.path`; `said` is its body, where it has been read already.

        Raises:
            FailureError: there is no answer, and nothing has been sent: the caller writes the error.
        """
        exchange, dialect, record = ctx.exchange, ctx.dialect, ctx.record
        models = self.services.models
        self.services.check_ledger()
        body = await self.bodies.read(exchange)
        size, path = len(body), ctx.route
        value = await self._value(body) if said is None else said
        if "model" not in exchange.variables:
            value = with_model(value, dialect.model_field, models.router, ctx.client)
        request = await offload(size, lambda: decode_request(dialect, value, path, exchange.variables))
        framing = framing_of(dialect, exchange.query)
        record.asked(request.model, stream=request.stream)
        if self.services.interceptors is not None:
            exchange = ctx.exchange = self.services.interceptors.capture(record, body, exchange)
        plan = models.plan(request.model, dialect.default_tag, client=ctx.client)
        record.routed(plan.route)
        record.framing = framing
        with refusing():
            untouched: bytes | None = None
            if framing is dialect.framing or not request.stream:
                untouched = await offload(size, lambda: self._untouched(body, value, dialect, plan))
            headers = exchange.headers
            if dialect.header_fields is None:
                passed = passed_on(headers, dialect)
            else:
                untouched, passed = None, dialect.header_fields.headers(value)
            asking = UpstreamCall(
                self.services,
                plan,
                dialect,
                headers,
                passed,
                record,
                request,
                untouched,
                size,
                credential=ctx.credential,
            )
            relay = _Relay(exchange, asking, self.ping_interval)
            await (relay.stream() if request.stream else relay.whole())

    async def go_on(self, ctx: RequestContext, asking: UpstreamCall, begun: StartedCall) -> None:
        """Answer a request that was `begun` without a task.

        Raises:
            FailureError: as `serve` does.
        """
        relay = _Relay(ctx.exchange, asking, self.ping_interval, begun.waited)
        relay.ask = partial(asking.answer, begun.hold, begun.answer, begun.waited)
        with refusing():
            await (relay.stream() if asking.request.stream else relay.whole())

    def _untouched(self, body: bytes, value: JSON, dialect: Dialect, plan: RoutePlan) -> bytes:
        """Return the client's own bytes for a server of its dialect, who must read in them what was read here (C13)."""
        upstreams = [self.services.models.upstream(route) for route in plan.routes]
        alike = any(upstream is not None and upstream.speaks(dialect.name) for upstream in upstreams)
        return unambiguous(body, value) if alike else body

    async def _value(self, body: bytes) -> JSON:
        try:
            return await self.bodies.request(body)
        except WireError as error:
            raise FailureError(invalid(error)) from None


def decode_request(dialect: Dialect, said: JSON, path: str, variables: Mapping[str, str]) -> Request:
    """Return what `said`, posted to the template `path` with `variables`, asks.

    Raises:
        FailureError: it is not a request of the dialect; the failure names the field.
    """
    try:
        return bounded(dialect.decode_request(informed(said, path, variables, dialect)), said)
    except WireError as error:
        raise FailureError(invalid(error)) from None


def framing_of(dialect: Dialect, query: str) -> Framing:
    """Return how the client wants its stream."""
    if dialect.bare_framing is None or dialect.stream_query in query.split("&"):
        return dialect.framing
    return dialect.bare_framing


class _Relay:
    """One request and its answer, which is relayed in this task."""

    def __init__(self, exchange: Exchange, asking: UpstreamCall, interval: float, waited: float = 0.0) -> None:
        self.ask: Callable[[], Awaitable[Answer]] = asking.answer
        """What gives the answer as it begins."""
        self._exchange = exchange
        self._interval = interval
        self._started = asyncio.get_running_loop().time() - waited
        self._envelope = ResponseEnvelope(asking)

    async def whole(self) -> None:
        """Answer in one piece."""
        answer = await self.ask()
        try:
            body = await self._whole_body(answer)
        finally:
            await answer.aclose()
        await self._exchange.start(OK, self._envelope.begin_whole(answer.limits, len(body)))
        await self._exchange.end(body)

    async def stream(self) -> None:
        """Answer piece by piece."""
        output = QueuedOutput(self._exchange)
        clock = output.loop.time
        relay = AnswerRelay(self._envelope, output, clock, self._started, self._interval)
        answer: Answer | None = None
        try:
            output.call_at(self._started + self._interval, relay.heartbeat)
            with refusing():  # a heartbeat may have begun the response: then a failure is reported in it
                answer = await self.ask()
                relay.answered(answer.limits)
                await _pass(answer, relay, output)
        except FailureError as error:
            if relay.state == "held":
                raise
            relay.fail(error.failure)
            await output.flush()
        finally:
            output.stop()
            if answer is not None:
                await answer.aclose()

    async def _whole_body(self, answer: Answer) -> bytes:
        if isinstance(answer, ByteAnswer):
            pieces = [piece async for piece in answer.pieces]
            for piece in pieces:
                self._envelope.observe(piece.events)
            return b"".join(piece.data for piece in pieces)
        folder = Folder()
        size = 0
        async for batch in answer.batches:
            self._envelope.observe(batch)
            weight = weight_of(batch)
            size += weight
            await offload(weight, partial(_fold, batch, folder))
        if folder.failure is not None:
            raise FailureError(folder.failure)
        return await offload(size, lambda: self._envelope.body(folder.response(), size))


def _fold(batch: Sequence[Event], folder: Folder) -> None:
    for event in batch:
        folder.feed(event)


async def _seen(answer: ByteAnswer) -> AsyncIterator[Sequence[Event]]:
    """Yield the events in the bytes of an answer."""
    async for piece in answer.pieces:
        if piece.events:
            yield piece.events


class QueuedOutput:
    """What an answer sends, in order, each part as long as the client takes for it. Heartbeats are sent in a task."""

    def __init__(self, exchange: Exchange) -> None:
        self.loop = asyncio.get_running_loop()
        self._exchange = exchange
        self._queue: deque[Callable[[], Awaitable[None]]] = deque()
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._beating: asyncio.Task[None] | None = None

    @property
    def paused(self) -> bool:
        """Whether the client takes less than it is sent: something waits for it."""
        return self._lock.locked()

    def open(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Queue the head."""
        self._queue.append(partial(self._exchange.start, status, headers))

    def put(self, data: bytes) -> None:
        """Queue a piece of the body."""
        self._queue.append(partial(self._exchange.write, data))

    def finish(self, data: bytes = b"") -> None:
        """Queue the last piece."""
        self._queue.append(partial(self._exchange.end, data))

    def abort(self) -> None:
        """Queue the abort."""
        self._queue.append(self._abort)

    async def flush(self) -> None:
        """Send what is queued; wait while the client is slower than that."""
        async with self._lock:
            while self._queue:
                await self._queue.popleft()()

    def call_at(self, due: float, heartbeat: Callable[[], float]) -> None:
        """Call `heartbeat` when it is `due`, and again at the time that it returns; what it queues is sent."""
        self._timer = self.loop.call_at(due, self._beat, heartbeat)

    def stop(self) -> None:
        """Send no more heartbeats."""
        if self._timer is not None:
            self._timer.cancel()
        if self._beating is not None:
            self._beating.cancel()

    def _beat(self, heartbeat: Callable[[], float]) -> None:
        self.call_at(heartbeat(), heartbeat)
        if self._queue and not self._lock.locked():
            self._beating = self.loop.create_task(self.flush())

    async def _abort(self) -> None:
        self._exchange.abort()


async def _pass(answer: Answer, relay: AnswerRelay, output: QueuedOutput) -> None:
    """Relay what is read of `answer`, to its end or its failure.

    Raises:
        FailureError: it cannot be relayed. `LossError`, `WireError` and `RecursionError` alike.
    """
    if isinstance(answer, ByteAnswer) and relay.passes_bytes():
        async for piece in answer.pieces:
            goes_on = relay.write_bytes(*piece)
            await output.flush()
            if not goes_on:
                return
        relay.finish_bytes()
    else:
        batches = _seen(answer) if isinstance(answer, ByteAnswer) else answer.batches
        async for batch in batches:
            for part in parts(batch):
                relay.write_events(part)
                await output.flush()
                if part is not batch:
                    await asyncio.sleep(0)
            if relay.state == "ended":
                return
        relay.finish()
    await output.flush()
