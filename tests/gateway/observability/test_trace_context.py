"""The trace of a client: which headers are valid, and which of them upstreams get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.config.settings import UpstreamSettings
from xenoglot.gateway.observability.trace_context import LONGEST_STATE, TraceContext, read_trace_context
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from xenoglot.gateway.config.settings import TraceHeaders
    from xenoglot.model.json import JSONObject

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
STATE = "vendor=a1,other=b2"
TURNS: JSONObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def test_a_context_has_the_ids_of_its_header() -> None:
    context = read_trace_context([("host", "a"), ("traceparent", f" {PARENT}\t"), ("tracestate", STATE)])
    assert context == TraceContext(PARENT, STATE)
    assert (context.trace_id, context.span_id, context.flags) == (TRACE, "00f067aa0ba902b7", 1)
    assert context.headers == (("traceparent", PARENT), ("tracestate", STATE))


@pytest.mark.parametrize(
    "header",
    [
        "",
        PARENT.upper(),
        PARENT[:-1],
        f"{PARENT}-more",
        f"ff{PARENT[2:]}",
        f"ff{PARENT[2:]}-more",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-nothing{TRACE[7:]}-00f067aa0ba902b7-01",
        f"cc{PARENT[2:]}-a b",
    ],
)
def test_what_is_no_context_is_ignored(header: str) -> None:
    assert read_trace_context([("traceparent", header), ("tracestate", STATE)]) is None


def test_a_later_version_is_read_as_the_one_that_is_known() -> None:
    assert read_trace_context([("traceparent", f"cc{PARENT[2:]}-more")]) == TraceContext(PARENT)


def test_two_parents_are_none_and_states_are_joined() -> None:
    assert read_trace_context([("traceparent", PARENT), ("traceparent", PARENT)]) is None
    parts = [("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")]
    assert read_trace_context(parts) == TraceContext(PARENT, "a=1,b=2")


@pytest.mark.parametrize("state", ["", "x" * (LONGEST_STATE + 1), "a=\x7f", "a=\xe9"])
def test_a_state_that_cannot_be_passed_on_is_left_out(state: str) -> None:
    assert read_trace_context([("traceparent", PARENT), ("tracestate", state)]) == TraceContext(PARENT)


@pytest.mark.parametrize(
    ("setting", "provider", "names"),
    [
        (None, None, ("traceparent", "tracestate")),
        (None, "somebody", ("traceparent",)),
        ("full", "somebody", ("traceparent", "tracestate")),
        ("parent", None, ("traceparent",)),
        ("off", None, ()),
    ],
)
def test_a_provider_gets_no_state_unless_that_is_set(
    setting: TraceHeaders | None, provider: str | None, names: tuple[str, ...]
) -> None:
    upstream = UpstreamSettings(dialect="chat", base_url="http://a", trace_context=setting, provider=provider)
    assert upstream.trace_headers == names


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"], ids=["verbatim", "translated"])
def test_upstreams_get_the_trace_of_each_request(path: str, *, stream: bool) -> None:
    other = PARENT.replace("4bf9", "5bf9")
    invalid = {"traceparent": "00-no-no-01"}
    contexts = [{"traceparent": PARENT, "tracestate": STATE}, {"traceparent": other}, {}, invalid]
    with (
        Upstream(*answers("chat", text="Hello.").rules()) as server,
        DialectGateway(server) as running,
        httpx2.Client(timeout=TIMEOUT) as client,  # one connection: heads of requests are kept for it
    ):
        for headers in contexts:
            answer = client.post(running.url + path, json={**TURNS, "stream": stream}, headers=headers)
            assert answer.status_code == 200
    seen = [
        {name: value for name, value in request.headers if name in {"traceparent", "tracestate"}}
        for request in server.requests
    ]
    assert seen == [contexts[0], contexts[1], {}, {}]


def test_operations_pass_the_trace_on_and_a_setting_keeps_it_here() -> None:
    body: JSONObject = {"model": "m", "input": "Hi"}
    off: JSONObject = {"upstream": {"trace_context": "off"}}
    for more, expected in ((off, []), ({}, [PARENT])):
        with Upstream() as server, DialectGateway(server, **more) as running:
            headers = {"traceparent": PARENT}
            httpx2.post(f"{running.url}/v1/embeddings", json=body, headers=headers, timeout=TIMEOUT)
        values = [value for request in server.requests[:1] for name, value in request.headers if name == "traceparent"]
        assert values == expected
