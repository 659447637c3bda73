"""Endpoints for embeddings: the request read in its client's form, routed by the model's name, the vectors written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.embedding import Embedder, EmbeddingCall, none_made
from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.invalid_request import refusing
from xenoglot.codec.json.duplicate_keys import unambiguous
from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.gateway.api.auxiliary import note_route, report_headers, with_path_model
from xenoglot.gateway.endpoint.request_body import BodyReader
from xenoglot.gateway.endpoint.responses import send
from xenoglot.gateway.routing.default_model import with_model
from xenoglot.gateway.routing.dispatch import Dispatch, ordered
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.upstream.call import passed_on
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.policy.prompt_estimate import MEDIA_TOKENS
from xenoglot.policy.token_estimate import text_tokens

if TYPE_CHECKING:
    from xenoglot.backends.embedding import EmbeddingAnswer
    from xenoglot.codec.features.embedding import EmbeddingForm
    from xenoglot.gateway.endpoint.context import RequestContext
    from xenoglot.gateway.routing.reservation import Reservation
    from xenoglot.gateway.routing.router import Route
    from xenoglot.model.embedding import EmbeddingRequest, Input

NUMBER_BYTES = 8
"""Bytes that a number of a vector stands for, where there is no body to measure."""


class EmbeddingEndpoint(Struct, frozen=True):
    """Has models make embeddings."""

    services: UpstreamServices
    bodies: BodyReader

    async def serve(self, form: EmbeddingForm, ctx: RequestContext) -> None:
        """Answer one request for embeddings, posted to a path of `form`.

        Raises:
            FailureError: there is no answer.
            WireError: the request is not one of the form.
        """
        exchange, dialect, record, models = ctx.exchange, ctx.dialect, ctx.record, self.services.models
        body = await self.bodies.read(exchange)
        said = await self.bodies.json(body)
        if form.names_model:
            value = with_model(said, dialect.model_field, models.router, ctx.client, embeds=True)
            body = body if value is said else encode_large(value)
        else:
            value = with_path_model(said, exchange.variables)
        request = await offload(len(body), lambda: form.decode_request(value))
        record.asked(request.model, stream=False)
        plan = models.embedding_plan(request.model, dialect.default_tag, client=ctx.client)
        losses = note_route(record, plan.route)
        call = EmbeddingCall(
            request=request,
            losses=losses,
            form=form,
            body=await offload(len(body), lambda: unambiguous(body, value)),
            dialect=dialect.name,
            headers=passed_on(exchange.headers, dialect),
            bytes_pass=True,
        )
        demand = Demand(plan, record, lambda: _size(request))
        with refusing():
            answer, hold = await embed(self.services, demand, call)
        if answer.embeddings.usage is not None:
            record.used(answer.embeddings.usage)
        hold.over(whole=True)
        more = report_headers(record, dialect, answer.limits)
        size = 0 if answer.body is not None else NUMBER_BYTES * sum(map(len, answer.embeddings.vectors))
        written = await offload(size, lambda: _written(answer, call, size))
        await send(ctx, 200, written, media_type="application/json", more=more)


async def embed(services: UpstreamServices, demand: Demand, call: EmbeddingCall) -> tuple[EmbeddingAnswer, Reservation]:
    """Return the embeddings of the first target that makes them, and what is to be given back.

    Raises:
        FailureError: there are none, or nobody there makes any.
    """
    models, plan = services.models, demand.plan

    async def ask(route: Route, key: int) -> EmbeddingAnswer:
        backend = models.backend(route)
        if not isinstance(backend, Embedder):
            raise none_made(call.request.model)
        call.losses.rewind(0)
        return await backend.embed(replace(call, request=replace(call.request, model=route.model), key=key))

    able = [route for route in plan.routes if isinstance(models.backend(route), Embedder)]
    return await Dispatch(services.dispatcher, demand, ask).run(ordered(services.dispatcher, plan, able or plan.routes))


def _size(request: EmbeddingRequest) -> int:
    """Return about how many tokens the inputs are."""
    return sum(_tokens(one) for one in request.inputs)


def _tokens(one: Input) -> int:
    match one:
        case str():
            return text_tokens(one) + 1
        case tuple():
            return len(one)
        case _:
            return MEDIA_TOKENS


def _written(answer: EmbeddingAnswer, call: EmbeddingCall, size: int) -> bytes:
    """Return the answer as the client's form has it."""
    if answer.body is not None:
        return answer.body
    encode = encode_json if size < LARGE else encode_large
    return encode(call.form.encode_response(answer.embeddings, call.request, call.losses))
