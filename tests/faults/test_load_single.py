"""One request is one attempt at a time, and one answer; nothing that a model asks for is run; a full disk stops nobody.

K05, K18, K20 and K24.
"""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
import os
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed
from tests.faults.client_requests import client_request
from tests.faults.fault_cases import BOTH, mode_of
from tests.faults.harness import GatewayHarness
from tests.faults.upstream_steps import streamed_response, valid_response, whole_response
from tests.faults.wire_responses import ALL_DIALECTS, HELLO, WITH_TOOLS, error_body
from xenoglot.testing.canned import answers
from xenoglot.testing.script import Hang, Reset, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

every_client = pytest.mark.parametrize("client", ALL_DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)

FAILURES: dict[str, Sequence[Step]] = {
    "refuses": whole_response(error_body("chat", "down"), 503),
    "breaks-off": (Reset(),),
    "breaks-while-held-back": streamed_response("chat", *HELLO["chat"].first_frames, ending=(Reset(),)),
    "falls-silent-in-an-error": streamed_response(
        "chat", *HELLO["chat"].first_frames, HELLO["chat"].error, ending=(Hang(),)
    ),
}


class TwoTargetsHarness(GatewayHarness):
    """Has two targets for `two-small`, and holds the beginning of a stream back."""

    def _config(self) -> JSONObject:
        config = super()._config()
        targets = [{"upstream": name, "model": "small", "tier": tier} for tier, name in enumerate(("chat", "messages"))]
        held = {"seconds": 0.5, "bytes": 65_536}
        config["models"].append({"name": "two-small", "targets": targets, "buffer": held})
        return config


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give such a harness."""
    with ExitStack() as stack:
        yield TwoTargetsHarness().start(stack)


@every_client
@pytest.mark.parametrize("how", [pytest.param(name, id=f"K05-{name}") for name in FAILURES])
def test_of_two_targets_one_is_asked_at_a_time(harness: GatewayHarness, how: str, client: str) -> None:
    """Nobody is asked beside another: the first is let go before the second hears of it. What counts is told once."""
    left: list[bool] = []

    def steps(received: Received) -> Sequence[Step]:
        if b'"system"' in received.body or "messages" in received.path:
            left.append(harness.upstream.connections[0].closed is not None or how == "refuses")
            return valid_response("messages", streamed=True)
        return FAILURES[how]

    async def scenario() -> None:
        harness.upstream.script(ScriptRule(steps=steps))
        answer = await harness.request(client, "two-small", streamed=True)
        assert_completed(client, answer, streamed=True)
        assert [request.path for request in harness.upstream.requests] == ["/v1/chat/completions", "/v1/messages"]
        line = harness.access_log_line()
        usage = line["usage"]
        assert isinstance(usage, dict)
        assert (usage["input_tokens"], usage["output_tokens"]) == (5, 2)
        assert (line["tries"], line["finish"], line["failure"]) == (2, "stop", None)
        assert len(left) == 1

    harness.run(scenario())


@every_client
@each_mode
def test_k24_equal_questions_are_each_asked(harness: GatewayHarness, client: str, *, streamed: bool) -> None:
    """No answer is kept for another request, so nobody gets what another was told."""

    async def scenario() -> None:
        harness.upstream.script(ScriptRule(steps=(WaitEvent("go on"), *valid_response("chat", streamed=streamed))))
        raw_clients = [await harness.start_request(client, "chat-small", streamed=streamed) for _ in range(5)]
        await harness.wait_for_upstream_requests(5)
        harness.upstream.release("go on")
        for raw_client in raw_clients:
            assert_completed(client, await harness.read_response(raw_client), streamed=streamed)
        assert_completed(client, await harness.request(client, "chat-small", streamed=streamed), streamed=streamed)
        assert len(harness.upstream.requests) == 6

    harness.run(scenario())


def _never(*_arguments: object, **_more: object) -> None:
    raise AssertionError("something is run")


@each_mode
@pytest.mark.parametrize("client", WITH_TOOLS)
@pytest.mark.parametrize("upstream", WITH_TOOLS)
def test_k20_what_a_model_calls_is_run_by_nobody_here(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, client: str, upstream: str, *, streamed: bool
) -> None:
    """The loop is the client's: a call is its answer, however the model goes on calling; no endpoint runs anything."""
    for where, name in (
        (subprocess, "Popen"),
        (asyncio, "create_subprocess_exec"),
        (asyncio, "create_subprocess_shell"),
    ):
        monkeypatch.setattr(where, name, _never)

    async def scenario() -> None:
        made = answers(upstream, text=(), tool=("bash", '{"command": "touch /tmp/never"}'))
        closing = (("connection", "close"),)
        steps = made.streamed(headers=closing) if streamed else made.complete(headers=closing)
        harness.upstream.script(ScriptRule(steps=steps))
        answer = await harness.request(client, f"{upstream}-small", streamed=streamed)
        assert (answer.status, answer.complete) == (200, True)
        assert b"bash" in answer.body
        assert len(harness.upstream.requests) == 1
        assert harness.access_log_line()["finish"] == "tool_calls"

    harness.run(scenario())


class FullDisk(io.TextIOBase):
    """A file on a disk that is full."""

    def write(self, _text: str) -> int:
        """Fail."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@every_client
@each_mode
def test_k18_a_full_disk_under_the_log_stops_nobody(
    harness: GatewayHarness, capsys: pytest.CaptureFixture[str], client: str, *, streamed: bool
) -> None:
    loggers = [logging.getLogger(name) for name in ("xenoglot.access", "xenoglot.gateway")]

    async def scenario() -> None:
        harness.upstream.script(valid_response("chat", streamed=streamed))
        path, body = client_request(client, "chat-small", "Hi", streamed=streamed)
        answer = await harness.read_response(await harness.post(path, json.dumps(body).encode()))
        assert_completed(client, answer, streamed=streamed)

    handler = logging.StreamHandler(FullDisk())
    for logger in loggers:
        logger.addHandler(handler)
    try:
        harness.run(scenario())
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert "No space left on device" in capsys.readouterr().err
