"""Facts about models that their servers do not list: from the rows of providers, the configuration and the prices."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.backends.backend import LimitedBackend
from xenoglot.codec.glob import matches
from xenoglot.gateway.config.provider_defaults import context_of, targets_of
from xenoglot.model.catalog import TokenPrice
from xenoglot.providers.rates import SCALE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.ledger.request_cost import PriceList
    from xenoglot.gateway.routing.router import Route, Router
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.policy.capabilities import Need
    from xenoglot.providers.rates import Rates

_PER_DOLLAR: Final = SCALE * 1_000_000
"""Units of `Rates` in a dollar."""
_DOLLARS: Final = "USD"


class ModelFacts:
    """Facts about models that the lists of their servers lack. Without `prices` none are added."""

    def __init__(self, upstreams: Mapping[str, UpstreamSettings], prices: PriceList | None = None) -> None:
        self._upstreams = upstreams
        self._prices = prices

    async def complete(
        self, models: Iterable[ModelInfo], router: Router, backends: Mapping[str, Backend]
    ) -> tuple[ModelInfo, ...]:
        """Return the models, each with the facts that its server did not list; what is unknown stays so."""
        found: list[ModelInfo] = []
        for model in models:
            route = router.resolve(model.id)
            if route is None:
                found.append(model)
                continue
            able = _able(model, route, backends.get(route.backend))
            found.append(self._priced(self._known(able, route), route))
            if self._prices is not None:
                await asyncio.sleep(0)  # a price takes a millisecond to find, and a list may have hundreds
        return tuple(found)

    def _known(self, model: ModelInfo, route: Route) -> ModelInfo:
        upstream = self._upstreams.get(route.backend)
        if upstream is None:
            return model
        window, limit, reasoning = model.max_input_tokens, model.max_output_tokens, model.reasoning
        if window is None:
            window = context_of(upstream.model_overrides, route.model)
        if window is None and self._prices is not None:
            window = self._prices.context_window(route.backend, route.model)
        if limit is None:
            limit = targets_of(upstream).of(route.model).max_tokens_limit
        if reasoning is None:
            reasoning = _reasons(upstream, route.model)
        return replace(model, max_input_tokens=window, max_output_tokens=limit, reasoning=reasoning)

    def _priced(self, model: ModelInfo, route: Route) -> ModelInfo:
        if self._prices is None or model.price is not None:
            return model
        rates = self._prices.rates(route.backend, route.model)
        return model if rates is None or rates.currency != _DOLLARS else replace(model, price=_price(rates))


def _able(model: ModelInfo, route: Route, backend: Backend | None) -> ModelInfo:
    """Return the model with what it is known not to take, by itself or with what the gateway does for it."""
    missing: frozenset[Need] = frozenset()
    if isinstance(backend, LimitedBackend):
        missing = backend.missing_capabilities(route.model)
    if route.emulate.tools:
        model = replace(model, tools=True)
    elif "tools" in missing and model.tools is None:
        model = replace(model, tools=False)
    if "images" in missing and model.input_modalities is None:
        model = replace(model, input_modalities=("text",))
    return model


def _reasons(upstream: UpstreamSettings, model: str) -> bool | None:
    """Return true if the facts about this model, and not those about its server, have efforts or a budget."""
    for facts in upstream.model_overrides:
        if any(matches(name, model) for name in facts.names):
            own = facts.target.efforts != upstream.target.efforts or facts.target.thinking != upstream.target.thinking
            return True if own and facts.target.thinking != "none" else None
    return None


def _price(rates: Rates) -> TokenPrice:
    return TokenPrice(
        input=_dollars(rates.input),
        output=_dollars(rates.output),
        cache_read=_dollars(rates.cache_read),
        cache_write=_dollars(rates.cache_write),
    )


def _dollars(rate: int | None) -> str | None:
    return None if rate is None else format((Decimal(rate) / _PER_DOLLAR).normalize(), "f")
