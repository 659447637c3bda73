"""Lists the available models: those that are named, and those of the backends to which a pattern leads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.reader import expected
from xenoglot.errors import FailureError
from xenoglot.gateway.api.model_facts import ModelFacts
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.routing.model_router import ModelRouter, unknown_model
from xenoglot.gateway.routing.router import ANY
from xenoglot.model.catalog import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.backend import Backend
    from xenoglot.codec.dialect import ModelEndpoint
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.routing.router import Router

PATIENCE = 10.0
"""Seconds that a backend has to list its models; a slower one is left out."""


class ModelsEndpoint(Struct, frozen=True):
    """Lists the models that clients can request."""

    models: ModelRouter
    bodies: BodyReader
    facts: ModelFacts

    async def list_models(self, ctx: RequestContext) -> None:
        """Send all models that the client may request."""
        await send_json(ctx, ctx.dialect.encode_models(await self._available(ctx)))

    async def one_model(self, ctx: RequestContext) -> None:
        """Send one of them.

        Raises:
            FailureError: it is not here, or not for this client.
        """
        name = unquote(ctx.exchange.variables["model"])
        for model in await self._available(ctx):
            if model.id == name:
                await send_json(ctx, ctx.dialect.encode_model(model))
                return
        raise FailureError(unknown_model(name))

    async def inquire(self, inquiry: ModelEndpoint, ctx: RequestContext) -> None:
        """Answer what else a dialect's clients ask, from the list of models.

        Raises:
            FailureError: it is of a model that is not here.
            WireError: the body is no object.
        """
        body = await self.bodies.read(ctx.exchange)
        asked = await self.bodies.json(body) if body.strip() else {}
        if not isinstance(asked, dict):
            raise expected("$", "object", asked)
        said = asked | {name: unquote(value) for name, value in ctx.exchange.variables.items()}
        answer = inquiry.answer(said, await self._allowed(ctx))
        if answer is None:
            name = said.get("model")
            raise FailureError(unknown_model(name if isinstance(name, str) else ""))
        await send_json(ctx, answer)

    async def _available(self, ctx: RequestContext) -> Sequence[ModelInfo]:
        await self.bodies.read(ctx.exchange)  # nothing is in it; now the client's leaving is noticed
        return await self._allowed(ctx)

    async def _allowed(self, ctx: RequestContext) -> Sequence[ModelInfo]:
        """Return the models that the client may ask for."""
        models = await list_models(self.models.router, self.models.backends, self.facts)
        return [model for model in models if ctx.client.allows(model.id)]


async def list_models(
    router: Router, backends: Mapping[str, Backend], facts: ModelFacts | None = None
) -> tuple[ModelInfo, ...]:
    """Return the models, the named ones first, each with what its server lists and else what the `facts` have.

    Raises:
        FailureError: nothing is named, and no backend lists its models.
    """
    answers = await asyncio.gather(*(_ask(name, backends[name]) for name in _asked(router, backends)))
    found = {name: _named(router, name, answers) for name in router.names}
    for backend, models in answers:
        for model in models if not isinstance(models, FailureError) else ():
            plan = router.plan(model.id)
            if plan is not None and backend in plan.backends and not plan.route.substituted:
                found.setdefault(model.id, model)
    errors = [models for _, models in answers if isinstance(models, FailureError)]
    if errors and not found:
        raise errors[0]
    return tuple(found.values()) if facts is None else await facts.complete(found.values(), router, backends)


def _asked(router: Router, backends: Mapping[str, Backend]) -> list[str]:
    """Return the backends whose own names can be requested, each once."""
    leading = [route.backend for plan in router.patterns for route in plan.routes if route.model == ANY]
    named = [route.backend for name in router.names if (route := router.resolve(name)) and route.model == name]
    return [name for name in backends if name in (*leading, *named)]


async def _ask(name: str, backend: Backend) -> tuple[str, Sequence[ModelInfo] | FailureError]:
    try:
        async with asyncio.timeout(PATIENCE):
            return name, await backend.models()
    except TimeoutError:
        return name, ()
    except FailureError as error:
        return name, error


def _named(router: Router, name: str, answers: Sequence[tuple[str, Sequence[ModelInfo] | FailureError]]) -> ModelInfo:
    """Return its backend's data about the model that answers to `name`, under that name."""
    route = router.resolve(name)
    for backend, models in answers:
        for model in models if not isinstance(models, FailureError) else ():
            if route is not None and (backend, model.id) == (route.backend, route.model):
                return replace(model, id=name)
    return ModelInfo(id=name)
