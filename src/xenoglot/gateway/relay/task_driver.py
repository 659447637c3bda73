"""A model request, answered: read, routed, asked of a backend, and written back in the client's dialect.

Theory of operation. The answer arrives in batches, one for each read of the upstream, and each batch leaves in one
write; while the client is slower than the upstream, that write waits, and so does the next read. The head of the
response is held until the first batch is there, so that a failure before it can still be a status; after it, a failure
is the dialect's error event, and the connection is broken off: no reader may take the rest for a whole answer. While
the upstream is silent a timer, not a task, looks on and sends the dialect's sign of life. Where both ends speak the
same dialect the bytes pass untouched, and a decoder beside them only watches; bytes in which it sees a failure that
they do not tell themselves are held back.

A client that goes away cancels this task; every way out closes the upstream.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from xenoglot.backends.backend import ByteAnswer
from xenoglot.backends.offload import offload, weight_of
from xenoglot.codec.invalid_request import invalid, refusing
from xenoglot.codec.json.duplicate_keys import unambiguous
from xenoglot.codec.requests.bounds import bounded
from xenoglot.codec.requests.url_params import informed
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.endpoint.request_body import BodyReader
from xenoglot.gateway.relay.envelope import JSON_TYPE, OK, ResponseEnvelope
from xenoglot.gateway.routing.default_model import with_model
from xenoglot.gateway.upstream.call import UpstreamCall, passed_on
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.model.events import Failed, Ping, Started
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.framing.formats import Framing
    from xenoglot.codec.framing.stream_writer import StreamWriter
    from xenoglot.gateway.endpoint.context import RequestContext
    from xenoglot.gateway.http.exchange import Exchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.relay.response_ids import ResponseIds
    from xenoglot.gateway.routing.reservation import Reservation
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request


MOST_EVENTS: Final = 1024
"""Events that are written at once: some 5 ms."""


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
        """Answer one request posted to `dialect.path`; `said` is its body, where somebody has read it already.

        Raises:
            FailureError: there is no answer, and nothing has been sent: the caller writes the error.
        """
        exchange, dialect, record = ctx.exchange, ctx.dialect, ctx.record
        models = self.services.models
        body = await self.bodies.read(exchange)
        size, path = len(body), ctx.route
        value = await self._value(body) if said is None else said
        if "model" not in exchange.variables:
            value = with_model(value, dialect.model_field, models.router, ctx.client)
        request = await offload(size, lambda: decode_request(dialect, value, path, exchange.variables))
        framing = framing_of(dialect, exchange.query)
        record.asked(request.model, stream=request.stream)
        plan = models.plan(request.model, dialect.default_tag, client=ctx.client)
        record.routed(plan.route)
        record.framing = framing
        with refusing():
            untouched: bytes | None = None
            if framing is dialect.framing or not request.stream:
                untouched = await offload(size, lambda: self._untouched(body, value, dialect, plan))
            headers = exchange.headers
            passed = passed_on(headers, dialect)
            asking = UpstreamCall(self.services, plan, dialect, headers, passed, record, request, untouched, size)
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
    """One request on its way through."""

    def __init__(self, exchange: Exchange, asking: UpstreamCall, interval: float, waited: float = 0.0) -> None:
        self.ask: Callable[[], Awaitable[Answer]] = asking.answer
        """What gives the answer as it begins."""
        self._exchange = exchange
        self._dialect = asking.dialect
        self._waited = waited
        self._interval = interval
        self._record = asking.record
        self._telling = ResponseEnvelope(asking)

    async def whole(self) -> None:
        """Answer in one piece."""
        answer = await self.ask()
        try:
            body = await self._whole_body(answer)
        finally:
            await answer.aclose()
        headers = self._telling.headers(answer.limits, JSON_TYPE, ("content-length", str(len(body))))
        self._record.begin(OK)
        await self._exchange.start(OK, headers)
        await self._exchange.end(body)

    async def stream(self) -> None:
        """Answer piece by piece."""
        identify = self._telling.identify(early=True)
        writer = _StreamWriter(self._exchange, self._telling.encoder(identify), self._record, self._interval)
        writer.alive = self._dialect.alive
        answer: Answer | None = None
        try:
            writer.watch(lambda: self._open(answer), self._waited)
            with refusing():  # a sign of life may have begun the response: then that is told in it
                answer = await self.ask()
                await self._pass(answer, identify, writer)
        except FailureError as error:
            if not writer.opened:
                raise
            self._record.failed(error.failure)
            await writer.fail(error.failure)
        finally:
            writer.stop()
            if answer is not None:
                await answer.aclose()

    async def _pass(self, answer: Answer, identify: ResponseIds, writer: _StreamWriter) -> None:
        if not isinstance(answer, ByteAnswer):
            await self._pass_events(answer.batches, writer)
        elif identify.begun:
            await self._pass_events(_seen(answer), writer)
        else:
            identify.early = None  # the bytes tell of their beginning themselves
            await self._pass_bytes(answer, writer)

    async def _pass_events(self, batches: AsyncIterator[Sequence[Event]], writer: _StreamWriter) -> None:
        async for batch in batches:
            self._telling.observe(batch)
            if len(batch) > MOST_EVENTS:  # of an answer that came whole
                for at in range(0, len(batch) - MOST_EVENTS, MOST_EVENTS):
                    await writer.write_events(batch[at : at + MOST_EVENTS])
                    await asyncio.sleep(0)
                batch = batch[at + MOST_EVENTS :]  # noqa: PLW2901  what is left of it
            await writer.write_events(batch)
            if writer.failed:
                return
        self._telling.must_have_finished()
        await writer.finish(self._telling.late_losses)

    async def _pass_bytes(self, answer: ByteAnswer, writer: _StreamWriter) -> None:
        async for piece in answer.pieces:
            self._telling.observe(piece.events)
            failure = piece.failure
            if failure is not None and (not piece.data or failure.dialect is None):
                raise FailureError(failure)
            if piece.data:
                await writer.write_bytes(piece.data, cut=piece.cut)
                writer.begun = writer.begun or any(type(event) is Started for event in piece.events)
            if failure is not None:  # it has been told; whoever waits for more would wait for nothing (U22)
                break
        await writer.finish_bytes(failed=self._record.failure is not None)

    async def _whole_body(self, answer: Answer) -> bytes:
        if isinstance(answer, ByteAnswer):
            pieces = [piece async for piece in answer.pieces]
            for piece in pieces:
                self._telling.observe(piece.events)
            return b"".join(piece.data for piece in pieces)
        folder = Folder()
        identify = self._telling.identify()
        size = 0
        async for batch in answer.batches:
            self._telling.observe(batch)
            weight = weight_of(batch)
            size += weight
            await offload(weight, partial(_fold, batch, identify, folder))
        if folder.failure is not None:
            raise FailureError(folder.failure)
        self._telling.must_have_finished()
        return await offload(size, lambda: self._telling.encoded(folder.response(), size))

    def _open(self, answer: Answer | None) -> list[tuple[str, str]]:
        known = answer is not None  # else it may yet be another who answers
        return self._telling.begin_stream(answer.limits if answer is not None else None, sure=known)


def _fold(batch: Sequence[Event], identify: ResponseIds, folder: Folder) -> None:
    for event in batch:
        for identified in identify.feed(event):
            folder.feed(identified)


async def _seen(answer: ByteAnswer) -> AsyncIterator[Sequence[Event]]:
    """Yield what the bytes of an answer tell."""
    async for piece in answer.pieces:
        if piece.events:
            yield piece.events


class _StreamWriter:
    """A streamed response: its head held until there is something to say, its silences bridged."""

    def __init__(self, exchange: Exchange, encoder: StreamWriter, record: RequestLog, interval: float) -> None:
        self.opened = False
        self.failed = False
        self.begun = False
        """Whether bytes that passed have told of the answer's beginning."""
        self.alive = b""
        """The sign of life from then on, where the encoder has none that will do: it knows nothing of those bytes."""
        self._exchange = exchange
        self._encoder = encoder
        self._record = record
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._ping: asyncio.Task[None] | None = None
        self._head: Callable[[], list[tuple[str, str]]] = list

    def watch(self, head: Callable[[], list[tuple[str, str]]], waited: float) -> None:
        """Begin to bridge silences, the first of which is `waited` long by now; `head` gives the headers."""
        self._head = head
        self._last -= waited
        self._timer = self._loop.call_at(self._last + self._interval, self._look)

    def stop(self) -> None:
        """Bridge no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    async def write_events(self, batch: Sequence[Event]) -> None:
        """Write what the events of one read make.

        Raises:
            FailureError: the answer failed before anything was sent.
        """
        last = batch[-1]
        if type(last) is Failed:
            if not self.opened:
                raise FailureError(last.failure)
            self.failed = True
        await self._write(self._encode(batch))
        if self.failed:
            self._exchange.abort()

    async def write_bytes(self, chunk: bytes, *, cut: bool) -> None:
        """Pass bytes on, after which a frame is open if they are `cut`."""
        self._record.cut = cut
        await self._write(chunk)

    async def fail(self, failure: Failure) -> None:
        """Say that the answer is broken, and break off.

        Behind half a frame there is no saying it: whatever follows would be read as a part of that.
        """
        if not self.failed and not self._record.cut:
            await self._write(self._encode((Failed(failure=failure),)))
        self.failed = True
        self._exchange.abort()

    async def finish(self, last_word: Callable[[], bytes]) -> None:
        """Write what was held back and `last_word`, and end."""
        data = b"".join(self._encoder.close())
        await self._open()
        await self._exchange.end(data + last_word())

    async def finish_bytes(self, *, failed: bool) -> None:
        """End a response whose bytes are all there; one whose bytes told of a failure is broken off."""
        if failed:
            self.failed = True
            self._exchange.abort()
        else:
            await self._open()
            await self._exchange.end()

    def _encode(self, batch: Sequence[Event]) -> bytes:
        return self._encoder.write(batch)

    async def _write(self, data: bytes) -> None:
        async with self._lock:
            opened = self.opened
            await self._open()
            if data:
                await self._exchange.write(data)
            elif opened:  # events that make no bytes leave the client in silence
                return
            self._last = self._loop.time()

    async def _open(self) -> None:
        if not self.opened:
            head = self._head()
            self.opened = True
            await self._exchange.start(OK, head)

    def _look(self) -> None:
        """Send a sign of life if nothing was written for an interval; look again when the next could be due."""
        now = self._loop.time()
        due = self._last + self._interval
        if now >= due:
            due = now + self._interval
            if not self._record.cut and not self._lock.locked():  # a write that waits for the client is life enough
                sign = self.alive if self.begun and self.alive else self._encode((Ping(),))
                self._ping = self._loop.create_task(self._write(sign))
        self._timer = self._loop.call_at(due, self._look)
