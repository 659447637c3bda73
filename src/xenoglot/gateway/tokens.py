"""Endpoints for tokens: a prompt as the numbers of its tokens by the model's own tokenizer, and numbers as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from msgspec.structs import replace

from xenoglot.backends.tokens import Tokenizer
from xenoglot.codec.invalid_request import refusing
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.asked import noted, told
from xenoglot.gateway.bodies import json_in
from xenoglot.gateway.respond import send_json
from xenoglot.gateway.sole_model import sole_model, with_model
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.tokens import TokensForm
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record


async def tokenize(form: TokensForm, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    """Tell the tokens of a prompt.

    Raises:
        FailureError: nobody here knows them.
        WireError: the request is not one of the form.
    """
    data = await exchange.read_body(gateway.config.server.body_limit)
    value = with_model(await json_in(data, gateway), dialect.model_field, gateway, record.client)
    asked = form.decode_request(value)
    name = asked.request.model
    record.asked(name, stream=False)
    route = gateway.route(name, dialect.default_tag, client=record.client)
    losses = noted(record, route)
    tokenizer = _tokenizer(gateway.backend(route.backend), name)
    with refusing():
        found = await tokenizer.tokenize(replace(asked, request=replace(asked.request, model=route.model)), losses)
    await send_json(exchange, record, form.encode_response(found), more=told(record, dialect))


async def detokenize(form: TokensForm, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    """Tell the text of tokens.

    Raises:
        FailureError: nobody here knows it.
        WireError: the request is not one of the form.
    """
    data = await exchange.read_body(gateway.config.server.body_limit)
    value = with_model(await json_in(data, gateway), dialect.model_field, gateway, record.client)
    asked = form.decode_back(value)
    record.asked(asked.model, stream=False)
    route = gateway.route(asked.model, dialect.default_tag, client=record.client)
    noted(record, route)
    tokenizer = _tokenizer(gateway.backend(route.backend), asked.model)
    text = await tokenizer.detokenize(replace(asked, model=route.model))
    await send_json(exchange, record, form.encode_back(text))


async def tokenizer_info(
    form: TokensForm, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record
) -> None:
    """Tell the facts of the tokenizer of the model that the query names, or of the only one.

    Raises:
        FailureError: they are not known here.
        WireError: the query names no model, and several could be meant.
    """
    await exchange.read_body(gateway.config.server.body_limit)
    named = parse_qs(exchange.query).get("model")
    model = named[-1] if named else sole_model(gateway.router, record.client)
    if model is None:
        raise WireError("$.model", "required in the query: more than one model is served")
    record.asked(model, stream=False)
    route = gateway.route(model, dialect.default_tag, client=record.client)
    noted(record, route)
    info = await _tokenizer(gateway.backend(route.backend), model).tokenizer_info()
    await send_json(exchange, record, form.encode_info(info))


def _tokenizer(backend: Backend, model: str) -> Tokenizer:
    if isinstance(backend, Tokenizer):
        return backend
    message = f"the tokens of `{model}` are not known here: only those of the embedded models are"
    raise FailureError(Failure(kind="unsupported", message=message))
