"""Endpoints that are forwarded untranslated, with keys, limits, budgets and log: moderations, sound, images.

Theory of operation. The model's name in a request chooses its target. The answer goes to the client as it comes, unless
its path completes the answers of some servers. The usage that it reports is looked for in a copy, of JSON up to a few
megabytes, or of a stream of events.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.offload import offload
from xenoglot.backends.operation import OperationCall, handler_of, need_handler
from xenoglot.codec.features.forward import FORWARD, ForwardedRequest
from xenoglot.codec.framing.sse import SSEDecoder
from xenoglot.codec.invalid_request import invalid, refusing
from xenoglot.codec.json.json_io import decode_json, encode_json, unambiguous
from xenoglot.errors import FailureError, WireError, missing_extra
from xenoglot.gateway.api.operations import note_route, report_headers
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.http.application import body_pieces
from xenoglot.gateway.routing.dispatch import Dispatch, ordered
from xenoglot.gateway.routing.model_router import sole_model
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.upstream.call import bound_credential, passed_on, route_costs
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from xenoglot.backends.operation import OperationResult
    from xenoglot.codec.features.forward import ForwardedAnswer, ForwardedPath
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.api.forwarded_body import FormBody, JSONBody
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.routing.reservation import Reservation
    from xenoglot.gateway.routing.router import Route, RoutePlan
    from xenoglot.model.json import JSON

    Forwarded = OperationResult[ForwardedAnswer]
    ForwardCall = OperationCall[ForwardedRequest, ForwardedAnswer]

EVENTS: Final = "text/event-stream"
JSON_TYPE: Final = "application/json"

MOST_READ: Final = 4 * 1024 * 1024
"""Bytes of a JSON answer, or of an event, in which usage is looked for."""

NO_FORMS: Final = Failure(
    kind="unsupported",
    message=f"the gateway cannot read forms: {missing_extra('python_multipart')}",
)


class UsageObject(Struct):
    """What is read of an answer, or of an event."""

    usage: msgspec.Raw = msgspec.Raw(b"null")


class ForwardEndpoint(Struct, frozen=True):
    """Serves every endpoint that is forwarded."""

    services: UpstreamServices
    bodies: BodyReader

    async def serve(self, path: ForwardedPath, ctx: RequestContext) -> None:
        """Answer one request that was sent to `path`.

        Raises:
            FailureError: there is no answer, or it breaks off.
            WireError: the request names no model, or is not valid for its content type.
        """
        self.services.check_ledger()
        async with aclosing(body_pieces(ctx.exchange, self.bodies.limit)) as pieces:
            body = await self._body(path, ctx, pieces)
            name = body.model or path.default_model or sole_model(self.services.models.router, ctx.client)
            if name is None:
                raise WireError("$.model", "required, expected str")
            await self._forward(path, ctx, name, body)

    async def _body(
        self, path: ForwardedPath, ctx: RequestContext, pieces: AsyncGenerator[bytes]
    ) -> JSONBody | FormBody:
        """Return the request's body, of a form the beginning. Raises `FailureError` and `WireError` as `serve` does."""
        ctx.record.operation = path.name
        try:
            from xenoglot.gateway.api import forwarded_body  # noqa: PLC0415  an extra
        except ImportError:
            raise FailureError(NO_FORMS) from None
        if path.form:
            size, media_type = ctx.exchange.header("content-length"), ctx.exchange.header("content-type") or ""
            form = forwarded_body.FormBody(media_type, pieces, int(size) if size else None)
            await form.read()
            return form
        data = b"".join([piece async for piece in pieces])
        value = await self.bodies.json(data)
        if not isinstance(value, dict):
            raise WireError("$", "expected an object")
        return forwarded_body.JSONBody(await offload(len(data), lambda: unambiguous(data, value)), value)

    async def _forward(self, path: ForwardedPath, ctx: RequestContext, name: str, body: JSONBody | FormBody) -> None:
        services, record = self.services, ctx.record
        record.asked(name, stream=body.streams)
        plan = services.models.plan(name, ctx.dialect.default_tag, client=ctx.client)
        call: ForwardCall = OperationCall(
            request=ForwardedRequest(model=name, body=body),
            losses=note_route(record, plan.route),
            form=path.endpoint,
            body=b"",
            dialect=ctx.dialect.name,
            headers=passed_on(ctx.exchange.headers, ctx.dialect),
            credential=bound_credential(services, plan, ctx.credential),
        )
        with refusing():
            answer, hold = await self._answer(Demand(plan, record), call, body)
        whole = False
        try:
            await _send(ctx, path, answer, call.losses)
            whole = True
        except FailureError as error:
            record.failed(error.failure)
            raise
        finally:
            hold.over(whole=whole)

    async def _answer(
        self, demand: Demand, call: ForwardCall, body: JSONBody | FormBody
    ) -> tuple[Forwarded, Reservation]:
        """Return the answer of the first target that has one. What was forwarded as it came is not sent again."""
        services, plan = self.services, demand.plan
        models, dispatcher = services.models, services.dispatcher
        if services.has_budgets and services.budgets is not None:
            await services.budgets.reserve(
                demand.record, route_costs(services, plan, 0, lambda _route: 0), routes=False
            )
        routes = [*ordered(dispatcher, plan, self._able(plan))]

        async def ask(route: Route, key: int) -> Forwarded:
            handler = need_handler(models.backend(route), FORWARD, call.request.model)
            demand.record.routed(route)
            trace = demand.record.trace_headers()
            try:
                return await handler(
                    replace(call, request=FORWARD.with_model(call.request, route.model), key=key, trace=trace)
                )
            except (FailureError, WireError) as error:
                if not body.sent:
                    raise
                del routes[routes.index(route) + 1 :]
                failure = error.failure if isinstance(error, FailureError) else invalid(error)
                raise FailureError(replace(failure, non_retryable=True)) from error

        return await Dispatch(dispatcher, demand, ask).run(routes)

    def _able(self, plan: RoutePlan) -> tuple[Route, ...]:
        """Return the targets that have such endpoints; all of them if none has, for the error."""
        models = self.services.models
        able = [route for route in plan.routes if handler_of(models.backend(route), FORWARD) is not None]
        return tuple(able) or tuple(plan.routes)


async def _completed(path: ForwardedPath, made: ForwardedAnswer, losses: Losses) -> ForwardedAnswer:
    """Return an answer with what its server left out; one that is large, or no JSON, as it is."""
    if path.complete is None or _bare(made.media_type) != JSON_TYPE:
        return made
    data = bytearray()
    async for piece in made.pieces:
        data += piece
        if len(data) > MOST_READ:
            return replace(made, pieces=_continued(bytes(data), made.pieces))
    try:
        value = path.complete(decode_json(bytes(data)), losses)
    except WireError:
        value = None
    return replace(made, pieces=_continued(bytes(data) if value is None else encode_json(value)))


async def _continued(data: bytes, rest: AsyncIterator[bytes] | None = None) -> AsyncGenerator[bytes]:
    """Yield `data`, and what follows it."""
    yield data
    if rest is not None:
        async for piece in rest:
            yield piece


async def _send(ctx: RequestContext, path: ForwardedPath, answer: Forwarded, losses: Losses) -> None:
    """Pass the answer on to the client, and note the usage in it."""
    exchange, record, made = ctx.exchange, ctx.record, answer.result
    usage = usage_reader(made.media_type)
    try:
        pieces = (await _completed(path, made, losses)).pieces
        record.begin(200)
        more = report_headers(record, ctx.dialect, answer.limits)
        await exchange.start(200, [("content-type", made.media_type), *record.headers(), *more])
        async for piece in pieces:
            if usage is not None:
                usage.feed(piece)
            await exchange.write(piece)
        value = None if usage is None else usage.close()
        if value is not None and (counts := path.usage(value)) is not None:
            record.used(counts)
        await exchange.end()
    finally:
        await made.aclose()


class UsageReader(Protocol):
    """Looks for the usage in an answer."""

    def feed(self, data: bytes) -> None:
        """Read on."""
        ...

    def close(self) -> JSON:
        """Return the object `usage`, `None` where there is none."""
        ...


class JSONUsage:
    """An answer in JSON; in one that is too large, none is looked for."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._fed = 0

    def feed(self, data: bytes) -> None:
        """Read on."""
        self._fed += len(data)
        if self._fed <= MOST_READ:
            self._data += data
        else:
            self._data.clear()

    def close(self) -> JSON:
        """Return the usage."""
        return usage_in(bytes(self._data))


class EventUsage:
    """A stream of events: the last usage counts."""

    def __init__(self) -> None:
        self._decoder: SSEDecoder | None = SSEDecoder(MOST_READ)
        self._usage: JSON = None

    def feed(self, data: bytes) -> None:
        """Read on."""
        if self._decoder is None:
            return
        try:
            for event in self._decoder.feed(data):
                self._usage = usage_in(event.data) or self._usage
        except WireError:  # an event is too large
            self._decoder = None

    def close(self) -> JSON:
        """Return the usage."""
        return self._usage


def usage_in(data: bytes) -> JSON:
    """Return the object `usage` in JSON; `None` where there is none, or no JSON."""
    if b'"usage"' not in data:
        return None
    try:
        value: JSON = msgspec.json.decode(msgspec.json.decode(data, type=UsageObject).usage)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value


def _bare(media_type: str) -> str:
    """Return a media type without its parameters."""
    return media_type.partition(";")[0].strip().lower()


def usage_reader(media_type: str) -> UsageReader | None:
    """Return what finds the usage in an answer of a media type; `None` where there is none to find."""
    bare = _bare(media_type)
    if bare == EVENTS:
        return EventUsage()
    return JSONUsage() if bare == JSON_TYPE else None
