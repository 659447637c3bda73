"""The request log: why each try failed, for the operator; clients see no upstream host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.client.test_error_messages import HTML, PATH, answer, error, misbehaving
from tests.gateway.routing.test_fallback import configured
from tests.gateway.scripted_backends import CHAT, HELLO
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.scripted import Scripted
from xenoglot.dialect_registry import get
from xenoglot.gateway.routing import dispatch
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines, RunningGateway

KEY = "sk-the-key-of-the-upstream"
CUT_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 10000\r\n\r\n"
    b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
)


def server(url: str) -> Remote:
    """The upstream at `url`."""
    return Remote("a", get("chat"), url, transport=Transport(), keys=(KEY,), key_source="$UPSTREAM_KEY")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param(None, "cannot connect to {url}: connection refused; is the server running?", id="refused"),
        pytest.param(error(500, "on fire"), "HTTP 500 from {url}{path}: on fire", id="500"),
        pytest.param(
            error(401, f"not {KEY}"),
            "401 from {url}{path}: the key in $UPSTREAM_KEY was refused: not [redacted]",
            id="401",
        ),
        pytest.param(
            answer(200, HTML, "text/html"),
            "{url}{path} answered HTML (200, text/html), not JSON: is the base URL right?",
            id="html",
        ),
        pytest.param(error(429, "slow down"), "rate limited (429) by {url}{path}: slow down", id="429"),
        pytest.param(error(400, "your prompt `secret` is bad"), "HTTP 400 from {url}{path}", id="400-without-its-text"),
    ],
)
@pytest.mark.parametrize("fallback", [False, True])
def test_the_log_says_why_each_try_failed(
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    said: bytes | None,
    reason: str,
    fallback: bool,  # noqa: FBT001  a case
) -> None:
    with misbehaving(said) as url:
        other = Scripted(HELLO) if fallback else server(url)
        running = gateway_server({"a": server(url), "b": other}, configured())
        answered = running.request("POST", PATH, CHAT)
        why = reason.format(url=url, path=PATH)
        refused = "HTTP 400" in reason
    tries = [f"a/one: {why}"] + ([] if fallback or refused else [f"b/two: {why}"])
    line = access_lines.next()
    assert isinstance(line, dict)
    assert line["failed_tries"] == tries
    assert answered.status == (200 if fallback and not refused else line["status"])
    shown = answered.body + repr(answered.headers).encode()
    assert url.removeprefix("http://").encode() not in shown
    assert KEY.encode() not in shown


@pytest.mark.parametrize(
    ("retry", "seconds", "reason"),
    [
        (Retry(attempts=1, budget=0.0, budget_floor=0), 60.0, dispatch.NO_BUDGET),
        (Retry(attempts=1), 1e-9, dispatch.TOO_LATE),
    ],
    ids=["budget", "deadline"],
)
def test_the_log_says_why_there_was_no_further_try(
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    retry: Retry,
    seconds: float,
    reason: str,
) -> None:
    config = configured(retry_deadline_seconds=seconds)
    upstreams = {name: replace(upstream, retry=retry) for name, upstream in config.upstreams.items()}
    with misbehaving(error(500, "on fire")) as url:
        running = gateway_server({"a": server(url), "b": Scripted(HELLO)}, replace(config, upstreams=upstreams))
        assert running.request("POST", PATH, CHAT).status == 500
    line = access_lines.next()
    assert isinstance(line, dict)
    assert line["failed_tries"] == [f"a/one: HTTP 500 from {url}{PATH}: on fire", f"b/two: {reason}"]


def test_the_log_says_why_a_stream_broke_off(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines
) -> None:
    with misbehaving(CUT_STREAM) as url:
        running = gateway_server({"a": server(url), "b": server(url)}, configured())
        answered = running.request("POST", PATH, {**CHAT, "stream": True})
    line = access_lines.next()
    assert isinstance(line, dict)
    reason = "it closed the connection before the end of its response; see the log of that server"
    assert line["failed_tries"] == [f"a/one: connection lost to {url}: {reason}"]
    assert url.removeprefix("http://").encode() not in answered.body


def test_a_request_that_is_answered_at_once_has_no_failed_tries(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines
) -> None:
    running = gateway_server({"a": Scripted(HELLO), "b": Scripted(HELLO)}, configured())
    assert running.request("POST", PATH, CHAT).status == 200
    line = access_lines.next()
    assert isinstance(line, dict)
    assert "failed_tries" not in line
