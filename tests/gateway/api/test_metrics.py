"""What Prometheus is told, line by line."""

from __future__ import annotations

from collections import Counter

from tests.gateway.scripted_backends import Backend
from xenoglot.engine.metrics import EngineMetrics
from xenoglot.gateway.api.metrics import ENGINE, RequestCounters, render_metrics
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.observability.request_metrics import RequestMetrics
from xenoglot.gateway.routing.reservation import TargetMetrics
from xenoglot.model.response import Usage


class Measured(Backend):
    """A model that has done something."""

    def measures(self) -> EngineMetrics:
        """Tell what."""
        return EngineMetrics(model='a "b"\\\n', slots=4, running=1, prompt_tokens=7, prompt_seconds=0.5, starts=3)


def record(**fields: object) -> RequestLog:
    """A request that is over."""
    return RequestLog(request_id="", method="GET", started=0.0, clock=lambda: 0.0, **fields)  # type: ignore[arg-type]


def test_requests_and_tokens_are_counted_by_names_of_ours() -> None:
    tally = RequestCounters()
    tally.add(record(route="/health", status=200))
    tally.add(record(route="/health", status=200))
    tally.add(record())
    tally.add(record(route="/v1/messages", status=200, backend="a", usage=Usage(input_tokens=3)))
    assert [*tally.lines()] == [
        "# HELP xenoglot_gateway_requests_total Finished requests.",
        "# TYPE xenoglot_gateway_requests_total counter",
        'xenoglot_gateway_requests_total{route="",status=""} 1',
        'xenoglot_gateway_requests_total{route="/health",status="200"} 2',
        'xenoglot_gateway_requests_total{route="/v1/messages",status="200"} 1',
        "# HELP xenoglot_gateway_tokens_total Tokens as reported by backends, else estimated.",
        "# TYPE xenoglot_gateway_tokens_total counter",
        'xenoglot_gateway_tokens_total{backend="a",kind="input"} 3',
        'xenoglot_gateway_tokens_total{backend="a",kind="output"} 0',
        *RequestMetrics().lines(),  # none of them names a model
    ]


def test_models_are_told_with_their_names_escaped_and_without_what_was_not_measured() -> None:
    lines = render_metrics(RequestCounters(), 1, {"a": Backend(), "b": Measured()}).decode().split("\n")
    named = '{model="a \\"b\\"\\\\\\n",backend="b"}'
    told = {
        line.removesuffix(named + " " + line.rpartition(" ")[2]): line.rpartition(" ")[2]
        for line in lines
        if named in line
    }
    assert {name: value for name, value in told.items() if value != "0"} == {
        "xenoglot_engine_slots": "4",
        "xenoglot_engine_slots_busy": "1",
        "xenoglot_engine_prompt_tokens_total": "7",
        "xenoglot_engine_prompt_seconds_total": "0.5",
        "xenoglot_engine_generation_seconds_total": "0.0",
        "xenoglot_engine_restarts_total": "2",
    }
    assert len(told) == len(ENGINE) - 2
    assert "xenoglot_gateway_requests_running 1" in lines
    assert lines[-1] == ""


def test_deprecated_names_of_metrics_have_the_values_of_the_new_names() -> None:
    target = TargetMetrics(
        backend="a", model="m", running=0, open=False, latency=None, tries=Counter({"answered": 2, "timeout": 1})
    )
    lines = render_metrics(RequestCounters(), 1, {"b": Measured()}, targets=[target]).decode().split("\n")
    renamed = {
        "xenoglot_target_tries_total": "xenoglot_target_attempts_total",
        "xenoglot_engine_broken_off_requests_total": "xenoglot_engine_aborted_requests_total",
    }
    for old, new in renamed.items():
        assert f"# HELP {old} Deprecated: use {new}." in lines
        samples = [line for line in lines if line.startswith(f"{new}{{")]
        assert samples
        assert [line for line in lines if line.startswith(f"{old}{{")] == [
            old + line.removeprefix(new) for line in samples
        ]


def test_models_of_one_name_are_told_apart() -> None:
    lines = render_metrics(RequestCounters(), 1, {"a": Measured(), "b": Measured()}).decode().split("\n")
    named = [line.rpartition(" ")[0] for line in lines if line and not line.startswith("#")]
    assert len(named) == len(set(named))


def test_what_only_grows_is_called_a_total() -> None:
    assert {metric.name for metric in ENGINE if (metric.kind == "counter") != metric.name.endswith("_total")} == set()
