"""Endpoints for tokens: a prompt as the numbers of its tokens by the model's own tokenizer, and numbers as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.tokens import Tokenizer
from xenoglot.codec.invalid_request import refusing
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.api.auxiliary import note_route, report_headers
from xenoglot.gateway.endpoint.request_body import BodyReader
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.routing.default_model import sole_model, with_model
from xenoglot.gateway.routing.model_router import ModelRouter
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.codec.features.tokens import TokensForm
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.endpoint.context import RequestContext
    from xenoglot.gateway.routing.router import Route
    from xenoglot.model.json import JSON


class TokensEndpoint(Struct, frozen=True):
    """Has the tokenizers of models work."""

    models: ModelRouter
    bodies: BodyReader

    async def tokenize(self, form: TokensForm, ctx: RequestContext) -> None:
        """Tell the tokens of a prompt.

        Raises:
            FailureError: nobody here knows them.
            WireError: the request is not one of the form.
        """
        asked = form.decode_request(await self._body(ctx))
        name = asked.request.model
        route, losses = self._routed(name, ctx)
        tokenizer = _tokenizer(self.models.backend(route), name)
        with refusing():
            found = await tokenizer.tokenize(replace(asked, request=replace(asked.request, model=route.model)), losses)
        await send_json(ctx, form.encode_response(found), more=report_headers(ctx.record, ctx.dialect))

    async def detokenize(self, form: TokensForm, ctx: RequestContext) -> None:
        """Tell the text of tokens.

        Raises:
            FailureError: nobody here knows it.
            WireError: the request is not one of the form.
        """
        asked = form.decode_back(await self._body(ctx))
        route, _ = self._routed(asked.model, ctx)
        tokenizer = _tokenizer(self.models.backend(route), asked.model)
        text = await tokenizer.detokenize(replace(asked, model=route.model))
        await send_json(ctx, form.encode_back(text))

    async def info(self, form: TokensForm, ctx: RequestContext) -> None:
        """Tell the facts of the tokenizer of the model that the query names, or of the only one.

        Raises:
            FailureError: they are not known here.
            WireError: the query names no model, and several could be meant.
        """
        await self.bodies.read(ctx.exchange)
        named = parse_qs(ctx.exchange.query).get("model")
        model = named[-1] if named else sole_model(self.models.router, ctx.client)
        if model is None:
            raise WireError("$.model", "required in the query: more than one model is served")
        route, _ = self._routed(model, ctx)
        info = await _tokenizer(self.models.backend(route), model).tokenizer_info()
        await send_json(ctx, form.encode_info(info))

    async def _body(self, ctx: RequestContext) -> JSON:
        value = await self.bodies.json(await self.bodies.read(ctx.exchange))
        return with_model(value, ctx.dialect.model_field, self.models.router, ctx.client)

    def _routed(self, model: str, ctx: RequestContext) -> tuple[Route, Losses]:
        """Return the route of a model, which is noted, and where to record what is lost on the way there."""
        ctx.record.asked(model, stream=False)
        route = self.models.route(model, ctx.dialect.default_tag, client=ctx.client)
        return route, note_route(ctx.record, route)


def _tokenizer(backend: Backend, model: str) -> Tokenizer:
    if isinstance(backend, Tokenizer):
        return backend
    message = f"the tokens of `{model}` are not known here: only those of the embedded models are"
    raise FailureError(Failure(kind="unsupported", message=message))
