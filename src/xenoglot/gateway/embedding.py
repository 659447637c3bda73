"""Endpoints for embeddings: the request read in its client's form, routed by the model's name, the vectors written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.embedding import Embedder, EmbeddingCall, none_made
from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.duplicates import unambiguous
from xenoglot.codec.invalid_request import refusing
from xenoglot.codec.wire import encode_json, encode_large
from xenoglot.gateway.asked import named, noted, told
from xenoglot.gateway.bodies import json_in
from xenoglot.gateway.dispatch import Dispatch, ordered
from xenoglot.gateway.hold import Demand
from xenoglot.gateway.respond import send
from xenoglot.gateway.sole_model import with_model
from xenoglot.policy.estimate import MEDIA_TOKENS
from xenoglot.policy.token_estimate import text_tokens

if TYPE_CHECKING:
    from xenoglot.backends.embedding import EmbeddingAnswer
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.embedding import EmbeddingForm
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record
    from xenoglot.gateway.routing import Route
    from xenoglot.model.embedding import EmbeddingRequest, Input

NUMBER_BYTES = 8
"""Bytes that a number of a vector stands for, where there is no body to measure."""


async def embed(form: EmbeddingForm, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    """Answer one request for embeddings, posted to a path of `form`.

    Raises:
        FailureError: there is no answer.
        WireError: the request is not one of the form.
    """
    body = await exchange.read_body(gateway.config.server.body_limit)
    said = await json_in(body, gateway)
    if form.names_model:
        value = with_model(said, dialect.model_field, gateway, record.client, embeds=True)
        body = body if value is said else encode_large(value)
    else:
        value = named(said, exchange.variables)
    request = await offload(len(body), lambda: form.decode_request(value))
    record.asked(request.model, stream=False)
    plan = gateway.embedding_plan(request.model, dialect.default_tag, client=record.client)
    losses = noted(record, plan.route)
    call = EmbeddingCall(
        request=request,
        losses=losses,
        form=form,
        body=await offload(len(body), lambda: unambiguous(body, value)),
        dialect=dialect.name,
        headers=tuple(header for header in exchange.headers if header[0] in dialect.forward),
        bytes_pass=True,
    )

    async def ask(route: Route, key: int) -> EmbeddingAnswer:
        backend = gateway.backend(route.backend)
        if not isinstance(backend, Embedder):
            raise none_made(request.model)
        losses.rewind(0)
        return await backend.embed(replace(call, request=replace(request, model=route.model), key=key))

    dispatcher = gateway.dispatcher
    dispatch = Dispatch(dispatcher, Demand(plan, record, lambda: _size(request)), ask)
    able = [route for route in plan.routes if isinstance(gateway.backend(route.backend), Embedder)]
    with refusing():
        answer, hold = await dispatch.run(ordered(dispatcher, plan, able or plan.routes))
    if answer.embeddings.usage is not None:
        record.used(answer.embeddings.usage)
    hold.over(whole=True)
    more = told(record, dialect, answer.limits)
    size = 0 if answer.body is not None else NUMBER_BYTES * sum(map(len, answer.embeddings.vectors))
    written = await offload(size, lambda: _written(answer, call, size))
    await send(exchange, record, 200, written, media_type="application/json", more=more)


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
