"""Endpoints that answer in one piece: embeddings, rerank, tokenizers, token counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.backend import Call
from xenoglot.backends.offload import LARGE, offload
from xenoglot.backends.operation import AnyCall, OperationCall, OperationResult, handler_of, need_handler
from xenoglot.codec.invalid_request import refusing
from xenoglot.codec.json.json_io import encode_json, encode_large, unambiguous
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.requests.url_params import informed
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import send, send_json
from xenoglot.gateway.observability.request_log import COST, LOSSES
from xenoglot.gateway.routing.dispatch import Dispatch, ordered
from xenoglot.gateway.routing.model_router import with_model
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.stored.intake import Intake
from xenoglot.gateway.upstream.call import bound_credential, passed_on, route_costs, routes_for
from xenoglot.gateway.upstream.preserve_reasoning import preserving
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.policy.failure_policy import judge
from xenoglot.policy.token_estimate import MEDIA_TOKENS, estimate, text_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.routing.router import Route, RoutePlan
    from xenoglot.model.embedding import Input
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.limits import RateLimits
    from xenoglot.model.request import Request


def with_path_model(body: JSON, variables: Mapping[str, str]) -> JSON:
    """Return the body with the model that stands in the path, where one does."""
    if isinstance(body, dict) and "model" in variables:
        return body | {"model": unquote(variables["model"])}
    return body


def note_route(record: RequestLog, route: Route) -> Losses:
    """Note the target, and return the `Losses` for the translation to it."""
    record.routed(route)
    losses = Losses(strict=route.on_loss == "refuse")
    record.losses = () if route.on_loss == "ignore" else losses
    return losses


def report_headers(record: RequestLog, dialect: Dialect, limits: RateLimits | None = None) -> list[tuple[str, str]]:
    """Return the headers that report what was lost, and what the upstream allows."""
    headers = [] if limits is None else [*dialect.encode_limits(limits, time.time())]
    if said := record.tell_losses():
        headers.append((LOSSES, said))
    return headers


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
        self.services.check_ledger()
        body, value = await self._read(form, ctx)
        request = await offload(len(body), lambda: form.decode_request(value))
        record.asked(request.model, stream=False)
        record.operation = operation.name
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
            credential=bound_credential(self.services, plan, ctx.credential),
        )
        demand = Demand(plan, record, lambda: _size(operation.inputs(request)))
        with refusing():
            answer = await operate(self.services, demand, call)
        size = 0 if answer.body is not None else operation.size(answer.result, request)
        written = await offload(size, lambda: _written(answer, call, size))
        more = report_headers(record, dialect, answer.limits)  # with what is lost of the result, too
        prices = self.services.prices
        if prices is not None and (cost := prices.cost(record)) is not None:
            more.append((COST, str(cost)))
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
    kept = len(call.losses)

    async def ask(route: Route, key: int) -> OperationResult[Any]:
        handler = need_handler(models.backend(route), operation, call.request.model)
        call.losses.rewind(kept)
        demand.record.routed(route)
        asked = operation.with_model(call.request, route.model)
        return await handler(replace(call, request=asked, key=key, trace=demand.record.trace_headers()))

    able = [route for route in plan.routes if handler_of(models.backend(route), operation) is not None]
    routes = able or plan.routes
    if not operation.limited:
        return await _unlimited(services, demand, routes, ask)
    if services.has_budgets and services.budgets is not None:
        costs = route_costs(services, plan, demand.tokens(), lambda _route: 0)
        await services.budgets.reserve(demand.record, costs, routes=False)
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


COUNT = "x-xenoglot-count"
"""Response header of a token count: `exact`, by the model's own tokenizer, or `estimate`."""


class CountEndpoint(Struct, frozen=True):
    """Counts the tokens of prompts."""

    services: UpstreamServices
    bodies: BodyReader
    intake: Intake

    async def serve(
        self, decode: Callable[[JSON], Request], encode: Callable[[int], JSONObject], ctx: RequestContext
    ) -> None:
        """Send the number of tokens of a prompt.

        Raises:
            FailureError: no target can count, and a retry would not help; or all are busy; or the request continues
                an answer that is not kept.
            WireError: the request is not one of the dialect.
        """
        exchange, dialect, record, models = ctx.exchange, ctx.dialect, ctx.record, self.services.models
        data = await self.bodies.read(exchange)
        body, size = await self.intake.recall(await self.bodies.request(data), len(data), ctx)
        asked = informed(body, ctx.route, exchange.variables, dialect)
        asked = with_model(asked, dialect.model_field, models.router, ctx.client)
        request = await offload(size, lambda: bounded(decode(asked), asked))
        if not request.model and isinstance(asked, dict) and asked.get(dialect.model_field) is None:
            raise WireError(f"$.{dialect.model_field}", "required, expected str")
        record.asked(request.model, stream=False)
        plan = models.plan(request.model, dialect.default_tag, client=ctx.client)
        losses = note_route(record, plan.route)
        files = self.services.files
        inlined = None if files is None else await files.inlined(request, ctx.client.owner, dialect.name, losses, size)
        if inlined is not None:
            request, size = inlined.request, size + inlined.grown
        if self.services.interceptors is not None:
            request = await self.services.interceptors.before(record, dialect, request)
        headers = passed_on(exchange.headers, dialect)
        credential = bound_credential(self.services, plan, ctx.credential)
        call = Call(request=request, losses=losses, dialect=dialect.name, headers=headers, credential=credential)
        with refusing():
            counted = await self._counted(ctx, plan, call)
        more = [(COUNT, "estimate" if counted is None else "exact"), *report_headers(record, dialect)]
        if counted is None:
            counted = await offload(size, lambda: estimate(request))
        await send_json(ctx, encode(counted), more=more)

    async def _counted(self, ctx: RequestContext, plan: RoutePlan, call: Call) -> int | None:
        """Return the count of the first target that can be reached, in the order in which they would be tried.

        `None` is for one that has no tokenizer. The limits on requests for answers are not those on counts.
        """
        services, request = self.services, call.request
        failed: FailureError | None = None
        kept = len(call.losses)
        for route in routes_for(services, plan, request, ctx.exchange.headers).routes:
            call.losses.rewind(kept)
            ctx.record.routed(route)
            key = services.dispatcher.ward.of(route).keys.earliest_index()
            trace = ctx.record.trace_headers()
            asked = replace(call, request=replace(request, model=route.model), key=key, trace=trace)
            try:
                return await preserving(services, route, ctx.dialect.name, ctx.client.owner).count(asked)
            except FailureError as error:
                failed = error
                if not judge(error.failure, fallback_on=plan.fallback_on).retry_other:
                    break
        if failed is not None and failed.failure.kind != "upstream":
            raise failed
        return None
