"""How many tokens a prompt is: by who would answer it, by the next that can be asked, else by estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.backend import Call
from xenoglot.backends.offload import offload
from xenoglot.codec.invalid_request import refusing
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.requests.url_params import informed
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.api.auxiliary import note_route, report_headers
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.routing.model_router import with_model
from xenoglot.gateway.stored.intake import Intake
from xenoglot.gateway.upstream.call import passed_on, routes_for
from xenoglot.gateway.upstream.preserve_reasoning import preserving
from xenoglot.gateway.upstream.services import UpstreamServices
from xenoglot.policy.failure_policy import judge
from xenoglot.policy.token_estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

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
        """Say how many tokens a prompt is.

        Raises:
            FailureError: nobody says, and it would be no better another time; or all are busy; or it goes on from
                something that is not kept.
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
        headers = passed_on(exchange.headers, dialect)
        call = Call(request=request, losses=losses, dialect=dialect.name, headers=headers)
        with refusing():
            counted = await self._counted(ctx, plan, call)
        more = [(COUNT, "estimate" if counted is None else "exact"), *report_headers(record, dialect)]
        if counted is None:
            counted = await offload(size, lambda: estimate(request))
        await send_json(ctx, encode(counted), more=more)

    async def _counted(self, ctx: RequestContext, plan: RoutePlan, call: Call) -> int | None:
        """Return the count of the first target that can be reached, in the order in which they would be asked.

        `None` is for one that has no tokenizer. The limits on requests for answers are not those on counts.
        """
        services, request = self.services, call.request
        failed: FailureError | None = None
        for route in routes_for(services, plan, request, ctx.exchange.headers).routes:
            call.losses.rewind(0)
            ctx.record.routed(route)
            key = services.dispatcher.ward.of(route).keys.earliest_index()
            asked = replace(call, request=replace(request, model=route.model), key=key)
            try:
                return await preserving(services, route, ctx.dialect.name, ctx.client.owner).count(asked)
            except FailureError as error:
                failed = error
                if not judge(error.failure, fallback_on=plan.fallback_on).retry_other:
                    break
        if failed is not None and failed.failure.kind != "upstream":
            raise failed
        return None
