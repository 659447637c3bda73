"""Endpoints of operations, which answer in one piece: decode, route, call the backend, encode, for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.offload import LARGE, offload
from xenoglot.backends.operation import AnyCall, OperationCall, OperationResult, handler_of, need_handler
from xenoglot.codec.invalid_request import refusing
from xenoglot.codec.json.json_io import encode_json, encode_large, unambiguous
from xenoglot.errors import FailureError
from xenoglot.gateway.api.auxiliary import note_route, report_headers, with_path_model
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import send
from xenoglot.gateway.routing.dispatch import Dispatch, ordered
from xenoglot.gateway.routing.model_router import with_model
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.upstream.call import passed_on
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.policy.failure_policy import judge
from xenoglot.policy.token_estimate import MEDIA_TOKENS, text_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.routing.router import Route
    from xenoglot.model.embedding import Input
    from xenoglot.model.json import JSON


class OperationEndpoint(Struct, frozen=True):
    """Serves every operation of every dialect."""

    services: UpstreamServices
    bodies: BodyReader

    async def serve(self, form: AnyForm, ctx: RequestContext) -> None:
        """Answer one request that was sent to a path of `form`.

        Raises:
            FailureError: there is no result.
            WireError: the request is not one of the form.
        """
        exchange, dialect, record, models = ctx.exchange, ctx.dialect, ctx.record, self.services.models
        operation = form.operation
        body, value = await self._read(form, ctx)
        request = await offload(len(body), lambda: form.decode_request(value))
        record.asked(request.model, stream=False)
        select = models.embedding_plan if operation.embeds else models.plan
        plan = select(request.model, dialect.default_tag, client=ctx.client)
        call: AnyCall = OperationCall(
            request=request,
            losses=note_route(record, plan.route),
            form=form,
            body=await offload(len(body), lambda: unambiguous(body, value)) if form.calls_upstreams else b"",
            dialect=dialect.name,
            headers=passed_on(exchange.headers, dialect),
            bytes_pass=True,
        )
        demand = Demand(plan, record, lambda: _size(operation.inputs(request)))
        with refusing():
            answer = await operate(self.services, demand, call)
        size = 0 if answer.body is not None else operation.size(answer.result, request)
        written = await offload(size, lambda: _written(answer, call, size))
        more = report_headers(record, dialect, answer.limits)  # with what is lost of the result, too
        await send(ctx, 200, written, media_type="application/json", more=more)

    async def _read(self, form: AnyForm, ctx: RequestContext) -> tuple[bytes, JSON]:
        """Return the request's body, and its parameters with the model: that of the path, or the default."""
        body, models = await self.bodies.read(ctx.exchange), self.services.models
        if form.method == "GET":
            said: JSON = {name: values[-1] for name, values in parse_qs(ctx.exchange.query).items()}
        else:
            said = await self.bodies.json(body)
        if not form.names_model:
            return body, with_path_model(said, ctx.exchange.variables)
        field, embeds = ctx.dialect.model_field, form.operation.embeds
        value = with_model(said, field, models.router, ctx.client, embeds=embeds)
        return (body if value is said else encode_large(value)), value


async def operate(services: UpstreamServices, demand: Demand, call: AnyCall) -> OperationResult[Any]:
    """Return the result of the first target that has one, its usage noted.

    Raises:
        FailureError: none has one.
    """
    models, plan, operation = services.models, demand.plan, call.form.operation

    async def ask(route: Route, key: int) -> OperationResult[Any]:
        handler = need_handler(models.backend(route), operation, call.request.model)
        call.losses.rewind(0)
        demand.record.routed(route)
        return await handler(replace(call, request=operation.with_model(call.request, route.model), key=key))

    able = [route for route in plan.routes if handler_of(models.backend(route), operation) is not None]
    routes = able or plan.routes
    if not operation.limited:
        return await _unlimited(services, demand, routes, ask)
    dispatcher = services.dispatcher
    answer, hold = await Dispatch(dispatcher, demand, ask).run(ordered(dispatcher, plan, routes))
    usage = operation.usage(answer.result)
    if usage is not None:
        demand.record.used(usage)
    hold.over(whole=True)
    return answer


async def _unlimited(
    services: UpstreamServices,
    demand: Demand,
    routes: Sequence[Route],
    ask: Callable[[Route, int], Awaitable[OperationResult[Any]]],
) -> OperationResult[Any]:
    """Return the result of the first of `routes` that has one; no limits apply, and nothing is reserved."""
    for route in routes[:-1]:
        try:
            return await ask(route, _next_key(services, route))
        except FailureError as error:
            if not judge(error.failure, fallback_on=demand.plan.fallback_on).retry_other:
                raise
    return await ask(routes[-1], _next_key(services, routes[-1]))


def _next_key(services: UpstreamServices, route: Route) -> int:
    """Return the upstream's key to use; only upstreams have several."""
    return 0 if services.models.upstream(route) is None else services.dispatcher.ward.of(route).keys.earliest_index()


def _size(inputs: Iterable[Input]) -> int:
    """Return about how many tokens the inputs are."""
    return sum(map(_tokens, inputs))


def _tokens(one: Input) -> int:
    match one:
        case str():
            return text_tokens(one) + 1
        case tuple():
            return len(one)
        case _:
            return MEDIA_TOKENS


def _written(answer: OperationResult[Any], call: AnyCall, size: int) -> bytes:
    """Return the result as the client's form has it."""
    if answer.body is not None:
        return answer.body
    encode = encode_json if size < LARGE else encode_large
    return encode(call.form.encode_response(answer.result, call.request, call.losses))
