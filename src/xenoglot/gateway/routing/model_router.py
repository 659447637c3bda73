"""Resolves model names to plans and backends, and the default model of requests that name none."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.redaction import LONGEST, for_log
from xenoglot.errors import FailureError
from xenoglot.gateway.auth.keys import EVERYBODY, Principal
from xenoglot.gateway.config.local_models import EMBEDDED, EMBEDDING
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.routing.router import Route, RoutePlan, Router
    from xenoglot.model.json import JSON


MOST_COMPARED = 1000
"""Names that an unknown one is compared with, at most."""


class ModelRouter:
    """The plans of all model names, and the backends of their routes, by the names in the configuration."""

    def __init__(
        self, router: Router, backends: Mapping[str, Backend], upstreams: Mapping[str, UpstreamSettings]
    ) -> None:
        self.router = router
        self.backends = backends
        self.upstreams = upstreams

    def plan(self, model: str, tag: str = "", *, client: Principal = EVERYBODY) -> RoutePlan:
        """Return the routes of `model`; with and without `tag` after it the name means the same to the client.

        Raises:
            FailureError: none exists, or none for this `client`, which sees no difference.
        """
        plan = self.router.plan(model)
        bare = model.removesuffix(tag)
        if not client.allows(model) and not client.allows(bare):
            raise FailureError(self._unknown(model, client))
        if bare != model and model not in self.router.names:
            untagged = self.router.plan(bare)
            if untagged is not None and (bare in self.router.names or not self._knows(tag, untagged.route)):
                plan = untagged
        if plan is None:
            raise FailureError(self._unknown(model, client))
        return plan

    def route(self, model: str, tag: str = "", *, client: Principal = EVERYBODY) -> Route:
        """Return who answers to `model` first.

        Raises:
            FailureError: as above.
        """
        return self.plan(model, tag, client=client).route

    def embedding_plan(self, model: str, tag: str = "", *, client: Principal = EVERYBODY) -> RoutePlan:
        """Return who may make embeddings for `model`; where any name will do, the model whose trade that is.

        Raises:
            FailureError: no model has the name.
        """
        plan = self.plan(model, tag, client=client)
        if not plan.route.substituted or EMBEDDING not in self.backends:
            return plan
        route = replace(plan.route, backend=EMBEDDING, model=self.backends[EMBEDDING].name)
        return replace(plan, routes=(route,))

    def backend(self, route: Route) -> Backend:
        """Return the backend of a route."""
        return self.backends[route.backend]

    def upstream(self, route: Route) -> UpstreamSettings | None:
        """Return the settings of the upstream of a route; `None` if its backend is none."""
        return self.upstreams.get(route.backend)

    def _unknown(self, model: str, client: Principal) -> Failure:
        """Return the failure of an unknown model; it suggests the nearest name that the client may use."""
        names = self.router.names
        small = len(model) <= LONGEST and len(names) <= MOST_COMPARED
        near = get_close_matches(model, filter(client.allows, names), n=1) if small else []
        return unknown_model(model, near[0] if near else None)

    def _knows(self, tag: str, route: Route) -> bool:
        upstream = self.upstream(route)
        return upstream is not None and dialects.get(upstream.dialect).default_tag == tag


def unknown_model(model: str, near: str | None = None) -> Failure:
    """Return the failure of a request for a model that is not here; `near` is a name that may be meant."""
    advice = "GET /v1/models says which do" if near is None else f"did you mean `{near}`?"
    message = f"the model `{for_log(model)}` does not exist here; {advice}"
    return Failure(kind="not_found", message=message, code="model_not_found", param="$.model")


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
