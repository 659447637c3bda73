"""What the gateway and its embedded models have done, as Prometheus reads it.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4); names by
https://prometheus.io/docs/practices/naming/: base units, and `_total` behind what only grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from xenoglot.engine.metrics import EngineMetrics, MetricsSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.limits.limiter import LimiterMetrics as LimitMeasures
    from xenoglot.gateway.observability.loop_lag import LoopLag
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.routing.target_health import TargetMetrics

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Value: TypeAlias = "float | int | None"
Sample: TypeAlias = "tuple[dict[str, str], Value]"


class _Metric(Struct, frozen=True):
    """A row of the table below: the name behind `xenoglot_engine_`, what it tells, and where that is."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    value: Callable[[EngineMetrics], Value]


ENGINE = (
    _Metric("slots", "gauge", "Requests that can run at once.", lambda said: said.slots),
    _Metric("slots_busy", "gauge", "Requests that run.", lambda said: said.running),
    _Metric("queue_requests", "gauge", "Requests that wait for a slot.", lambda said: said.waiting),
    _Metric("refused_requests_total", "counter", "Requests refused with 429.", lambda said: said.refused),
    _Metric("finished_requests_total", "counter", "Requests answered to their end.", lambda said: said.finished),
    _Metric("broken_off_requests_total", "counter", "Requests that failed or were left.", lambda said: said.broken_off),
    _Metric("prompt_tokens_total", "counter", "Tokens of prompts.", lambda said: said.prompt_tokens),
    _Metric("cached_prompt_tokens_total", "counter", "Those of them remembered.", lambda said: said.cached_tokens),
    _Metric("prompt_seconds_total", "counter", "Time spent on reading prompts.", lambda said: said.prompt_seconds),
    _Metric("generated_tokens_total", "counter", "Tokens written.", lambda said: said.generated_tokens),
    _Metric("generation_seconds_total", "counter", "Time spent on writing.", lambda said: said.generation_seconds),
    _Metric("prompt_tokens_per_second", "gauge", "As recent requests saw it.", lambda said: said.prompt_rate),
    _Metric("generation_tokens_per_second", "gauge", "As recent requests saw it.", lambda said: said.generation_rate),
    _Metric("restarts_total", "counter", "Starts after the first.", lambda said: max(0, said.starts - 1)),
)
"""What is told of each embedded model."""


class RequestCounters:
    """Counts requests by what the route table, the configuration and HTTP call them: never by what a client wrote."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str | None, int | None], int] = {}
        self._tokens: dict[str, list[int]] = {}
        """Of the input and of the output, by backends."""

    def add(self, record: RequestLog) -> None:
        """Count a request that is over."""
        place = (record.route, record.status)
        self._requests[place] = self._requests.get(place, 0) + 1
        usage = record.usage
        if usage is not None and record.backend is not None:
            tokens = self._tokens.get(record.backend)
            if tokens is None:
                tokens = self._tokens[record.backend] = [0, 0]
            tokens[0] += usage.input_tokens or 0
            tokens[1] += usage.output_tokens or 0

    def lines(self) -> Iterator[str]:
        """Yield what was counted."""
        counted = sorted((route or "", str(status or ""), n) for (route, status), n in self._requests.items())
        requests: list[Sample] = [({"route": route, "status": status}, n) for route, status, n in counted]
        tokens: list[Sample] = [
            ({"backend": backend, "kind": kind}, n)
            for backend, counts in sorted(self._tokens.items())
            for kind, n in zip(("input", "output"), counts, strict=True)
        ]
        yield from _family("xenoglot_gateway_requests_total", "counter", "Requests that are over.", requests)
        yield from _family(
            "xenoglot_gateway_tokens_total", "counter", "Tokens, as backends report them or as estimated.", tokens
        )


def render_metrics(
    tally: RequestCounters,
    running: int,
    backends: Mapping[str, Backend],
    limits: LimitMeasures | None = None,
    targets: Sequence[TargetMetrics] = (),
) -> bytes:
    """Return all metrics; `running` requests are under way, this one included.

    Models are told with their backends, too: two may be called the same.
    """
    measures = [(name, backend.measures()) for name, backend in backends.items() if isinstance(backend, MetricsSource)]
    lines = [*tally.lines()]
    lines += _family("xenoglot_gateway_requests_running", "gauge", "Requests that are under way.", [({}, running)])
    lines += () if limits is None else _limits(limits)
    lines += _targets(targets)
    for metric in ENGINE:
        samples: list[Sample] = [
            ({"model": said.model, "backend": name}, metric.value(said)) for name, said in measures
        ]
        lines += _family(f"xenoglot_engine_{metric.name}", metric.kind, metric.help, samples)
    return "".join(f"{line}\n" for line in lines).encode()


def lag_exposition(lag: LoopLag) -> bytes:
    """Return how the event loop turns."""
    name = "xenoglot_gateway_loop"
    lines = [
        *_family(f"{name}_lag_seconds", "gauge", "How late the event loop was when last asked.", [({}, lag.last)]),
        *_family(f"{name}_worst_lag_seconds", "gauge", "How late it ever was.", [({}, lag.worst)]),
        *_family(f"{name}_stalls_total", "counter", "How often that was more than 250 ms.", [({}, lag.stalls)]),
    ]
    return "".join(f"{row}\n" for row in lines).encode()


def merge_texts(texts: Mapping[str, str]) -> bytes:
    """Return the metrics of several workers, by their numbers, as one text in which each sample names its worker."""
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
    yield from _family("xenoglot_limits_waiting_requests", "gauge", "Requests that wait within a limit.", waiting)
    yield from _family("xenoglot_limits_refused_requests_total", "counter", "Requests refused by a limit.", refused)


def _targets(targets: Sequence[TargetMetrics]) -> Iterator[str]:
    def samples(value: Callable[[TargetMetrics], Value]) -> list[Sample]:
        return [({"backend": said.backend, "model": said.model}, value(said)) for said in targets]

    tries: list[Sample] = [
        ({"backend": said.backend, "model": said.model, "outcome": outcome}, count)
        for said in targets
        for outcome, count in sorted(said.tries.items())
    ]
    yield from _family("xenoglot_target_tries_total", "counter", "How often a target was asked.", tries)
    yield from _family("xenoglot_target_requests_running", "gauge", "Requests under way.", samples(lambda x: x.running))
    yield from _family("xenoglot_target_breaker_open", "gauge", "1: it is left alone.", samples(lambda x: int(x.open)))
    yield from _family(
        "xenoglot_target_first_byte_seconds", "gauge", "As recent requests saw it.", samples(lambda x: x.latency)
    )


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield the lines of one metric; what was not measured has none."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        if value is not None:
            said = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            yield f"{name}{{{said}}} {value}" if said else f"{name} {value}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
