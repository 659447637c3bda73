"""Cost of answers: token counts times prices, from the table of `genai-prices` (extra `prices`) or from own prices.

The arithmetic is decimal, so that sums are exact; results are floats, for budgets, tables and JSON. The table is in
the installed package: nothing is downloaded. An unknown cost is `None`, which is not zero.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec import Struct

from xenoglot.codec.glob import matches
from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.model.short_repr import short_repr
from xenoglot.providers.rates import Rates, per_search, per_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from genai_prices.types import ModelPrice, TieredPrices

    from xenoglot.model.json import JSON
    from xenoglot.model.response import Usage

Amount: TypeAlias = int | float | str | Decimal

_PER: Final = 1_000_000
_PARTS: Final = ("input", "output", "cache_read", "cache_write", "other")
_LINEAR: Final = frozenset(
    {
        *(f"{name}_mtok" for name in ("input", "output", "cache_read", "cache_write", "input_audio", "output_audio")),
        "cache_write_1h_mtok",
        "input_image_mtok",
        "storage_searches_kcount",
        "web_searches_kcount",
    }
)
"""Prices whose sum depends on nothing but each count, where images and one-hour caches are not counted apart."""


class Cost(Struct, frozen=True, kw_only=True):
    """Cost of an answer; the parts sum to `total`. Costs of one currency can be added.

    Args:
        total: The sum.
        input: Prompt that was not cached.
        output: Answer, with its reasoning.
        cache_read: Prompt that was read from a cache.
        cache_write: Prompt that was written to a cache.
        other: Everything that is not counted in tokens, like searches.
        currency: The currency of all amounts. Default: `"USD"`.
        source: The origin of the prices.
        estimated: Whether token counts were estimated, or the cached part of the prompt was not reported.
            Default: `False`.

    Example:
        >>> import xenoglot
        >>> (xenoglot.Cost(total=0.5, input=0.5) + xenoglot.Cost(total=0.25, output=0.25)).total
        0.75
    """

    total: float
    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    other: float = 0.0
    currency: str = "USD"
    source: str = ""
    estimated: bool = False

    __repr__ = short_repr

    def __add__(self, other: Cost) -> Cost:
        """Return the sum. Raises `ValueError` for different currencies."""
        if self.currency != other.currency:
            raise ValueError(f"costs in {self.currency} and in {other.currency} have no sum")
        sums = {part: _exact(getattr(self, part)) + _exact(getattr(other, part)) for part in ("total", *_PARTS)}
        sources = dict.fromkeys(filter(None, (*self.source.split("; "), *other.source.split("; "))))
        return Cost(
            **{part: float(value) for part, value in sums.items()},
            currency=self.currency,
            source="; ".join(sources),
            estimated=self.estimated or other.estimated,
        )


def sum_costs(costs: Iterable[Cost | None]) -> Cost | None:
    """Return the sum of costs.

    Args:
        costs: Costs, like `reply.cost` of several replies.

    Returns:
        The sum; `None` if a cost is unknown, if there are none, or if the currencies differ.

    Example:
        >>> import xenoglot
        >>> xenoglot.sum_costs([xenoglot.Cost(total=0.5), xenoglot.Cost(total=0.25)]).total
        0.75
        >>> xenoglot.sum_costs([xenoglot.Cost(total=0.5), None]) is None
        True
    """
    total: Cost | None = None
    for cost in costs:
        if cost is None or (total is not None and total.currency != cost.currency):
            return None
        total = cost if total is None else total + cost
    return total


class Price(Struct, frozen=True, kw_only=True):
    """Prices of one million tokens of a model.

    Args:
        input: Price of the prompt.
        output: Price of the answer.
        cache_read: Price of prompt that is read from a cache. `None` is `input`.
        cache_write: Price of prompt that is written to a cache. `None` is `input`.
        currency: The currency. Default: `"USD"`.

    Raises:
        ConfigurationError: A price is negative or not a number.

    Example:
        >>> import xenoglot
        >>> price = xenoglot.Price(input=0.5, output="1.50", cache_read=0.05)
    """

    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    currency: str = "USD"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Raise `ConfigurationError` for an invalid price."""
        for field in ("input", "output", "cache_read", "cache_write"):
            _amount(getattr(self, field), field)


class Prices:
    """Prices of models: your own, then those of the packaged table.

    Args:
        own: Prices by model or `provider/model`, with `*` as a wildcard; the first match applies.
        packaged: Whether to use the packaged table (extra `prices`). `None` uses it if it is installed.

    Raises:
        ConfigurationError: `packaged` is true, and the table is not installed.

    Example:
        >>> import xenoglot
        >>> prices = xenoglot.Prices({"qwen*": xenoglot.Price(input=1, output=2)}, packaged=False)
        >>> prices.cost(xenoglot.Usage(input_tokens=1_000_000, output_tokens=500_000), "qwen3-32b").total
        2.0
    """

    def __init__(self, own: Mapping[str, Price] | None = None, *, packaged: bool | None = None) -> None:
        """Raise `ConfigurationError` if the table is required and not installed."""
        self._overrides = dict(own or {})
        self._packaged = packaged is not False
        if packaged and not _installed():
            raise ConfigurationError(missing_extra("genai_prices"))

    def cost(
        self,
        usage: Usage | None,
        model: str | None,
        *,
        provider: str | None = None,
        at: datetime | None = None,
        service_tier: str | None = None,
    ) -> Cost | None:
        """Return the cost of `usage` of `model`; `None` without a price or without token counts.

        `provider` is a name of the catalogue; without it the model's name alone decides, as for a server's URL. A
        provider that the table does not list, like a server of your own, has no prices. Prices may depend on the time
        of day: `at` is the time of the request, by default now.
        """
        if usage is None or model is None:
            return None
        if (price := self._override(model, provider)) is not None:
            return _override_cost(usage, price)
        if not self._packaged or not _installed():
            return None
        return _listed_cost(usage, model, _Asked(provider, at, service_tier))

    def rates(self, model: str, *, provider: str | None = None, at: datetime) -> Rates | None:
        """Return the prices of the table as rates; `None` if there are none, or some that rates do not have."""
        if not self._packaged or not _installed():
            return None
        return _listed_rates(model, provider, at)

    def context_window(self, model: str, *, provider: str | None = None) -> int | None:
        """Return the most tokens of prompt and answer, by the table of prices; `None` if it does not list them."""
        if not self._packaged or not _installed():
            return None
        return _listed_window(model, provider)

    def load(self) -> None:
        """Load the table now (some hundred milliseconds) instead of at the first lookup."""
        if self._packaged and _installed():
            _snapshot()

    def _override(self, model: str, provider: str | None) -> Price | None:
        for pattern, price in self._overrides.items():
            if matches(pattern, model) or matches(pattern, f"{provider}/{model}"):
                return price
        return None


class _Asked(NamedTuple):
    provider: str | None
    at: datetime | None
    service_tier: str | None


@cache
def _installed() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415  only where prices are asked for

    return find_spec("genai_prices") is not None


def _snapshot() -> JSON:
    from genai_prices import data_snapshot  # noqa: PLC0415  an extra, and a megabyte

    return data_snapshot.get_snapshot()


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))


def _amount(value: Amount | None, field: str) -> Decimal | None:
    try:
        amount = None if value is None else Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount is not None and not (amount.is_finite() and amount >= 0):
        raise ConfigurationError(f"`{field}` is no price: expected a number of at least 0")
    return amount


def _override_cost(usage: Usage, price: Price) -> Cost | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    fresh = usage.input_tokens
    sums = {"output": usage.output_tokens * (_amount(price.output, "output") or Decimal(0))}
    guessed = usage.estimated
    for part in ("cache_read", "cache_write"):
        each, count = _amount(getattr(price, part), part), getattr(usage, part)
        if each is not None:
            guessed = guessed or count is None
            sums[part] = (count or 0) * each
            fresh -= count or 0
    if fresh < 0:  # cached tokens are part of the prompt: a server that says otherwise counts in a way of its own
        return None
    sums["input"] = fresh * (_amount(price.input, "input") or Decimal(0))
    parts = {part: value / _PER for part, value in sums.items()}
    return _cost(parts, currency=price.currency, source="own", estimated=guessed)


def _cost(parts: Mapping[str, Decimal], *, currency: str, source: str, estimated: bool) -> Cost:
    floats = {part: float(value) for part, value in parts.items()}
    total = float(sum(parts.values(), Decimal(0)))
    return Cost(total=total, **floats, currency=currency, source=source, estimated=estimated)


def _listed_cost(usage: Usage, model: str, asked: _Asked) -> Cost | None:
    from datetime import UTC, datetime  # noqa: PLC0415  only where prices are asked for

    try:
        provider, found = _snapshot().find_provider_model(model, None, _named(asked.provider), None)
    except LookupError:
        return None
    own = any(found is one for one in provider.models)  # the prices of a tier are those of the model's own provider
    context = {"service_tier": asked.service_tier} if asked.service_tier and own else None
    price: ModelPrice = found.get_prices(asked.at or datetime.now(UTC), context)
    if not _counted(usage, price):
        return None
    try:
        parts = _listed_parts(usage, price)
    except ValueError:  # the counts contradict each other
        return None
    source = f"genai-prices: {provider.id}/{found.id}"
    return _cost(parts, currency="USD", source=source, estimated=usage.estimated or _guessed(usage, price))


@lru_cache(maxsize=1024)  # finding a model takes about a millisecond
def _listed_window(model: str, provider: str | None) -> int | None:
    try:
        _, found = _snapshot().find_provider_model(model, None, _named(provider), None)
    except LookupError:
        return None
    window: int | None = found.context_window
    return window


def _listed_rates(model: str, provider: str | None, at: datetime) -> Rates | None:
    try:
        row, found = _snapshot().find_provider_model(model, None, _named(provider), None)
    except LookupError:
        return None
    prices = {key: value for key, value in vars(found.get_prices(at, None)).items() if value is not None}
    if not _LINEAR.issuperset(prices):
        return None
    source = f"genai-prices: {row.id}/{found.id}"
    starts = {tier.start for price in prices.values() if not isinstance(price, Decimal) for tier in price.tiers}
    above = [(start, _rates(_at(prices, start + 1), source)) for start in sorted(starts, reverse=True)]
    return _rates(_at(prices, 0), source, tuple(above))


def _at(prices: Mapping[str, Decimal | TieredPrices], tokens: int) -> dict[str, Decimal]:
    """Return the prices that apply to an input of so many tokens."""
    found: dict[str, Decimal] = {}
    for name, price in prices.items():
        if isinstance(price, Decimal):
            found[name] = price
        else:
            passed = [tier.price for tier in price.tiers if tokens > tier.start]
            found[name] = passed[-1] if passed else price.base
    return found


def _rates(prices: Mapping[str, Decimal], source: str, above: tuple[tuple[int, Rates], ...] = ()) -> Rates:
    return Rates(
        input=per_token(prices.get("input_mtok")),
        output=per_token(prices.get("output_mtok")),
        cache_read=per_token(prices.get("cache_read_mtok")),
        cache_write=per_token(prices.get("cache_write_mtok")),
        audio_in=per_token(prices.get("input_audio_mtok")),
        audio_out=per_token(prices.get("output_audio_mtok")),
        searches=per_search(prices.get("web_searches_kcount")),
        source=source,
        above=above,
    )


def _named(provider: str | None) -> str | None:
    """Return the name under which the table has a provider."""
    from xenoglot.providers import catalog  # noqa: PLC0415  only where prices are asked for

    row = catalog.get(provider) if provider in catalog.names() else None
    return provider if row is None or row.prices is None else row.prices


def _counted(usage: Usage, price: ModelPrice) -> bool:
    """Return whether all counts that have a price are known."""
    priced = [getattr(price, f"{side}_mtok") is not None for side in ("input", "output")]
    told = (usage.input_tokens is not None, usage.output_tokens is not None)
    return any(priced) and all(said or not wanted for said, wanted in zip(told, priced, strict=True))


def _guessed(usage: Usage, price: ModelPrice) -> bool:
    """Return whether the cached part was not reported and has a price of its own."""
    return any(
        getattr(usage, part) is None and getattr(price, f"{part}_mtok") is not None
        for part in ("cache_read", "cache_write")
    )


def _listed_parts(usage: Usage, price: ModelPrice) -> dict[str, Decimal]:
    """Return the cost of each part: the total with all other prices zero. Raises `ValueError`."""
    from genai_prices import Usage as Counts  # noqa: PLC0415  an extra
    from genai_prices.types import ModelPrice as Row  # noqa: PLC0415  the same

    counts = Counts(**_counts(usage))
    priced = {key: value for key, value in vars(price).items() if value is not None and not key.startswith("_")}
    parts: dict[str, Decimal] = {}
    for part in {_part_of(key) for key in priced}:
        masked = {key: value if _part_of(key) == part else Decimal(0) for key, value in priced.items()}
        parts[part] = Row(**masked).calc_price(counts)["total_price"]
    return parts


def _counts(usage: Usage) -> dict[str, int]:
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "input_audio_tokens": usage.input_audio,
        "output_audio_tokens": usage.output_audio,
        "output_reasoning_tokens": usage.reasoning,
    }
    rare = {"cache_write_1h_tokens": usage.cache_write_1h, "web_searches": usage.web_searches}
    counts |= {name: count for name, count in rare.items() if count}  # not every model has a price for these
    return {name: count for name, count in counts.items() if count is not None}


def _part_of(key: str) -> str:
    """Return the part of the cost that a price of the table is for."""
    if not key.endswith("_mtok"):
        return "other"
    if key.startswith("cache_"):
        return "cache_write" if "_write_" in key else "cache_read"
    return "output" if key.startswith("output_") else "input"
