"""Default model for requests that name none: the only model that the client is allowed to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.gateway.config.embedded import EMBEDDED, EMBEDDING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.gateway.auth.keys import Principal
    from xenoglot.gateway.routing.router import RoutePlan, Router
    from xenoglot.model.json import JSON


def with_model(body: JSON, field: str, router: Router, client: Principal, *, embeds: bool = False) -> JSON:
    """Return `body` with the name of the sole model under `field`, if the body has no name there.

    With `embeds` the request is for embeddings. Where several models could be meant, the body is returned as it is, and
    its decoder reports that the field is required.
    """
    if not isinstance(body, dict) or body.get(field) is not None:
        return body
    model = sole_model(router, client, embeds=embeds)
    return body if model is None else {**body, field: model}


def sole_model(router: Router, client: Principal, *, embeds: bool = False) -> str | None:
    """Return the name of the only model that `client` may ask for; `None` if there are several, or it is not known.

    Several names of one model count as one. The embedded embedding model is not counted among the models that write
    text. A request for embeddings means it where all other models are embedded, too: they were not trained for it.
    """
    is_listed = bool(client.models) and not any("*" in name for name in client.models)
    names = client.models if is_listed else [name for name in router.names if client.allows(name)]
    plans = {name: plan for name in names if (plan := router.plan(name)) is not None}
    patterns = () if is_listed else router.patterns
    makers = {name: plan for name, plan in plans.items() if plan.backends == (EMBEDDING,)}
    writers = {name: plan for name, plan in plans.items() if name not in makers}
    if not embeds:
        return _sole(writers, patterns)
    backends = [backend for plan in (*writers.values(), *patterns) for backend in plan.backends]
    if makers and all(backend.partition("/")[0] == EMBEDDED for backend in backends):
        return _sole(makers, ())
    return _sole(plans, patterns)


def _sole(plans: dict[str, RoutePlan], patterns: Iterable[RoutePlan]) -> str | None:
    """Return the first of the names, if all of them and the patterns lead to the same targets."""
    targets = {tuple((route.backend, route.model) for route in plan.routes) for plan in (*plans.values(), *patterns)}
    return next(iter(plans), None) if len(targets) == 1 else None
