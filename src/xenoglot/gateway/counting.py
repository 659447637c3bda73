"""How many tokens a prompt is: by who would answer it, by the next that can be asked, else by estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.backend import Call
from xenoglot.backends.offload import offload
from xenoglot.codec.addressing import informed
from xenoglot.codec.invalid_request import refusing
from xenoglot.codec.ranges import bounded
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway import state
from xenoglot.gateway.asked import noted, told
from xenoglot.gateway.asking import routes_for
from xenoglot.gateway.bodies import request_in
from xenoglot.gateway.preserve import preserving
from xenoglot.gateway.respond import send_json
from xenoglot.gateway.sole_model import with_model
from xenoglot.policy.estimate import estimate
from xenoglot.policy.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record
    from xenoglot.gateway.routing import Plan
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

COUNT = "x-xenoglot-count"
"""Response header of a token count: `exact`, by the model's own tokenizer, or `estimate`."""


async def count(  # noqa: PLR0913, PLR0917  two functions of the dialect, and what every handler gets
    decode: Callable[[JSON], Request],
    encode: Callable[[int], JSONObject],
    exchange: Exchange,
    dialect: Dialect,
    gateway: Gateway,
    record: Record,
) -> None:
    """Say how many tokens a prompt is.

    Raises:
        FailureError: nobody says, and it would be no better another time; or all are busy; or it goes on from something
            that is not kept.
        WireError: the request is not one of the dialect.
    """
    data, path = await exchange.read_body(gateway.config.server.body_limit), record.route or ""
    body, size = await state.recall(await request_in(data, gateway), len(data), dialect, gateway, record.client.owner)
    asked = informed(body, path, exchange.variables, dialect)
    asked = with_model(asked, dialect.model_field, gateway, record.client)
    request = await offload(size, lambda: bounded(decode(asked)))
    if not request.model and isinstance(asked, dict) and asked.get(dialect.model_field) is None:
        raise WireError(f"$.{dialect.model_field}", "required, expected str")
    record.asked(request.model, stream=False)
    plan = gateway.plan(request.model, dialect.default_tag, client=record.client)
    losses = noted(record, plan.route)
    with refusing():
        counted = await _counted(exchange, dialect, gateway, record, plan, request, losses)
    more = [(COUNT, "estimate" if counted is None else "exact"), *told(record, dialect)]
    if counted is None:
        counted = await offload(size, lambda: estimate(request))
    await send_json(exchange, record, encode(counted), more=more)


async def _counted(  # noqa: PLR0913, PLR0917  what every handler gets, and what is asked of whom
    exchange: Exchange,
    dialect: Dialect,
    gateway: Gateway,
    record: Record,
    plan: Plan,
    request: Request,
    losses: Losses,
) -> int | None:
    """Return the count of the first target that can be reached, in the order in which they would be asked.

    `None` is for one that has no tokenizer. The limits on requests for answers are not those on counts.
    """
    headers = tuple(header for header in exchange.headers if header[0] in dialect.forward)
    call = Call(request=request, losses=losses, dialect=dialect.name, headers=headers)
    failed: FailureError | None = None
    for route in routes_for(gateway, plan, request, exchange.headers).routes:
        losses.rewind(0)
        record.routed(route)
        key = gateway.dispatcher.ward.of(route).keys.soonest()
        asked = replace(call, request=replace(request, model=route.model), key=key)
        try:
            return await preserving(gateway, route, dialect.name, record.client.owner).count(asked)
        except FailureError as error:
            failed = error
            if not judge(error.failure, fallback_on=plan.fallback_on).elsewhere:
                break
    if failed is not None and failed.failure.kind != "upstream":
        raise failed
    return None
