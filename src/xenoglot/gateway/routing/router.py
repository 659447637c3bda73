"""Which backend answers to a model's name, under which name, with which defaults. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, structs

from xenoglot.codec.glob import matches
from xenoglot.gateway.config.extra_endpoints import ModelOverrides
from xenoglot.gateway.config.local_models import EMBEDDED, Emulate, backend_of
from xenoglot.gateway.config.provider_defaults import syntax_of
from xenoglot.gateway.config.settings import ModelSettings, OnLoss, Preserve, UpstreamSettings
from xenoglot.gateway.config.targets import Affinity, Caps, ModelTarget, StreamBuffer
from xenoglot.model.request import Sampling
from xenoglot.policy.capabilities import RequestCondition
from xenoglot.policy.failure_policy import Reason
from xenoglot.policy.target_order import Strategy
from xenoglot.text.registry import OFF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.request import Request

_NOBODY = UpstreamSettings(dialect="", base_url="")
"""What holds of a backend that is no upstream."""

ANY = ""
"""The name of a route that uses the requested name."""

Struct_ = TypeVar("Struct_", bound=Struct)

NOTHING = Sampling()
UNCAPPED = Caps()

REMEMBERED = 1024
"""How many names that fit patterns are remembered; clients may make up any number."""

LONGEST_NAME = 256
"""Characters; no model is called anything longer, and names go into logs."""


class Route(Struct, frozen=True, kw_only=True):
    """One target of a request: the backend, and its name for the model.

    `model` is the name it has there. `defaults` stand for what the request leaves open, `caps` bound what it asks.
    `substituted`: the client requested another model, and gets this one. `preserve`: what clients
    strip is kept for them, `text_syntax` how the answer's text is read (`facts` which models write otherwise),
    `emulate` what is done here for a backend that cannot. `weight`, `tier` and `when` decide when it is taken
    (`gateway.config.targets`).
    """

    backend: str
    model: str
    defaults: Sampling = NOTHING
    caps: Caps = UNCAPPED
    on_loss: OnLoss = "warn"
    preserve: Preserve | None = None
    text_syntax: str = OFF
    facts: tuple[ModelOverrides, ...] = ()
    emulate: Emulate = Emulate()
    substituted: bool = False
    weight: float = 1.0
    tier: int = 0
    when: RequestCondition = RequestCondition()
    named: bool = False
    """Whether the client's name went through, so that there may be any number of these."""

    @property
    def name(self) -> str:
        """What headers and hashes call it: the same in every gateway of one configuration."""
        return f"{self.backend}/{self.model}"

    def called(self, model: str) -> Route:
        """Return the way of a request for `model`."""
        if self.model != ANY:
            return self
        return structs.replace(
            self, model=model, named=True, text_syntax=syntax_of(self.facts, model, self.text_syntax)
        )


class RoutePlan(Struct, frozen=True, kw_only=True):
    """All ways that requests for a name can go, and how one is chosen; the name may be a pattern (`claude-*`).

    A route whose model is `ANY` uses the requested name.
    """

    name: str
    routes: tuple[Route, ...]
    strategy: Strategy = "weighted"
    affinity: Affinity = "session"
    fallback_on: tuple[Reason, ...] = ()
    hold_back: StreamBuffer = StreamBuffer()
    continues: bool = False
    patience: float = 60.0

    @property
    def route(self) -> Route:
        """The first of them, for operations that use only one."""
        return self.routes[0]

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that may answer."""
        return tuple(route.backend for route in self.routes)

    @property
    def open(self) -> bool:
        """Whether it passes the requested name through."""
        return any(route.model == ANY for route in self.routes)

    def named(self, model: str) -> RoutePlan:
        """Return the plan of a request for `model`."""
        if not self.open:
            return self
        return structs.replace(self, routes=tuple(route.called(model) for route in self.routes))


def single(
    name: str, backend: str, model: str = ANY, *, on_loss: OnLoss = "warn", substituted: bool = False
) -> RoutePlan:
    """Return the plan of a name or pattern to which one backend answers."""
    route = Route(backend=backend, model=model or _own(name), on_loss=on_loss, substituted=substituted)
    return RoutePlan(name=name, routes=(route,))


def _own(name: str) -> str:
    """Return what a name is called where it goes through as it is."""
    return ANY if "*" in name else name


class Router:
    """Looks names up: exact ones first, then the patterns in their order, the first that fits."""

    def __init__(self, plans: Sequence[RoutePlan]) -> None:
        self.patterns = tuple(plan for plan in plans if "*" in plan.name)
        self._exact: dict[str, RoutePlan] = {}
        self._fitted: dict[str, RoutePlan] = {}
        """The plans of names that fitted a pattern, as they were requested."""
        for plan in plans:
            if "*" not in plan.name:
                self._exact.setdefault(plan.name, plan)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are routed as such."""
        return tuple(self._exact)

    def plan(self, model: str) -> RoutePlan | None:
        """Return the ways of a request for `model`; `None` if no plan has it, or if that is no name."""
        plan = self._exact.get(model) or self._fitted.get(model)
        if plan is None and 0 < len(model) <= LONGEST_NAME and model.isprintable():
            found = next((plan for plan in self.patterns if matches(plan.name, model)), None)
            if found is not None:
                plan = self._remember(model, found.named(model))
        return plan

    def _remember(self, model: str, plan: RoutePlan) -> RoutePlan:
        if len(self._fitted) >= REMEMBERED:
            self._fitted.clear()
        self._fitted[model] = plan
        return plan

    def resolve(self, model: str) -> Route | None:
        """Return who answers to `model` first; `None` as above."""
        plan = self.plan(model)
        return None if plan is None else plan.route


def plans(config: Config, embedded_model: str | None) -> tuple[RoutePlan, ...]:
    """Return the plans that `config` means; `embedded_model` is the name of the usual embedded model, if it is served.

    Embedded models answer to their own names. A lone upstream without `[[models]]` answers to every other name; so
    does the embedded model where nothing else is configured, and then the answer reports that.
    """
    found = [_plan(config, model, embedded_model) for model in config.models]
    if embedded_model is not None:
        found.append(single(embedded_model, EMBEDDED, on_loss=config.on_loss))
    found += [single(name, backend_of(name), on_loss=config.on_loss) for name in config.embedded_models]
    if not config.models and len(config.upstreams) == 1:
        found.append(_plan(config, ModelSettings(name="*", upstream=next(iter(config.upstreams))), embedded_model))
    elif not config.models and embedded_model is not None:
        found.append(single("*", EMBEDDED, embedded_model, on_loss=config.on_loss, substituted=True))
    return tuple(found)


def _plan(config: Config, model: ModelSettings, embedded_model: str | None) -> RoutePlan:
    targets = model.targets or (ModelTarget(upstream=model.upstream, model=model.model),)
    return RoutePlan(
        name=model.name,
        routes=tuple(_route(config, model, target, embedded_model) for target in targets),
        strategy=model.strategy,
        affinity=model.affinity,
        fallback_on=model.fallback_on,
        hold_back=model.buffer,
        continues=model.midstream_failover,
        patience=model.retry_deadline_seconds,
    )


def _route(config: Config, model: ModelSettings, target: ModelTarget, embedded_model: str | None) -> Route:
    """Return the route to `target`: values it does not set come from `model`, then from its upstream."""
    backend, name = target.upstream or config.backends[0], target.model
    upstream = config.upstreams.get(backend, _NOBODY)
    if backend == EMBEDDED and name in config.embedded_models:
        backend = backend_of(name)
    elif backend == EMBEDDED:
        name = embedded_model  # whatever it is called
    return Route(
        backend=backend,
        model=name or _own(model.name),
        defaults=_completed(target.defaults, model.defaults, NOTHING),
        caps=_completed(target.caps, model.caps, UNCAPPED),
        on_loss=model.on_loss or config.on_loss,
        preserve=upstream.preserve_reasoning if model.preserve_reasoning is None else model.preserve_reasoning,
        text_syntax=model.text_syntax or syntax_of(upstream.model_overrides, name or "", upstream.text_syntax),
        facts=() if model.text_syntax else tuple(facts for facts in upstream.model_overrides if facts.text_syntax),
        emulate=upstream.emulate if model.emulate is None else model.emulate,
        weight=target.weight,
        tier=target.tier,
        when=target.when,
    )


def _completed(first: Struct_, then: Struct_, nothing: Struct_) -> Struct_:
    """Return `first` with values of `then` where it has none; where neither has any, `nothing` itself."""
    if first == then == nothing:
        return nothing
    told = {name: value for name, value in structs.asdict(then).items() if getattr(first, name) is None}
    return structs.replace(first, **told)


def apply_caps(request: Request, route: Route, losses: Losses) -> Request:
    """Return the request within the route's caps; the same one where that changes nothing."""
    if route.caps is UNCAPPED or route.caps == UNCAPPED:
        return request
    told = {
        name: most
        for name, most in structs.asdict(route.caps).items()
        if most is not None and (asked := getattr(request.sampling, name)) is not None and asked > most
    }
    for name, most in told.items():
        losses.approximated("$.sampling", name, f"{most} is the most here")
    return structs.replace(request, sampling=structs.replace(request.sampling, **told)) if told else request


def apply_defaults(request: Request, route: Route) -> Request:
    """Return the request with the route's defaults for unset fields; the same one where that changes nothing."""
    if route.defaults is NOTHING or route.defaults == NOTHING:
        return request
    told = {
        name: value
        for name in Sampling.__struct_fields__
        if (value := getattr(route.defaults, name)) is not None and getattr(request.sampling, name) is None
    }
    return structs.replace(request, sampling=structs.replace(request.sampling, **told)) if told else request
