"""Metrics of the gateway and its embedded models in the text format of Prometheus.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4); names by
https://prometheus.io/docs/practices/naming/: base units; counters end in `_total`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from xenoglot.engine.metrics import EngineMetrics, MetricsSource
from xenoglot.gateway.observability.exposition import Sample, Value, family
from xenoglot.gateway.observability.request_log import MICRO
from xenoglot.gateway.observability.request_metrics import RequestMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.limits.limiter import LimiterMetrics as LimitMeasures
    from xenoglot.gateway.observability.loop_lag import LoopLag
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.routing.reservation import TargetMetrics
    from xenoglot.policy.limits.money_budget import Budget

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Metric(Struct, frozen=True):
    """A metric of an engine: the name after `xenoglot_engine_`, kind, HELP text, and how to read the value."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    value: Callable[[EngineMetrics], Value]


ENGINE = (
    _Metric("slots", "gauge", "Requests that can run at the same time.", lambda engine: engine.slots),
    _Metric("slots_busy", "gauge", "Requests that are running.", lambda engine: engine.running),
    _Metric("queue_requests", "gauge", "Requests waiting for a slot.", lambda engine: engine.waiting),
    _Metric("refused_requests_total", "counter", "Requests rejected with status 429.", lambda engine: engine.refused),
    _Metric("finished_requests_total", "counter", "Requests answered completely.", lambda engine: engine.finished),
    _Metric("aborted_requests_total", "counter", "Failed and cancelled requests.", lambda engine: engine.broken_off),
    _Metric(
        "broken_off_requests_total",
        "counter",
        "Deprecated: use xenoglot_engine_aborted_requests_total.",
        lambda engine: engine.broken_off,
    ),
    _Metric("prompt_tokens_total", "counter", "Prompt tokens.", lambda engine: engine.prompt_tokens),
    _Metric(
        "cached_prompt_tokens_total",
        "counter",
        "Prompt tokens from the cache.",
        lambda engine: engine.cached_tokens,
    ),
    _Metric("prompt_seconds_total", "counter", "Time spent processing prompts.", lambda engine: engine.prompt_seconds),
    _Metric("generated_tokens_total", "counter", "Generated tokens.", lambda engine: engine.generated_tokens),
    _Metric(
        "generation_seconds_total", "counter", "Time spent generating tokens.", lambda engine: engine.generation_seconds
    ),
    _Metric(
        "prompt_tokens_per_second",
        "gauge",
        "Prompt tokens per second, moving average over recent requests.",
        lambda engine: engine.prompt_rate,
    ),
    _Metric(
        "generation_tokens_per_second",
        "gauge",
        "Generated tokens per second, moving average over recent requests.",
        lambda engine: engine.generation_rate,
    ),
    _Metric(
        "restarts_total", "counter", "Starts of the process after the first.", lambda engine: max(0, engine.starts - 1)
    ),
)
"""The metrics of each embedded model. A deprecated name is exposed for one release next to the new one."""


class RequestCounters:
    """Counts requests and tokens; `models` counts them by tenant, model and upstream.

    Other labels come from the route table, the configuration and HTTP, never from what a client sent.
    """

    def __init__(self, config: Config | None = None) -> None:
        self._requests: dict[tuple[str | None, int | None], int] = {}
        self._tokens: dict[str, list[int]] = {}
        """Input and output tokens per backend."""
        self._costs: dict[tuple[str, str], int] = {}
        """Micro-units per backend and currency."""
        self.models = RequestMetrics()
        if config is not None:
            self.models.configure(config)

    def add(self, record: RequestLog) -> None:
        """Count a finished request."""
        self.models.add(record)
        place = (record.route, record.status)
        self._requests[place] = self._requests.get(place, 0) + 1
        usage = record.usage
        if usage is not None and record.backend is not None:
            tokens = self._tokens.get(record.backend)
            if tokens is None:
                tokens = self._tokens[record.backend] = [0, 0]
            tokens[0] += usage.input_tokens or 0
            tokens[1] += usage.output_tokens or 0
            if (cost := record.cost) is not None:
                priced = (record.backend, cost.currency)
                self._costs[priced] = self._costs.get(priced, 0) + cost.amount

    def lines(self) -> Iterator[str]:
        """Yield the lines of the counters."""
        counted = sorted((route or "", str(status or ""), n) for (route, status), n in self._requests.items())
        requests: list[Sample] = [({"route": route, "status": status}, n) for route, status, n in counted]
        tokens: list[Sample] = [
            ({"backend": backend, "kind": kind}, n)
            for backend, counts in sorted(self._tokens.items())
            for kind, n in zip(("input", "output"), counts, strict=True)
        ]
        yield from family("xenoglot_gateway_requests_total", "counter", "Finished requests.", requests)
        yield from family(
            "xenoglot_gateway_tokens_total", "counter", "Tokens as reported by backends, else estimated.", tokens
        )
        costs: list[Sample] = [
            ({"backend": backend, "currency": currency}, amount / MICRO)
            for (backend, currency), amount in sorted(self._costs.items())
        ]
        if costs:
            yield from family("xenoglot_gateway_cost_total", "counter", "Cost of requests with a known price.", costs)
        yield from self.models.lines()


def render_metrics(
    tally: RequestCounters,
    running: int,
    backends: Mapping[str, Backend],
    limits: LimitMeasures | None = None,
    targets: Sequence[TargetMetrics] = (),
) -> bytes:
    """Return all metrics; `running` is the number of requests in flight, this one included.

    Engine metrics have the labels `model` and `backend`, because two models may have the same name.
    """
    measures = [(name, backend.measures()) for name, backend in backends.items() if isinstance(backend, MetricsSource)]
    lines = [*tally.lines()]
    lines += family("xenoglot_gateway_requests_running", "gauge", "Requests in flight.", [({}, running)])
    lines += () if limits is None else _limits(limits)
    lines += _targets(targets)
    for metric in ENGINE:
        samples: list[Sample] = [
            ({"model": said.model, "backend": name}, metric.value(said)) for name, said in measures
        ]
        lines += family(f"xenoglot_engine_{metric.name}", metric.kind, metric.help, samples)
    return "".join(f"{line}\n" for line in lines).encode()


def lag_exposition(lag: LoopLag) -> bytes:
    """Return the metrics of the event loop's lag."""
    name = "xenoglot_gateway_loop"
    lines = [
        *family(f"{name}_lag_seconds", "gauge", "Delay of the event loop at the last measurement.", [({}, lag.last)]),
        *family(f"{name}_worst_lag_seconds", "gauge", "Longest delay since the start.", [({}, lag.worst)]),
        *family(f"{name}_stalls_total", "counter", "Delays of the event loop longer than 250 ms.", [({}, lag.stalls)]),
    ]
    return "".join(f"{row}\n" for row in lines).encode()


def ledger_exposition(written: int, dropped: int, waiting: int) -> bytes:
    """Return the metrics of the ledger."""
    rows: list[Sample] = [({"outcome": "written"}, written), ({"outcome": "dropped"}, dropped)]
    lines = [
        *family("xenoglot_ledger_rows_total", "counter", "Requests written to the ledger, or dropped.", rows),
        *family("xenoglot_ledger_rows_waiting", "gauge", "Requests that wait to be written.", [({}, waiting)]),
    ]
    return "".join(f"{row}\n" for row in lines).encode()


def budget_exposition(left: Sequence[tuple[Budget, int]]) -> bytes:
    """Return the metrics of budgets: what remains of each, in units of its currency."""
    rows: list[Sample] = [
        (
            {"budget": budget.id, "scope": budget.scope, "period": budget.period, "currency": budget.currency},
            amount / MICRO,
        )
        for budget, amount in left
    ]
    text = "What remains of each budget for all gateways together."
    return "".join(f"{row}\n" for row in family("xenoglot_budget_remaining", "gauge", text, rows)).encode()


def execution_exposition(calls: Mapping[tuple[str, str], int]) -> bytes:
    """Return the metrics of hosted tools that were executed here: calls by the kind of tool and their outcome."""
    rows: list[Sample] = [
        ({"tool": kind, "outcome": outcome}, count) for (kind, outcome), count in sorted(calls.items())
    ]
    text = "Calls of hosted tools that the gateway executed."
    return "".join(f"{row}\n" for row in family("xenoglot_tool_executions_total", "counter", text, rows)).encode()


def merge_texts(texts: Mapping[str, str]) -> bytes:
    """Return the metrics of several workers as one text; the label `worker` of a sample is the worker's number."""
    families: dict[str, list[str]] = {}
    for worker, text in sorted(texts.items()):
        told: list[str] = []
        for row in text.splitlines():
            if row.startswith("#"):
                told = families.setdefault(row.split(" ")[2], [])
                if row not in told[:2]:
                    told.append(row)
            else:
                name, brace, rest = row.partition("{")
                bare, _, value = row.partition(" ")
                label = f'worker="{worker}"'
                told.append(f"{name}{{{label},{rest}" if brace else f"{bare}{{{label}}} {value}")
    return "".join(f"{row}\n" for rows in families.values() for row in rows).encode()


def _limits(said: LimitMeasures) -> Iterator[str]:
    waiting = [({"scope": kind}, n) for kind, n in sorted(said.waiting.items())]
    refused = [({"scope": kind, "failure": failure}, n) for (kind, failure), n in sorted(said.refused.items())]
    yield from family("xenoglot_limits_waiting_requests", "gauge", "Requests waiting for a limit.", waiting)
    yield from family("xenoglot_limits_refused_requests_total", "counter", "Requests rejected by a limit.", refused)


def _targets(targets: Sequence[TargetMetrics]) -> Iterator[str]:
    def samples(value: Callable[[TargetMetrics], Value]) -> list[Sample]:
        return [({"backend": said.backend, "model": said.model}, value(said)) for said in targets]

    attempts: list[Sample] = [
        ({"backend": said.backend, "model": said.model, "outcome": outcome}, count)
        for said in targets
        for outcome, count in sorted(said.tries.items())
    ]
    name = "xenoglot_target_attempts_total"
    yield from family(name, "counter", "Attempts per target and outcome.", attempts)
    yield from family("xenoglot_target_tries_total", "counter", f"Deprecated: use {name}.", attempts)
    running = samples(lambda target: target.running)
    yield from family("xenoglot_target_requests_running", "gauge", "Requests in flight per target.", running)
    is_open = samples(lambda target: int(target.open))
    yield from family("xenoglot_target_breaker_open", "gauge", "1 while the circuit breaker is open.", is_open)
    latency = samples(lambda target: target.latency)
    text = "Time to the first byte, moving average over recent requests."
    yield from family("xenoglot_target_first_byte_seconds", "gauge", text, latency)
