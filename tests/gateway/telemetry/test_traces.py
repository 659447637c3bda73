"""OpenTelemetry of a whole gateway, as an OTLP collector receives it: spans, metrics, and what happens without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.telemetry.collector import CollectedSpan, Collector
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.telemetry import exporters
from xenoglot.model.response import Usage
from xenoglot.testing import Upstream, answers
from xenoglot.testing.script import Body, Close, Hang, Respond, ResponseHead, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.model.json import JSON, JSONObject

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
USAGE = Usage(input_tokens=10, output_tokens=3, cache_read=4, cache_write=2, reasoning=1)
CHAT: JSONObject = {
    "model": "m",
    "max_tokens": 9,
    "temperature": 0.5,
    "messages": [{"role": "user", "content": "Say something secret"}],
}
JSON_TYPE = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"),)
FRAME = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"n","choices":[{"index":0,"delta":%b}]}\n\n'
)
NO_RETRY: JSONObject = {"retry": {"attempts": 1}}
OVER = {"/v1/chat/completions", "/v1/messages"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have spans exported at once."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")


def post(url: str, body: JSONObject, path: str = "/v1/chat/completions", headers: Mapping[str, str] = {}) -> int:
    """Send a request, read the answer as far as it comes, and return its status."""
    with httpx2.stream("POST", url + path, json=body, headers=headers, timeout=TIMEOUT) as answer:
        try:
            answer.read()
        except httpx2.HTTPError:
            assert answer.status_code == 200  # broken off
        return answer.status_code


def exported(span: CollectedSpan) -> dict[str, object]:
    """The attributes of a span, without those that differ from run to run."""
    changing = {"xenoglot.request.id", "server.port", "gen_ai.response.time_to_first_chunk"}
    return {name: value for name, value in span.attributes.items() if name not in changing}


@pytest.fixture(scope="module")
def answering() -> Iterator[Upstream]:
    """Give a server of `chat` that answers."""
    with Upstream(*answers("chat", text="Hello.", usage=USAGE).rules()) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", sorted(OVER), ids=["verbatim", "translated"])
def test_a_request_has_a_span_and_its_try_another(answering: Upstream, path: str, *, stream: bool) -> None:
    prices: JSON = [{"model": "*", "input": 1, "output": 2, "cache_read": 1, "cache_write": 1}]
    with Collector() as collector:
        settings: JSONObject = {"telemetry": {"endpoint": collector.url}, "prices": prices}
        with DialectGateway(answering, **settings) as running:
            assert post(running.url, {**CHAT, "stream": stream, "top_k": 3}, path, PARENT) == 200
            [request] = collector.requests(1)
        [tried] = collector.tries(request)
    assert (request.name, request.kind, request.failed) == (f"POST {path}", "SERVER", False)
    assert (request.trace, request.parent, request.state) == (TRACE, "00f067aa0ba902b7", "vendor=1")
    dialect = "messages" if path == "/v1/messages" else "chat"
    losses = {"xenoglot.losses": ["$.sampling top_k dropped (the dialect has no such field)"]}
    assert exported(request) == {
        "http.request.method": "POST",
        "http.route": path,
        "http.response.status_code": 200,
        "xenoglot.dialect.in": dialect,
        "xenoglot.dialect.out": "chat",
        "xenoglot.upstream": "up",
        "xenoglot.tries": 1,
        "xenoglot.cost": 0.000016,
        "xenoglot.cost.currency": "USD",
        **(losses if dialect == "messages" else {}),
    }
    assert (tried.name, tried.kind, tried.failed) == ("chat m", "CLIENT", False)
    assert request.start <= tried.start <= tried.end <= request.end
    assert exported(tried) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "up",
        "gen_ai.request.model": "m",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stream": stream,
        "gen_ai.request.top_k": 3,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.id": "chatcmpl-scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "server.address": "127.0.0.1",
        "xenoglot.upstream": "up",
    }
    assert ("gen_ai.response.time_to_first_chunk" in tried.attributes) == stream
    sent = dict(answering.requests[-1].headers)
    assert sent["traceparent"] == f"00-{TRACE}-{tried.id}-01"
    assert sent["tracestate"] == "vendor=1"


def test_retries_fallbacks_and_refusals_have_a_span_each() -> None:
    refusing = ScriptRule(steps=(Respond(status=500, headers=JSON_TYPE, body=b'{"error":{"message":"on fire"}}'),))
    busy = ScriptRule(steps=(Respond(status=503, headers=JSON_TYPE, body=b'{"error":{"message":"busy"}}'),), times=1)
    again: JSONObject = {"retry": {"attempts": 2, "base": 0.001}}
    with (
        Collector() as collector,
        Upstream(refusing) as first,
        Upstream(busy, *answers("chat", text="Hello.", usage=USAGE).rules()) as second,
    ):
        upstreams: JSONObject = {
            "first": {"dialect": "chat", "base_url": first.url, **NO_RETRY},
            "gone": {"dialect": "chat", "base_url": "http://127.0.0.1:9", **NO_RETRY},
            "second": {"dialect": "chat", "base_url": second.url, **again},
        }
        targets: JSON = [{"upstream": name, "tier": tier} for tier, name in enumerate(upstreams, 1)]
        models: JSON = [{"name": "m", "targets": targets}, {"name": "alone", "upstream": "first"}]
        more: JSONObject = {"upstreams": upstreams, "models": models, "telemetry": {"endpoint": collector.url}}
        with DialectGateway(first, **more) as running:
            assert post(running.url, CHAT) == 200
            assert post(running.url, {**CHAT, "model": "alone"}) == 500
            assert post(running.url, {**CHAT, "model": "unknown"}) == 404
            assert httpx2.get(f"{running.url}/health", timeout=TIMEOUT).status_code == 200
            answered, refused, unknown = collector.requests(3)
    tries = collector.tries(answered)
    found = [(span.attributes["xenoglot.upstream"], span.failed, span.attributes.get("error.type")) for span in tries]
    assert found == [
        ("first", True, "500"),
        ("gone", True, "connect"),
        ("second", True, "503"),
        ("second", False, None),
    ]
    assert tries[0].why == f"first/m: HTTP 500 from {first.url}/v1/chat/completions: on fire"
    assert tries[1].why == "gone/m: cannot connect to http://127.0.0.1:9: connection refused; is the server running?"
    assert (answered.failed, answered.attributes["xenoglot.tries"], answered.parent) == (False, 4, "")
    assert (refused.failed, refused.attributes["error.type"]) == (True, "internal")
    assert [span.failed for span in collector.tries(refused)] == [True]
    assert (unknown.failed, unknown.attributes["error.type"], collector.tries(unknown)) == (False, "not_found", [])
    assert len({answered.trace, refused.trace, unknown.trace}) == 3
    assert len([span for span in collector.spans if span.kind == "SERVER"]) == 3  # none of the health check


@pytest.mark.parametrize("path", sorted(OVER), ids=["verbatim", "translated"])
def test_a_stream_that_breaks_off_ends_its_spans_as_failed(path: str) -> None:
    steps = (ResponseHead(headers=EVENTS), Body(FRAME % b'{"content":"Hi"}'), Close())
    with Collector() as collector, Upstream(ScriptRule(steps=steps)) as server:
        with DialectGateway(server, telemetry={"endpoint": collector.url}, upstream=NO_RETRY) as running:
            post(running.url, {**CHAT, "stream": True}, path)
            [request] = collector.requests(1)
        [tried] = collector.tries(request)
    assert (request.failed, request.attributes["error.type"]) == (True, "upstream")
    assert request.attributes["http.response.status_code"] == 200
    assert (tried.failed, tried.attributes["error.type"]) == (True, "upstream")
    assert tried.why.startswith(f"up/m: connection lost to {server.url}")
    assert tried.attributes["xenoglot.usage.estimated"] is True


@pytest.mark.parametrize("path", sorted(OVER), ids=["verbatim", "translated"])
def test_a_client_that_disconnects_ends_its_spans(path: str) -> None:
    steps = (ResponseHead(headers=EVENTS), Body(FRAME % b'{"content":"Hi"}'), Hang())
    with Collector() as collector, Upstream(ScriptRule(steps=steps)) as server:
        with DialectGateway(server, telemetry={"endpoint": collector.url}) as running:
            body = {**CHAT, "stream": True}
            with httpx2.stream("POST", running.url + path, json=body, timeout=TIMEOUT) as answer:
                next(answer.iter_bytes())
            [request] = collector.requests(1)
        [tried] = collector.tries(request)
    assert (request.failed, request.attributes["error.type"]) == (False, "cancelled")
    assert (tried.failed, tried.attributes["error.type"]) == (True, "cancelled")


def test_operations_and_lines_of_batches_have_spans(answering: Upstream) -> None:
    with Collector() as collector, DialectGateway(answering, telemetry={"endpoint": collector.url}) as running:
        post(running.url, {"model": "m", "input": "Hi"}, "/v1/embeddings")
        lines = "".join(json.dumps(_line(number)) + "\n" for number in range(2))
        with httpx2.Client(base_url=running.url, timeout=TIMEOUT) as client:
            form = {"file": ("lines.jsonl", lines.encode())}
            uploaded = client.post("/v1/files", data={"purpose": "batch"}, files=form).json()
            wanted = {"input_file_id": uploaded["id"], "endpoint": "/v1/chat/completions"}
            made = client.post("/v1/batches", json={**wanted, "completion_window": "24h"})
            assert made.status_code == 200
        requests = collector.requests(5)
    named = {request.name for request in requests}
    assert {"POST /v1/embeddings", "POST /v1/files", "POST /v1/batches", "POST /v1/chat/completions"} == named
    lines_of_batch = [request for request in requests if request.name == "POST /v1/chat/completions"]
    assert [[tried.name for tried in collector.tries(request)] for request in lines_of_batch] == [
        ["chat m"],
        ["chat m"],
    ]
    [embedding] = [request for request in requests if request.name == "POST /v1/embeddings"]
    assert {tried.attributes["gen_ai.operation.name"] for tried in collector.tries(embedding)} == {"embeddings"}


def _line(number: int) -> JSONObject:
    return {"custom_id": str(number), "method": "POST", "url": "/v1/chat/completions", "body": CHAT}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_content_is_exported_only_if_that_is_set(answering: Upstream, *, stream: bool) -> None:
    names = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
    turns: JSON = [{"role": "system", "content": "Be kind"}, *cast("list[JSON]", CHAT["messages"])]
    found: list[dict[str, Any]] = []
    for content in (False, True):
        with Collector() as collector:
            telemetry: JSONObject = {"endpoint": collector.url, "content": content}
            with DialectGateway(answering, telemetry=telemetry) as running:
                assert post(running.url, {**CHAT, "messages": turns, "stream": stream}) == 200
                [request] = collector.requests(1)
            [tried] = collector.tries(request)
        found.append({name: json.loads(str(tried.attributes[name])) for name in names if name in tried.attributes})
        said = repr([span.attributes for span in collector.spans])
        assert ("secret" in said) == content
        assert ("Hello." in said) == content
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "Hello."}], "finish_reason": "stop"}
    prompt = {"role": "user", "parts": [{"type": "text", "content": "Say something secret"}]}
    told = [{"type": "text", "content": "Be kind"}]
    assert found == [{}, dict(zip(names, ([prompt], [answer], told), strict=True))]


def test_metrics_have_the_names_of_the_conventions(answering: Upstream) -> None:
    with Collector() as collector, DialectGateway(answering, telemetry={"endpoint": collector.url}) as running:
        for stream in (False, True, True):
            assert post(running.url, {**CHAT, "stream": stream}) == 200
    common = (("gen_ai.operation.name", "chat"), ("gen_ai.provider.name", "up"), ("gen_ai.request.model", "m"))
    counts = {name: {key: point.count for key, point in collector.points(name).items()} for name in collector.metrics}
    assert counts == {
        "gen_ai.client.operation.duration": {common: 3},
        "gen_ai.client.operation.time_to_first_chunk": {common: 2},
        "gen_ai.client.token.usage": {
            (*common, ("gen_ai.token.type", "input")): 3,
            (*common, ("gen_ai.token.type", "output")): 3,
        },
        "gen_ai.server.request.duration": {common: 3},
        "gen_ai.server.time_per_output_token": {common: 2},
        "gen_ai.server.time_to_first_token": {common: 2},
    }
    assert collector.points("gen_ai.client.token.usage")[(*common, ("gen_ai.token.type", "input"))].sum == 30
    assert collector.schema == "https://opentelemetry.io/schemas/1.44.0"


@pytest.mark.parametrize("status", [None, 500], ids=["no-collector", "failing"])
def test_a_collector_that_fails_fails_no_request(
    answering: Upstream, monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    monkeypatch.setattr(exporters, "FLUSH_SECONDS", 0.1)
    with Collector(status or 200) as collector:
        endpoint = "http://127.0.0.1:9" if status is None else collector.url
        with DialectGateway(answering, telemetry={"endpoint": endpoint}) as running:
            assert [post(running.url, {**CHAT, "stream": stream}) for stream in (False, True)] == [200, 200]


def test_standard_variables_configure_it(answering: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "by-variable")
        environ = {"COLLECTOR_HEADERS": "x-key=s3cret, x-team = a"}
        telemetry: JSONObject = {"headers_env": "COLLECTOR_HEADERS"}
        with DialectGateway(answering, environ=environ, telemetry=telemetry) as running:
            assert post(running.url, CHAT) == 200
            collector.requests(1)
        assert collector.resource["service.name"] == "by-variable"
        assert collector.resource["deployment.environment.name"] == "test"
        assert {(sent["x-key"], sent["x-team"]) for sent in collector.headers} == {("s3cret", "a")}


@pytest.mark.parametrize(
    ("variables", "telemetry", "sampled"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, {}, None),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, {}, None),
        ({}, {"traces": False, "metrics": False}, None),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, {"metrics": False}, "00"),
    ],
    ids=["disabled", "no-exporters", "no-signals", "not-sampled"],
)
def test_what_is_off_is_not_exported_and_the_trace_goes_on(
    answering: Upstream,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    telemetry: JSONObject,
    sampled: str | None,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with Collector() as collector:
        with DialectGateway(answering, telemetry={"endpoint": collector.url, **telemetry}) as running:
            assert post(running.url, CHAT, headers=PARENT) == 200
        assert (collector.spans, collector.metrics) == ([], {})
    sent = dict(answering.requests[-1].headers)["traceparent"]
    assert sent == PARENT["traceparent"] if sampled is None else (sent[:36], sent[53:]) == (f"00-{TRACE}-", sampled)
