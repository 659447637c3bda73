"""Metrics of requests: what is counted, with bounded labels, in a format that Prometheus' own parser reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.codec.loss import Loss
from xenoglot.gateway.api.metrics import RequestCounters, merge_texts, render_metrics
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.load import check
from xenoglot.gateway.observability import request_metrics
from xenoglot.gateway.observability.exposition import Histogram, histogram_family
from xenoglot.gateway.observability.request_log import RequestCost, RequestLog
from xenoglot.gateway.observability.request_metrics import RequestMetrics
from xenoglot.model.response import Usage
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject


def record(model: str = "m", *, failure: FailureKind | None = None, tenant: str | None = None) -> RequestLog:
    """A stream of `model` at `up` that took 4 seconds, the first of 3 tokens after 2."""
    made = RequestLog(request_id="", method="POST", started=1.0, clock=lambda: 5.0)
    made.asked(model, stream=True)
    made.dialect, made.backend, made.target, made.failure = "messages", "up", model, failure
    made.client = Principal(tenant=tenant)
    made.first_token, made.usage = 3.0, Usage(input_tokens=10, output_tokens=3, cache_read=4)
    made.cost = RequestCost(1500, "USD", "own")
    return made


def samples(lines: Iterable[str]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus' own parser reads: name and labels -> value."""
    text = "".join(f"{line}\n" for line in lines)
    families = list(text_string_to_metric_families(text))
    assert {family.type for family in families} <= {"counter", "gauge", "histogram"}
    read = [sample for family in families for sample in family.samples]
    found = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in read}
    assert len(found) == len(read)
    return found


def labels_of(metrics: RequestMetrics) -> set[tuple[str, str]]:
    """The tenants and models that have labels."""
    return {
        (labels["tenant"], labels["model"])
        for name, pairs in samples(metrics.lines())
        if name == "xenoglot_request_seconds_count"
        for labels in (dict(pairs),)
    }


def test_a_request_is_counted_in_each_metric() -> None:
    metrics = RequestMetrics()
    metrics.configure(check({"upstreams": {"up": {"dialect": "chat", "base_url": "http://a"}}}, {}, "the test"))
    one = record(tenant="ada")
    one.losses = (Loss("$", "a", "dropped", "why"), Loss("$", "b", "dropped", "why"), Loss("$", "c", "emulated", "why"))
    metrics.add(one)
    metrics.add(record(tenant="ada", failure="timeout"))
    own = (("model", "m"), ("tenant", "ada"), ("upstream", "up"))
    found = samples(metrics.lines())
    values = {
        (name, *(pair for pair in labels if pair not in own)): value
        for (name, labels), value in found.items()
        if not name.endswith("_bucket")
    }
    assert values == {
        ("xenoglot_request_seconds_sum",): 8.0,
        ("xenoglot_request_seconds_count",): 2.0,
        ("xenoglot_first_token_seconds_sum",): 4.0,
        ("xenoglot_first_token_seconds_count",): 2.0,
        ("xenoglot_token_gap_seconds_sum",): 1.0,
        ("xenoglot_token_gap_seconds_count",): 1.0,
        ("xenoglot_tokens_total", ("kind", "input")): 20.0,
        ("xenoglot_tokens_total", ("kind", "output")): 6.0,
        ("xenoglot_tokens_total", ("kind", "cache_read")): 8.0,
        ("xenoglot_failures_total", ("failure", "timeout")): 1.0,
        ("xenoglot_cost_total", ("currency", "USD")): 0.003,
        ("xenoglot_losses_total", ("from", "messages"), ("kind", "dropped"), ("to", "chat")): 2.0,
        ("xenoglot_losses_total", ("from", "messages"), ("kind", "emulated"), ("to", "chat")): 1.0,
    }
    buckets = {dict(labels)["le"]: value for (name, labels), value in found.items() if name.endswith("seconds_bucket")}
    assert buckets["+Inf"] in {1.0, 2.0}


def test_a_histogram_counts_up_to_and_including_each_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    assert [*histogram_family("a", "Text.", [({"b": 'c"\n'}, histogram), ({"b": "empty"}, Histogram((1.0,)))])] == [
        "# HELP a Text.",
        "# TYPE a histogram",
        'a_bucket{b="c\\"\\n",le="1.0"} 2',
        'a_bucket{b="c\\"\\n",le="2.0"} 3',
        'a_bucket{b="c\\"\\n",le="+Inf"} 4',
        'a_sum{b="c\\"\\n"} 12.0',
        'a_count{b="c\\"\\n"} 4',
    ]


def test_models_of_clients_get_no_labels_before_they_answer_nor_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_metrics, "MOST_NAMES", 3)
    metrics = RequestMetrics()
    upstreams: JSONObject = {"up": {"dialect": "chat", "base_url": "http://a"}}
    models: list[JSON] = [{"name": "alias", "upstream": "up", "model": "known"}]
    metrics.configure(check({"upstreams": upstreams, "models": models}, {}, "the test"))
    for number in range(50):
        metrics.add(record(f"guess-{number}", failure="not_found"))
    metrics.add(record("known", failure="timeout"))
    assert labels_of(metrics) == {("", "other"), ("", "known")}
    for number in range(50):
        metrics.add(record(f"real-{number}", tenant=f"tenant-{number}"))
    assert {model for _, model in labels_of(metrics)} == {"known", "real-0", "real-1", "other"}
    assert {tenant for tenant, _ in labels_of(metrics)} == {"", "tenant-0", "tenant-1", "tenant-2", "other"}


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_metrics, "MOST_SERIES", 4)
    metrics = RequestMetrics()
    for number in range(20):
        metrics.add(record(f"m{number % 5}", tenant=f"t{number % 4}"))
    assert len(labels_of(metrics)) == 5
    counts = [
        value for (name, _), value in samples(metrics.lines()).items() if name == "xenoglot_request_seconds_count"
    ]
    assert sum(counts) == 20


def test_what_is_no_request_to_a_model_is_not_counted() -> None:
    metrics = RequestMetrics()
    metrics.add(RequestLog(request_id="", method="GET", started=0.0, clock=lambda: 1.0, route="/health", status=200))
    assert samples(metrics.lines()) == {}


def test_the_metrics_of_several_workers_are_one_text_that_prometheus_reads() -> None:
    texts = {}
    for worker in ("0", "1"):
        counters = RequestCounters()
        counters.add(record())
        texts[worker] = render_metrics(counters, 1, {}).decode()
    alone, both = samples(texts["0"].splitlines()), samples(merge_texts(texts).decode().splitlines())
    assert len(both) == 2 * len(alone)
    assert {dict(labels)["worker"] for _, labels in both} == {"0", "1"}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"], ids=["verbatim", "translated"])
def test_a_gateway_exposes_the_times_of_its_streams(path: str) -> None:
    body: JSONObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    usage = Usage(input_tokens=5, output_tokens=2)
    with Upstream(*answers("chat", text="Hello.", usage=usage).rules()) as server, DialectGateway(server) as running:
        for stream in (False, True, True):
            answer = httpx2.post(running.url + path, json={**body, "stream": stream}, timeout=TIMEOUT)
            assert answer.status_code == 200
        found = samples(httpx2.get(f"{running.url}/metrics", timeout=TIMEOUT).text.splitlines())
    labels = (("model", "m"), ("tenant", ""), ("upstream", "up"))
    counts = [found[f"xenoglot_{name}_seconds_count", labels] for name in ("request", "first_token", "token_gap")]
    assert counts == [3, 2, 2]
    assert found["xenoglot_tokens_total", tuple(sorted((*labels, ("kind", "input"))))] == 15
