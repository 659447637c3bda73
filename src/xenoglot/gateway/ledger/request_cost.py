"""Cost of requests: prices of the store, of the file, of `genai-prices`. An unknown price gives no cost.

Theory of operation. To find a model in the table takes about a millisecond, so what was found is kept: as rates where
the prices are linear, which they nearly always are; else the table is used for each request. Prices may depend on the
time of day, so they are looked up again after a quarter of an hour.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from xenoglot.codec.features.extra_usage import NO_EXTRA, ExtraUsage
from xenoglot.codec.glob import matches
from xenoglot.dialect_registry import canonical, get, names
from xenoglot.gateway.config.ledger import amount
from xenoglot.gateway.observability.request_log import AnswerPart, RequestCost
from xenoglot.model.response import Usage
from xenoglot.providers.costs import Prices
from xenoglot.providers.rates import OWN, Rates, micro_units, per_search, per_token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.config.ledger import PriceSettings
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.model.json import JSONObject
    from xenoglot.store.ledger.prices import StoredPrice

QUARTER: Final = 900
CURRENCY: Final = "USD"
"""The currency of a free request whose price is unknown."""
MOST_MODELS: Final = 1024
"""Models whose prices are kept."""
_COUNTED: Final = tuple(name for name in Usage.__struct_fields__ if name not in {"total", "estimated", "extra"})
"""Counts that can be added."""


class PriceList:
    """The prices of the upstreams of `config`. `now` gives Unix seconds."""

    def __init__(self, config: Config, now: Callable[[], float], prices: Prices | None = None) -> None:
        self._stored: list[tuple[StoredPrice, Rates]] = []
        self._own = [(row, _rates(row)) for row in config.prices]
        self._providers = {name: upstream.provider for name, upstream in config.upstreams.items()}
        self._table = prices or Prices()
        self._now = now
        self._found: dict[tuple[str, str], Rates | None] = {}
        self._last: tuple[Usage, tuple[str | None, ...], RequestCost | None] | None = None
        """The usage that was priced last, with what else its cost depends on."""
        self._until = 0.0
        """When prices are looked up again."""

    def load(self) -> None:
        """Load the table now, which takes some hundred milliseconds; it may be called in a thread."""
        self._table.load()

    def knows(self, upstream: str, model: str) -> bool:
        """Return whether the price of a model is known, by the upstream's name for it."""
        if self._rates_of(upstream, model) is not None:
            return True
        return self._listed(Usage(input_tokens=1, output_tokens=1), upstream, model) is not None

    def rates(self, upstream: str, model: str) -> Rates | None:
        """Return the prices of a model; `None` if they are unknown, or not linear. Takes about a millisecond once."""
        return self._rates_of(upstream, model)

    def context_window(self, upstream: str, model: str) -> int | None:
        """Return the context window of a model of a known provider, by the table of prices; `None` if it has none."""
        provider = self._providers.get(upstream)
        return None if provider is None else self._table.context_window(model, provider=provider)

    def use_stored(self, rows: Sequence[StoredPrice]) -> None:
        """Use these prices of the store from now on."""
        self._stored = [(row, _stored_rates(row)) for row in sorted(rows, key=lambda row: row.rank)]
        self._until = 0.0
        self._last = None

    def cost(self, record: RequestLog) -> RequestCost | None:
        """Return the cost of a request whose usage is known; `None` if it has none, or its price is unknown."""
        usage, upstream, model = record.usage, record.backend, record.target
        if usage is None or upstream is None or model is None or record.local:
            return None
        if record.parts:
            return self._sum(record, usage, upstream, model)
        place = (upstream, model, record.finish, record.failure, record.cache)
        last = self._last
        if last is not None and last[0] is usage and last[1] == place and self._now() < self._until:  # for the header
            return last[2]
        cost = self._cost(record, usage, upstream, model)
        self._last = (usage, place, cost)
        return cost

    def part(self, record: RequestLog, used: Usage) -> AnswerPart:
        """Return the call that is over, of a request that has `used` so much until now, by the price of its target."""
        upstream, usage = record.backend, _rest(used, record.parts)
        cost = None if upstream is None else self._cost(record, usage, upstream, record.target or "")
        return AnswerPart(upstream, usage, cost)

    def _sum(self, record: RequestLog, usage: Usage, upstream: str, model: str) -> RequestCost | None:
        """Return the cost of all calls of a request; `None` if the cost of one is unknown, or in another currency."""
        costs = [part.cost for part in record.parts]
        rest = _rest(usage, record.parts)
        if any(getattr(rest, name) for name in _COUNTED):
            costs.append(self._cost(record, rest, upstream, model))
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs) or len({cost.currency for cost in known}) != 1:
            return None
        return known[-1]._replace(amount=sum(cost.amount for cost in known))

    def _cost(self, record: RequestLog, usage: Usage, upstream: str, model: str) -> RequestCost | None:
        rates = self._rates_of(upstream, model)
        if record.cache == "hit":
            return RequestCost(0, CURRENCY if rates is None else rates.currency, "cache")
        if rates is None:
            return self._listed(usage, upstream, model)
        if (cost := rates.text_cost(usage)) is not None:
            # `RequestCost(...)` takes twice as long
            return tuple.__new__(RequestCost, (cost, rates.currency, rates.source))
        counts = counts_of(usage)
        if usage.output_tokens is None and record.finish is None and record.failure is None:
            counts["output"] = 0  # an operation without text, for example embeddings
        cost = rates.cost(counts)
        if cost is None or rates.source == OWN or not _has_parts(usage):
            return None if cost is None else RequestCost(cost, rates.currency, rates.source)
        return self._listed(usage, upstream, model)

    def estimate(self, upstream: str, model: str, given: int, made: int) -> RequestCost | None:
        """Return what so many tokens of input and output cost; `None` if their price is unknown."""
        usage = Usage(input_tokens=given, output_tokens=made)
        rates = self._rates_of(upstream, model)
        if rates is None:
            return self._listed(usage, upstream, model)
        cost = rates.cost(counts_of(usage))
        return None if cost is None else RequestCost(cost, rates.currency, rates.source)

    def _rates_of(self, upstream: str, model: str) -> Rates | None:
        now = self._now()
        if now >= self._until or len(self._found) >= MOST_MODELS:
            self._found.clear()
            begin = (row.valid_from for row, _ in self._stored if row.valid_from > now)
            self._until = min(((now // QUARTER + 1) * QUARTER, *begin))
        key = (upstream, model)
        rates = self._found.get(key, UNSET)
        if rates is UNSET:
            rates = self._found[key] = self._find(upstream, model, now)
        return rates

    def _find(self, upstream: str, model: str, now: float) -> Rates | None:
        for stored, rates in self._stored:
            if stored.valid_from <= now and stored.upstream in ("", upstream) and matches(stored.pattern, model):
                return rates
        for row, rates in self._own:
            if row.upstream in (None, upstream) and matches(row.model, model):
                return rates
        if (provider := self._providers.get(upstream)) is None:
            return None  # a server of the operator's own: what its models are called says nothing of their price
        return self._table.rates(model, provider=provider, at=datetime.fromtimestamp(now, UTC))

    def _listed(self, usage: Usage, upstream: str, model: str) -> RequestCost | None:
        """Return the cost by a price that is not linear, or with parts that rates do not know."""
        provider = self._providers.get(upstream)
        if provider is None:
            return None
        at = datetime.fromtimestamp(self._now(), UTC)
        cost = self._table.cost(usage, model, provider=provider, at=at)
        if cost is None:
            return None
        details = extra_of(usage)
        total = micro_units(cost.total)
        if details.extra_input or details.extra_output:
            more = type(usage)(input_tokens=details.extra_input or 0, output_tokens=details.extra_output or 0)
            extra = self._table.cost(more, model, provider=provider, at=at)
            if extra is None:
                return None
            total += micro_units(extra.total)
        return RequestCost(total, cost.currency, cost.source)


def _rest(usage: Usage, parts: Sequence[AnswerPart]) -> Usage:
    """Return what is left of `usage` without those parts of it."""
    counts = {name: getattr(usage, name) for name in _COUNTED}
    used = {name: sum(getattr(part.usage, name) or 0 for part in parts) for name in _COUNTED}
    left = {name: None if count is None else max(0, count - used[name]) for name, count in counts.items()}
    return replace(usage, total=None, **left)


def counts_of(usage: Usage) -> dict[str, int | None]:
    """Return the counts of usage by the names that they have in the ledger."""
    details = extra_of(usage)
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "audio_in": usage.input_audio,
        "audio_out": usage.output_audio,
        "searches": usage.web_searches,
        "extra_input": details.extra_input,
        "extra_output": details.extra_output,
    }


def extra_of(usage: Usage) -> ExtraUsage:
    """Return the counts of usage that only its dialect knows."""
    extra = usage.extra
    find = None if extra is None or not extra.fields else _finder(extra.dialect)
    return NO_EXTRA if find is None or extra is None else find(extra.fields)


@lru_cache(maxsize=64)
def _finder(label: str) -> Callable[[JSONObject], ExtraUsage] | None:
    """Return what finds the further counts in usage with this label; operations have labels that are no dialect."""
    name = canonical(label)
    return get(name).extra_usage if name in names() else None


def _has_parts(usage: Usage) -> bool:
    """Whether usage reports parts of the cached input that have prices of their own."""
    return bool(usage.cache_write_1h)


def _stored_rates(row: StoredPrice) -> Rates:
    return Rates(
        input=per_token(Decimal(row.input)),
        output=per_token(Decimal(row.output)),
        cache_read=per_token(amount(row.cache_read)),
        cache_write=per_token(amount(row.cache_write)),
        currency=row.currency,
    )


def _rates(row: PriceSettings) -> Rates:
    return Rates(
        input=per_token(amount(row.input)),
        output=per_token(amount(row.output)),
        cache_read=per_token(amount(row.cache_read)),
        cache_write=per_token(amount(row.cache_write)),
        searches=per_search(amount(row.searches)),
        currency=row.currency,
    )
