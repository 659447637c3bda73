"""A configuration as one backend, without a socket; and a gateway in front of one backend that is passed in."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer
from xenoglot.dialect_registry import get
from xenoglot.gateway.api.model_facts import ModelFacts
from xenoglot.gateway.api.models import list_models
from xenoglot.gateway.api.operations import operate
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.local_models import EMBEDDED
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.relay.envelope import ResponseEnvelope
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.upstream.call import UpstreamCall, passed_on
from xenoglot.gateway.upstream.services import reading

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from xenoglot.backends.backend import Answer, Backend, Call, EventAnswer, Piece
    from xenoglot.backends.operation import AnyCall, OperationHandler, OperationResult
    from xenoglot.codec.features.operation import AnyOperation
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.gateway.upstream.services import UpstreamServices
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event


def single_backend(backend: Backend) -> Callable[[Config], AbstractAsyncContextManager[Gateway]]:
    """Return what assembles a gateway of `backend` alone; it stands where the embedded model would."""

    @asynccontextmanager
    async def assemble(config: Config) -> AsyncGenerator[Gateway]:
        gateway = Gateway(config, {EMBEDDED: backend}, embedded_model=backend.name)
        try:
            yield gateway
        finally:
            await gateway.aclose()

    return assemble


ANY_MODEL = "any"
USUAL = "chat"
"""The default dialect of a call without one: its text is in no dialect."""


@asynccontextmanager
async def open_gateway_backend(
    config: Config, *, ready: bool = True, own: Backend | None = None
) -> AsyncGenerator[Backend]:
    """Give a backend that answers as the gateway of `config` does, and let go of all that it opened.

    A backend of the caller's `own` takes the place of the embedded model, which is then not loaded.

    Raises:
        ConfigurationError: one of its backends cannot be made.
        EngineError: the embedded model cannot be had.
    """
    async with build_gateway(config, ready=ready) if own is None else single_backend(own)(config) as gateway:
        yield GatewayBackend(gateway)


class GatewayBackend:
    """Answers a call as its gateway answers a request; `name` is the default model."""

    def __init__(self, gateway: Gateway) -> None:
        self.name = next(iter(gateway.router.names), ANY_MODEL)
        self._gateway = gateway

    async def answer(self, call: Call) -> Answer:
        """Start answering: the first of the model's targets that does.

        Raises:
            FailureError: none of them does, or there is no such model. `LossError` and `WireError` alike.
        """
        gateway, request = self._gateway, call.request
        dialect = get(call.dialect or USUAL)
        plan = self._plan(request.model, call.losses)
        record = gateway.observer.record("POST")
        record.asked(request.model, stream=request.stream)
        record.routed(plan.route)
        passed = passed_on(call.headers, dialect)
        asking = UpstreamCall(_services(gateway), plan, dialect, call.headers, passed, record, request, call.body)
        asking.losses = call.losses
        answer = await asking.answer()
        observe = ResponseEnvelope(asking).observe
        if isinstance(answer, ByteAnswer):
            return replace(answer, pieces=_pieces(answer, observe))
        return replace(answer, batches=_batches(answer, observe))

    async def count(self, call: Call) -> int | None:
        """Return the tokens of the prompt by the first target's count."""
        route = self._plan(call.request.model, call.losses).route
        asked = replace(call, request=replace(call.request, model=route.model), body=None)
        return await reading(self._gateway.models.backend(route), route).count(asked)

    def handler(self, operation: AnyOperation) -> OperationHandler:
        """Return what has a target of the model handle `operation`."""

        async def handle(call: AnyCall) -> OperationResult[Any]:
            gateway, model, dialect = self._gateway, call.request.model, get(call.dialect or USUAL)
            plan = (gateway.models.embedding_plan if operation.embeds else gateway.models.plan)(model)
            asked = replace(call, dialect=dialect.name, headers=passed_on(call.headers, dialect))
            return await operate(_services(gateway), Demand(plan, gateway.observer.record("POST")), asked)

        return handle

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models that can be requested."""
        gateway = self._gateway
        facts = ModelFacts(gateway.config.upstreams, gateway.prices)
        return await list_models(gateway.router, gateway.backends, facts)

    async def aclose(self) -> None:
        """Nothing is held: the gateway belongs to the code that assembled it."""

    def _plan(self, model: str, losses: Losses) -> RoutePlan:
        plan = self._gateway.models.plan(model or self.name)
        if plan.route.on_loss == "refuse":
            losses.strict = True
        return plan


def _services(gateway: Gateway) -> UpstreamServices:
    """Return the services without budgets: calls from within the process are not recorded."""
    return replace(gateway.services, budgets=None)


async def _batches(
    answer: EventAnswer, observe: Callable[[Sequence[Event]], None]
) -> AsyncGenerator[Sequence[Event], None]:
    async for batch in answer.batches:
        observe(batch)
        yield batch


async def _pieces(answer: ByteAnswer, observe: Callable[[Sequence[Event]], None]) -> AsyncGenerator[Piece, None]:
    async for piece in answer.pieces:
        observe(piece.events)
        yield piece
