"""Endpoints for embeddings: the request read in its client's form, routed by the model's name, the vectors written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.embedding import Embedder, EmbeddingCall, none_made
from xenoglot.codec.wire import decode_json, encode_json
from xenoglot.gateway.asked import named, noted, refusing, told
from xenoglot.gateway.respond import send

if TYPE_CHECKING:
    from xenoglot.backends.embedding import EmbeddingAnswer
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.embedding import EmbeddingForm
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record


async def embed(form: EmbeddingForm, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    """Answer one request for embeddings, posted to a path of `form`.

    Raises:
        FailureError: there is no answer.
        WireError: the request is not one of the form.
    """
    body = await exchange.read_body(gateway.config.server.body_limit)
    request = form.decode_request(named(decode_json(body), exchange.variables))
    record.asked(request.model, stream=False)
    route = gateway.embedding_route(request.model, dialect.default_tag)
    losses = noted(record, route)
    backend = gateway.backend(route.backend)
    if not isinstance(backend, Embedder):
        raise none_made(request.model)
    call = EmbeddingCall(
        request=replace(request, model=route.model),
        losses=losses,
        form=form,
        body=body,
        dialect=dialect.name,
        headers=tuple(header for header in exchange.headers if header[0] in dialect.forward),
    )
    with refusing():
        answer = await backend.embed(call)
    written = _written(answer, call)
    if answer.embeddings.usage is not None:
        record.used(answer.embeddings.usage)
    more = told(record, dialect, answer.limits)
    await send(exchange, record, 200, written, media_type="application/json", more=more)


def _written(answer: EmbeddingAnswer, call: EmbeddingCall) -> bytes:
    """Return the answer as the client's form has it."""
    if answer.body is not None:
        return answer.body
    return encode_json(call.form.encode_response(answer.embeddings, call.request, call.losses))
