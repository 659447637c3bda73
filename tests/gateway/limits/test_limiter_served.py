"""Limits as clients meet them: what is answered, when to come again, and what the metrics say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import FIRST_EVENTS, PATHS, Backend, BlockingBackend, RateLimitedBackend
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.settings import KeySettings, ModelSettings, UpstreamSettings
from xenoglot.gateway.config.targets import ModelTarget
from xenoglot.model.limits import RateLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import GatewayResponse, RunningGateway

URL = "http://upstream.invalid/v1"


def greeting() -> Backend:
    """A backend that says hello: two tokens, for a prompt of five."""
    return RateLimitedBackend(RateLimits(), failing=False)


def held(running: RunningGateway) -> dict[str, int]:
    """What is held of each limit, by kind."""
    limiter = running.gateway.limiter
    return {name.partition(":")[0]: usage.slots_used for name, usage in limiter._room.ledger.scopes.items()}  # type: ignore[attr-defined]


def request(running: RunningGateway, path: str = "/v1/chat/completions", key: str = "one") -> GatewayResponse:
    return running.request("POST", path, PATHS[path], {"x-api-key": key})


def of_clients(limits: LimitSettings) -> dict[str, object]:
    """The configuration of two clients that are limited."""
    return {"keys": KeySettings(env=("CLIENTS",), limits=limits), "secrets": Secrets({"CLIENTS": "one two"})}


@pytest.mark.parametrize("path", PATHS)
def test_r30_a_client_over_its_limit_is_told_when_to_come_again(
    gateway_server: Callable[..., RunningGateway], path: str
) -> None:
    limits = LimitSettings(requests=("2/1h",))
    running = gateway_server({"a": greeting()}, config_for("a", **of_clients(limits)))
    answers = [request(running, path), request(running, path), request(running, path), request(running, path, "two")]
    assert [answer.status for answer in answers] == [200, 200, 429, 200]
    assert answers[2].headers["retry-after"] == "60"
    assert "the rate limit of this API key is reached" in answers[2].body.decode()
    told = running.request("GET", "/metrics", None, {"x-api-key": "one"}).body.decode()
    assert 'xenoglot_limits_refused_requests_total{scope="key",failure="rate_limit"} 1\n' in told
    assert held(running) == {"key": 0}


def test_k07_tokens_that_were_not_used_come_back(gateway_server: Callable[..., RunningGateway]) -> None:
    limits = LimitSettings(tokens=("1100/1h",))
    running = gateway_server({"a": greeting()}, config_for("a", **of_clients(limits)))
    assert [request(running).status for _ in range(5)] == [200] * 5
    (room,) = running.gateway.limiter._room.ledger.scopes.values()  # type: ignore[attr-defined]
    assert room.tokens[0].used(running.gateway.limiter.clock()) == 5 * 7  # type: ignore[attr-defined]


def test_what_no_wait_would_help_is_refused_for_good(gateway_server: Callable[..., RunningGateway]) -> None:
    limits = LimitSettings(tokens=("15/1h",))
    running = gateway_server({"a": greeting()}, config_for("a", **of_clients(limits)))
    answer = request(running, "/v1/messages")
    assert (answer.status, answer.headers["x-should-retry"]) == (400, "false")
    assert "a request may have at most 15 tokens, its answer included" in answer.body.decode()
    assert "retry-after" not in answer.headers


def test_k09_no_place_in_time_is_overload(gateway_server: Callable[..., RunningGateway]) -> None:
    upstream = UpstreamSettings(dialect="chat", base_url=URL, limits=LimitSettings(concurrency=1, queue=0))
    hanging = BlockingBackend()
    running = gateway_server({"a": hanging}, config_for(upstreams={"a": upstream}))
    with running.connect() as first:
        first.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(BODY)
        )
        first.sendall(BODY)
        assert hanging.called.wait(120)
        answer = request(running)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert held(running) == {"upstream": 1}
    assert hanging.cancelled.wait(120)
    assert hanging.called.is_set()


def test_a_full_target_is_not_waited_for_where_there_is_another(gateway_server: Callable[..., RunningGateway]) -> None:
    limits = LimitSettings(requests=("1/1h",))
    upstreams = {
        "a": UpstreamSettings(dialect="chat", base_url=URL, limits=limits),
        "b": UpstreamSettings(dialect="chat", base_url=URL),
    }
    targets = (ModelTarget(upstream="a"), ModelTarget(upstream="b"))
    model = ModelSettings(name="m", targets=targets, strategy="ordered")
    running = gateway_server({"a": greeting(), "b": greeting()}, config_for(upstreams=upstreams, models=(model,)))
    answers = [request(running) for _ in range(3)]
    assert [(answer.status, answer.headers["x-xenoglot-target"]) for answer in answers] == [
        (200, "a/m"),
        (200, "b/m"),
        (200, "b/m"),
    ]


@pytest.mark.parametrize("begun", [(), FIRST_EVENTS], ids=["C01-before-it-begins", "C02-in-the-middle"])
def test_c01_c02_who_leaves_holds_nothing(
    gateway_server: Callable[..., RunningGateway], begun: tuple[object, ...]
) -> None:
    hanging = BlockingBackend(begun)  # type: ignore[arg-type]
    limits = LimitSettings(concurrency=1, tokens=("5000/1h",))
    upstream = UpstreamSettings(dialect="chat", base_url=URL, limits=limits)
    model = ModelSettings(name="m", upstream="a", limits=limits)
    running = gateway_server({"a": hanging}, config_for(upstreams={"a": upstream}, models=(model,)))
    body = BODY.replace(b"{", b'{"stream": true, ', 1)
    with running.connect() as client:
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        client.sendall(body)
        assert hanging.called.wait(120)
        assert held(running) == {"model": 1, "upstream": 1}
    assert hanging.cancelled.wait(120)
    running.stop()
    assert held(running) == {"model": 0, "upstream": 0}


BODY = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
