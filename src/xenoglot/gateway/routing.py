"""Which backend answers to a model's name, under which name, with which defaults. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from xenoglot.codec.patterns import matches
from xenoglot.gateway.embedded import EMBEDDED, backend_of
from xenoglot.gateway.emulate import Emulate
from xenoglot.gateway.settings import Model, OnLoss, Upstream
from xenoglot.model.request import Sampling
from xenoglot.text.syntax import OFF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config import Config
    from xenoglot.model.request import Request

_NOBODY = Upstream(dialect="", base_url="")
"""What holds of a backend that is no upstream."""

LONGEST_NAME = 256
"""Characters; no model is called anything longer, and names go into logs."""


class Route(Struct, frozen=True, kw_only=True):
    """Who answers a request, and as what.

    `model` is the name it has there. `defaults` stand for what the request leaves open. `substituted` says that the
    client asked for another model, and gets this one. `preserve` says that what clients strip is kept for them,
    `text_syntax` how the answer's text is read, `emulate` what is done here for a backend that cannot.
    """

    backend: str
    model: str
    defaults: Sampling = Sampling()
    on_loss: OnLoss = "warn"
    preserve: bool = False
    text_syntax: str = OFF
    emulate: Emulate = Emulate()
    substituted: bool = False


class Rule(Struct, frozen=True, kw_only=True):
    """What answers to a name or a pattern (`claude-*`); without `model` the name stays as it was asked for."""

    name: str
    backend: str
    model: str | None = None
    defaults: Sampling = Sampling()
    on_loss: OnLoss = "warn"
    preserve: bool = False
    text_syntax: str = OFF
    emulate: Emulate = Emulate()
    substitutes: bool = False

    def route(self, model: str) -> Route:
        """Return the way of a request for `model`."""
        return Route(
            backend=self.backend,
            model=model if self.model is None else self.model,
            defaults=self.defaults,
            on_loss=self.on_loss,
            preserve=self.preserve,
            text_syntax=self.text_syntax,
            emulate=self.emulate,
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
    """Return the rules that `config` means; `embedded_model` is the name of the usual embedded model, if it is served.

    Embedded models answer to their own names. A lone upstream without `[[models]]` answers to every other name; so
    does the embedded model where nothing else is configured, and then it says so.
    """
    only = config.backends[0] if len(config.backends) == 1 else None
    found = [_rule(config, model, model.upstream or only or "", embedded_model) for model in config.models]
    if embedded_model is not None:
        found.append(Rule(name=embedded_model, backend=EMBEDDED, on_loss=config.on_loss))
    found += [Rule(name=name, backend=backend_of(name), on_loss=config.on_loss) for name in config.embedded_models]
    if not config.models and len(config.upstreams) == 1:
        found.append(_rule(config, Model(name="*"), next(iter(config.upstreams)), embedded_model))
    elif not config.models and embedded_model is not None:
        every = Rule(name="*", backend=EMBEDDED, model=embedded_model, on_loss=config.on_loss, substitutes=True)
        found.append(every)
    return tuple(found)


def _rule(config: Config, model: Model, backend: str, embedded_model: str | None) -> Rule:
    """Return the rule for `model`: what it does not say is as its upstream says."""
    upstream = config.upstreams.get(backend, _NOBODY)
    target = model.model
    if backend == EMBEDDED and target in config.embedded_models:
        backend = backend_of(target)
    elif backend == EMBEDDED:
        target = embedded_model  # whatever it is called
    return Rule(
        name=model.name,
        backend=backend,
        model=target,
        defaults=model.defaults,
        on_loss=model.on_loss or config.on_loss,
        preserve=upstream.preserve if model.preserve is None else model.preserve,
        text_syntax=upstream.text_syntax if model.text_syntax is None else model.text_syntax,
        emulate=upstream.emulate if model.emulate is None else model.emulate,
    )


def apply_defaults(request: Request, route: Route) -> Request:
    """Return the request with the route's defaults where it says nothing; the same one where that changes nothing."""
    told = {
        name: value
        for name in Sampling.__struct_fields__
        if (value := getattr(route.defaults, name)) is not None and getattr(request.sampling, name) is None
    }
    return structs.replace(request, sampling=structs.replace(request.sampling, **told)) if told else request
