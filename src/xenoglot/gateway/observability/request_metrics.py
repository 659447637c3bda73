"""Metrics of requests to models, by tenant, model and upstream: times, tokens, cost, failures, losses.

The number of label values is bounded, because clients choose some of them: names beyond the bound are `other`, and so
is a model that has answered no request and is not in the configuration.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from xenoglot.backends.redaction import for_log
from xenoglot.gateway.observability.exposition import Histogram, family, histogram_family
from xenoglot.gateway.observability.request_log import MICRO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.observability.exposition import Sample
    from xenoglot.gateway.observability.request_log import RequestCost, RequestLog
    from xenoglot.model.response import Usage

REQUEST_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
FIRST_TOKEN_BUCKETS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TOKEN_GAP_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

MOST_NAMES: Final = 100
"""Tenants, and models, that have a label of their own."""
MOST_SERIES: Final = 2000
OTHER: Final = "other"

KINDS: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read",
    "cache_write": "cache_write",
    "reasoning": "reasoning",
    "audio_in": "input_audio",
    "audio_out": "output_audio",
}
"""Kinds of tokens, and their fields in the usage."""
_PARTS: Final = tuple(KINDS)[2:]
_PARTS_OF: Final = attrgetter(*[KINDS[kind] for kind in _PARTS])
_NO_PARTS: Final = (None,) * len(_PARTS)


class _Series:
    """What is counted for one tenant, model and upstream."""

    __slots__ = ("costs", "failures", "first_token", "labels", "request", "token_gap", "tokens")

    def __init__(self, tenant: str, model: str, upstream: str) -> None:
        self.labels = {"tenant": tenant, "model": model, "upstream": upstream}
        self.request = Histogram(REQUEST_BUCKETS)
        self.first_token = Histogram(FIRST_TOKEN_BUCKETS)
        self.token_gap = Histogram(TOKEN_GAP_BUCKETS)
        self.tokens: dict[str, int] = {"input": 0, "output": 0}
        self.costs: dict[str, int] = {}
        """Micro-units per currency."""
        self.failures: dict[str, int] = {}

    def count(self, usage: Usage, cost: RequestCost | None) -> None:
        """Count tokens and their cost."""
        tokens = self.tokens
        tokens["input"] += usage.input_tokens or 0
        tokens["output"] += usage.output_tokens or 0
        parts = _PARTS_OF(usage)
        if parts != _NO_PARTS:
            for kind, number in zip(_PARTS, parts):  # noqa: B905  each has one
                if number:
                    tokens[kind] = tokens.get(kind, 0) + number
        if cost is not None:
            self.costs[cost.currency] = self.costs.get(cost.currency, 0) + cost.amount


class RequestMetrics:
    """Counts requests, at upstreams whose dialects are known."""

    def __init__(self) -> None:
        self._dialects: dict[str, str] = {}
        self._series: dict[tuple[str | None, str | None, str | None], _Series] = {}
        self._tenants: set[str] = set()
        self._models: set[str] = set()
        self._losses: dict[tuple[str, str, str], int] = {}

    def configure(self, config: Config) -> None:
        """Note the dialects of the upstreams, and the models that the configuration names: these have labels."""
        self._dialects |= {name: upstream.dialect for name, upstream in config.upstreams.items()}
        for row in config.models:
            for model in (row.model, *(target.model for target in row.targets)):
                name = model or row.name
                _label(for_log(name), self._models, new="*" not in name)

    def add(self, record: RequestLog) -> None:
        """Count a request that is over."""
        if record.model is None:
            return
        ended, failure = record.clock(), record.failure
        key = (record.client.tenant, record.target, record.backend)
        series = self._series.get(key) or self._bounded(*key, answered=failure is None)
        series.request.observe(ended - record.started)
        if failure is not None:
            series.failures[failure] = series.failures.get(failure, 0) + 1
        if record.first_token is not None and record.stream:
            series.first_token.observe(record.first_token - record.started)
            if (gap := record.token_gap(ended)) is not None:
                series.token_gap.observe(gap)
        if record.usage is not None:
            series.count(record.usage, record.cost)
        if record.losses:
            self._count_losses(record)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the metrics."""
        every = sorted(self._series.values(), key=lambda series: (*series.labels.values(),))
        text = "Duration of requests to models."
        yield from histogram_family("xenoglot_request_seconds", text, [(one.labels, one.request) for one in every])
        text = "Time to the first piece of a streamed answer."
        first = [(one.labels, one.first_token) for one in every]
        yield from histogram_family("xenoglot_first_token_seconds", text, first)
        text = "Mean time between the tokens of a streamed answer."
        yield from histogram_family("xenoglot_token_gap_seconds", text, [(one.labels, one.token_gap) for one in every])
        tokens: list[Sample] = [
            ({**one.labels, "kind": kind}, count) for one in every for kind, count in one.tokens.items()
        ]
        yield from family("xenoglot_tokens_total", "counter", "Tokens, by kind; parts of input and output too.", tokens)
        failures: list[Sample] = [
            ({**one.labels, "failure": kind}, count) for one in every for kind, count in sorted(one.failures.items())
        ]
        yield from family("xenoglot_failures_total", "counter", "Requests without a whole answer.", failures)
        costs: list[Sample] = [
            ({**one.labels, "currency": currency}, amount / MICRO)
            for one in every
            for currency, amount in sorted(one.costs.items())
        ]
        yield from family("xenoglot_cost_total", "counter", "Cost of requests with a known price.", costs)
        losses: list[Sample] = [
            ({"from": client, "to": upstream, "kind": kind}, count)
            for (client, upstream, kind), count in sorted(self._losses.items())
        ]
        yield from family("xenoglot_losses_total", "counter", "Losses of translations, harmless ones included.", losses)

    def _bounded(self, tenant: str | None, model: str | None, upstream: str | None, *, answered: bool) -> _Series:
        """Return the series with these labels, or the one for others."""
        own = "" if tenant is None else _label(tenant, self._tenants, new=True)
        named = "" if model is None else _label(for_log(model), self._models, new=answered)
        if len(self._series) >= MOST_SERIES:
            own = named = OTHER
        key = (own or None, named or None, upstream)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series(own, named, upstream or "")
        return series

    def _count_losses(self, record: RequestLog) -> None:
        client, upstream = record.dialect or "", self._dialects.get(record.backend or "", "")
        for loss in record.losses:
            key = (client, upstream, loss.how)
            self._losses[key] = self._losses.get(key, 0) + 1


def _label(name: str, known: set[str], *, new: bool) -> str:
    """Return the name if it is `known`, or if it is `new` and the set is not full."""
    if name not in known:
        if not new or len(known) >= MOST_NAMES:
            return OTHER
        known.add(name)
    return name
