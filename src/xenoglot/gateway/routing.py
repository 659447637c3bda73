"""Which backend answers to a model's name, under which name, with which defaults. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from xenoglot.gateway.config import EMBEDDED, OnLoss
from xenoglot.model.request import Sampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config import Config
    from xenoglot.model.request import Request

LONGEST_NAME = 256
"""Characters; no model is called anything longer, and names go into logs."""


class Route(Struct, frozen=True, kw_only=True):
    """Who answers a request, and as what.

    `model` is the name it has there. `defaults` stand for what the request leaves open. `substituted` says that the
    client asked for another model, and gets this one. `preserve` says that what clients strip is kept for them.
    """

    backend: str
    model: str
    defaults: Sampling = Sampling()
    on_loss: OnLoss = "warn"
    preserve: bool = False
    substituted: bool = False


class Rule(Struct, frozen=True, kw_only=True):
    """What answers to a name or a pattern (`claude-*`); without `model` the name stays as it was asked for."""

    name: str
    backend: str
    model: str | None = None
    defaults: Sampling = Sampling()
    on_loss: OnLoss = "warn"
    preserve: bool = False
    substitutes: bool = False

    def route(self, model: str) -> Route:
        """Return the way of a request for `model`."""
        return Route(
            backend=self.backend,
            model=model if self.model is None else self.model,
            defaults=self.defaults,
            on_loss=self.on_loss,
            preserve=self.preserve,
            substituted=self.substitutes,
        )


class Router:
    """Looks names up: exact ones first, then the patterns in their order, the first that fits."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.patterns = tuple(rule for rule in rules if "*" in rule.name)
        self._exact: dict[str, Rule] = {}
        for rule in rules:
            if "*" not in rule.name:
                self._exact.setdefault(rule.name, rule)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are routed as such."""
        return tuple(self._exact)

    def resolve(self, model: str) -> Route | None:
        """Return who answers to `model`; `None` if nobody does, or if that is no name."""
        rule = self._exact.get(model)
        if rule is None and 0 < len(model) <= LONGEST_NAME and model.isprintable():
            rule = next((rule for rule in self.patterns if matches(rule.name, model)), None)
        return None if rule is None else rule.route(model)


def rules(config: Config, embedded_model: str | None) -> tuple[Rule, ...]:
    """Return the rules that `config` means; `embedded_model` is the name of the embedded model, where it is served.

    The embedded model answers to its own name. A lone upstream without `[[models]]` answers to every other name; so
    does the embedded model where nothing else is configured, and then it says so.
    """
    only = config.backends[0] if len(config.backends) == 1 else None
    found = [
        Rule(
            name=model.name,
            backend=model.upstream or only or "",
            model=_target(model.model, model.upstream or only, embedded_model),
            defaults=model.defaults,
            on_loss=model.on_loss or config.on_loss,
            preserve=_preserves(config, model.upstream or only, model.preserve),
        )
        for model in config.models
    ]
    if embedded_model is not None:
        found.append(Rule(name=embedded_model, backend=EMBEDDED, on_loss=config.on_loss))
    if not config.models and len(config.upstreams) == 1:
        name, upstream = next(iter(config.upstreams.items()))
        found.append(Rule(name="*", backend=name, on_loss=config.on_loss, preserve=upstream.preserve))
    elif not config.models and embedded_model is not None:
        every = Rule(name="*", backend=EMBEDDED, model=embedded_model, on_loss=config.on_loss, substitutes=True)
        found.append(every)
    return tuple(found)


def matches(pattern: str, name: str) -> bool:
    """Return whether `name` fits `pattern`, in which `*` is any number of characters. Linear in the name."""
    first, *middle, last = pattern.split("*")
    end = len(name) - len(last)
    at = len(first)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def apply_defaults(request: Request, route: Route) -> Request:
    """Return the request with the route's defaults where it says nothing; the same one where that changes nothing."""
    told = {
        name: value
        for name in Sampling.__struct_fields__
        if (value := getattr(route.defaults, name)) is not None and getattr(request.sampling, name) is None
    }
    return structs.replace(request, sampling=structs.replace(request.sampling, **told)) if told else request


def _preserves(config: Config, backend: str | None, told: bool | None) -> bool:  # noqa: FBT001  a setting
    """Return whether what clients strip is kept: as the model says, else as its upstream does."""
    if told is not None:
        return told
    upstream = config.upstreams.get(backend or "")
    return upstream is not None and upstream.preserve


def _target(model: str | None, backend: str | None, embedded_model: str | None) -> str | None:
    """Return the name at the backend: the embedded model has but one."""
    return embedded_model if backend == EMBEDDED else model
