"""Cache of resolved routes per (model, dialect, allowed models)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xenoglot.backends.remote.backend import Remote
from xenoglot.gateway.routing.router import NOTHING, UNCAPPED
from xenoglot.gateway.upstream.call import routes_for
from xenoglot.gateway.upstream.preserve_reasoning import preserves
from xenoglot.gateway.upstream.services import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.auth.keys import Principal
    from xenoglot.gateway.routing.router import Route, RoutePlan
    from xenoglot.gateway.upstream.services import UpstreamServices
    from xenoglot.model.request import Request

MOST = 1024
"""How many ways are kept; clients may make up any number of names."""


class CachedRoute(NamedTuple):
    """A route, and the server at its end.

    `untouched` is whether the bytes of a client may go there as they are; `preserves` whether what clients strip of its
    answers is kept.
    """

    route: Route
    remote: Remote
    untouched: bool
    preserves: bool


class CachedPlan(NamedTuple):
    """The plan of a name, and what lies ahead on each of its routes; `None` where a task has to do it.

    `alone` is whether there is nothing to be chosen: one route, and one key for it; `alike` whether any of the servers
    speaks the client's dialect.
    """

    plan: RoutePlan
    aheads: Sequence[CachedRoute | None]
    alone: bool
    alike: bool

    def first(self, services: UpstreamServices, request: Request, headers: Sequence[tuple[str, str]]) -> Selection:
        """Return the first target for a request with these `headers`."""
        if self.alone:
            return Selection(self.aheads[0], None, last=True)
        routes, group = routes_for(services, self.plan, request, headers)
        index = next(index for index, route in enumerate(self.plan.routes) if route is routes[0])
        return Selection(self.aheads[index], group, last=len(routes) == 1)


class Selection(NamedTuple):
    """A target, with the group that keeps requests on one of its keys; `last` if no other target follows."""

    ahead: CachedRoute | None
    group: str | None
    last: bool


class RouteCache:
    """The ways of one gateway's names."""

    __slots__ = ("_known", "_services")

    def __init__(self, services: UpstreamServices) -> None:
        self._services = services
        self._known: dict[tuple[str, str, tuple[str, ...]], CachedPlan] = {}
        """By the name, the dialect, and the names that the client may ask for."""

    def of(self, model: str, dialect: Dialect, client: Principal) -> CachedPlan:
        """Return the way of a `client` of `dialect` who asks for `model`.

        Raises:
            FailureError: no model has the name, or none for this client.
        """
        place = (model, dialect.name, client.models)
        return self._known.get(place) or self._found(place, dialect, client)

    def _found(self, place: tuple[str, str, tuple[str, ...]], dialect: Dialect, client: Principal) -> CachedPlan:
        services, model = self._services, place[0]
        plan = services.models.plan(model, dialect.default_tag, client=client)
        at_once = not plan.continues and plan.hold_back.seconds == 0 and dialect.answer_at_once is None
        aheads = tuple(self._ahead(route, model, dialect) if at_once else None for route in plan.routes)
        keys = len(services.dispatcher.ward.of(plan.route).busy)
        alone = len(plan.routes) == 1 and (keys <= 1 or plan.affinity == "none")
        upstreams = [services.models.upstream(route) for route in plan.routes]
        alike = any(upstream is not None and upstream.speaks(dialect.name) for upstream in upstreams)
        way = CachedPlan(plan, aheads, alone, alike)
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[place] = way
        return way

    def _ahead(self, route: Route, model: str, dialect: Dialect) -> CachedRoute | None:
        """Return what lies ahead on `route`: a server, to whose answers nothing is done here."""
        backend = self._services.models.backend(route)
        if type(backend) is not Remote or reading(backend, route) is not backend:
            return None
        kept = preserves(self._services, route, dialect.name)
        upstream = self._services.models.upstream(route)
        if kept and (upstream is None or upstream.speaks(dialect.name, route.model)):
            return None
        backend = backend.for_dialect(dialect.name, route.model)
        plain = route.model == model and route.defaults == NOTHING and route.caps == UNCAPPED
        untouched = plain and backend.accepts_unchanged(dialect, model)
        return CachedRoute(route, backend, untouched=untouched and not kept, preserves=kept)
