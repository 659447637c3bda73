"""The load that servers report: read from their metrics, and what the choice of a target makes of it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import Peer, serving
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.backends.http.client import Transport
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import LoadMetrics
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.routing.dispatch import ordered
from xenoglot.gateway.routing.load_reports import MOST_BYTES, LoadReader, requests_of
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

VLLM = b"""\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="qwen/a b"} 3.0
vllm:num_requests_running{engine="1",model_name="qwen/a b"} 2.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="qwen/a b"} 7.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="qwen/a b"} 0.4
"""

SGLANG = b"""\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 4.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 1e+01
"""


def gauges(provider: str) -> tuple[str, ...]:
    return catalog.get(provider).gauges


@pytest.mark.parametrize(
    ("exposition", "names", "requests"),
    [
        pytest.param(VLLM, gauges("vllm"), 12, id="vllm"),
        pytest.param(SGLANG, gauges("sglang"), 14, id="sglang"),
        pytest.param(b"a 3 1700000000000\n", ("a",), 3, id="with-a-time"),
        pytest.param(b"a 0\n", ("a",), 0, id="idle"),
        pytest.param(VLLM, gauges("sglang"), None, id="another-server"),
        pytest.param(b"", ("a",), None, id="empty"),
        pytest.param(b"a NaN\n", ("a",), None, id="no-number"),
        pytest.param(b"a +Inf\n", ("a",), None, id="infinite"),
        pytest.param(b"a -4\n", ("a",), None, id="negative"),
        pytest.param(b"a 1e300\n", ("a",), None, id="too-many"),
        pytest.param(b"a word\n", ("a",), None, id="garbage"),
        pytest.param(b"xa 3\na.b 4\n", ("a", "a*b"), None, id="names-are-no-patterns"),
    ],
)
def test_what_an_exposition_reports(exposition: bytes, names: tuple[str, ...], requests: int | None) -> None:
    assert requests_of(exposition, names) == requests


def answer(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        pytest.param(answer(VLLM), 12, id="read"),
        pytest.param(answer(VLLM, b"404 Not Found"), None, id="no-metrics"),
        pytest.param(answer(b"#" * (MOST_BYTES + 1)), None, id="too-long"),
        pytest.param(b"nonsense\r\n\r\n", None, id="no-http"),
    ],
)
async def test_a_server_is_read(reply: bytes, found: int | None) -> None:
    reports: list[int | None] = []

    async def script(peer: Peer) -> None:
        request = await peer.request()
        assert request.startswith(b"GET /metrics HTTP/1.1\r\n")
        assert b"authorization" not in request.lower()
        peer.send(reply)

    async with serving(script) as server, AsyncExitStack() as stack:
        transport = Transport()
        stack.push_async_callback(transport.aclose)
        settings = LoadMetrics(gauges=gauges("vllm"))
        await LoadReader("gpu", f"{server.url}/some/v1", settings, transport, reports.append).step()
    assert reports == [found]


async def test_the_first_failure_of_a_row_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    replies = [answer(b""), answer(b""), answer(b"a 1\n"), answer(b"")]

    async def script(peer: Peer) -> None:
        while replies:
            await peer.request()
            peer.send(replies.pop(0))

    async with serving(script) as server, AsyncExitStack() as stack:
        transport = Transport()
        stack.push_async_callback(transport.aclose)
        reader = LoadReader("gpu", server.url, LoadMetrics(gauges=("a",)), transport, lambda _: None)
        for _ in range(4):
            await reader.step()
    line = "the load of upstream 'gpu' is unknown: none of the gauges a at /metrics"
    assert [record.getMessage() for record in caplog.records] == [line, line]


def plain(url: str, **load: object) -> JSONObject:
    server: JSONObject = {"provider": "vllm", "base_url": url}
    return {
        "server": {"port": 0, "drain_seconds": 0.0},
        "upstreams": {"busy": {**server, "load_metrics": load}, "idle": server},
        "models": [
            {
                "name": "m",
                "strategy": "least_busy",
                "affinity": "prefix",
                "targets": [{"upstream": "busy", "model": "m"}, {"upstream": "idle", "model": "m"}],
            }
        ],
    }


async def test_a_prefix_leaves_a_home_that_others_crowd() -> None:
    """wire-2026-t: 12 requests of other gateways at the home of a prefix, none of which this one knows."""
    again = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(answer(VLLM))
        await peer.request()
        again.set()

    async with (
        serving(script) as server,
        build_gateway(check(plain(server.url, seconds=0.1), {}, "the tests")) as gateway,
    ):
        plan = gateway.router.plan("m")
        assert plan is not None
        busy, idle = plan.routes
        targets = gateway.dispatcher.ward
        homes = {ordered(gateway.dispatcher, plan, plan.routes, f"group {n}")[0].backend for n in range(20)}
        assert homes == {"busy", "idle"}
        async with asyncio.timeout(TIMEOUT):
            await again.wait()  # what was read first has been reported
        assert (targets.of(busy).load.running, targets.of(idle).load.running) == (12, 0)
        homes = {ordered(gateway.dispatcher, plan, plan.routes, f"group {n}")[0].backend for n in range(20)}
        assert homes == {"idle"}
        targets.of(busy).running = 5
        targets.report("busy", 12)
        assert targets.of(busy).load.running == 12
        targets.report("busy", None)
        assert targets.of(busy).load.running == 5


def test_gauges_have_to_be_known() -> None:
    with pytest.raises(ConfigurationError, match=r"upstreams\.a\.load_metrics\.gauges: missing"):
        check({"upstreams": {"a": {"dialect": "chat", "base_url": "http://127.0.0.1:9", "load_metrics": {}}}}, {}, "f")
    with pytest.raises(ConfigurationError, match=r"upstreams\.busy\.load_metrics\.path"):
        check(plain("http://127.0.0.1:9", path="metrics"), {}, "f")
