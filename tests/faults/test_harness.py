"""The harness itself does nothing at a time that the machine chooses."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import pytest

from tests.backends.raw_server import turns
from tests.faults.assertions import assert_completed
from tests.faults.harness import GatewayHarness
from tests.faults.manual_clock import advance
from tests.faults.upstream_steps import valid_response
from xenoglot.gateway.http import process_resources
from xenoglot.testing.script import WaitEvent


def test_no_thread_opens_files_while_descriptors_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway returns memory some seconds after its last request, in a thread that imports what it needs."""
    trimmed: list[None] = []
    monkeypatch.setattr(process_resources, "trim", lambda: trimmed.append(None))
    with ExitStack() as stack:
        harness = GatewayHarness().start(stack)

        async def scenario() -> None:
            harness.upstream.script((WaitEvent("go on"), *valid_response("chat", streamed=False)))
            raw_client = await harness.start_request("chat", "chat-small", streamed=False)
            await harness.wait_for_upstream_requests()
            await advance(1.0)
            harness.upstream.release("go on")
            await harness.read_response(raw_client)
            for _ in range(int(process_resources.IDLE_SECONDS) * 4):
                await advance(1.0)

        harness.run(scenario())
    assert trimmed == []


def test_a_slow_machine_is_never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        harness = GatewayHarness().start(stack)

        async def scenario() -> None:
            harness.upstream.script((WaitEvent("go on"), *valid_response("chat", streamed=True)))
            raw_client = await harness.start_request("chat", "chat-small", streamed=True)
            await harness.wait_for_upstream_requests()
            now = time.monotonic()
            monkeypatch.setattr(time, "monotonic", lambda: now + 3600.0)
            await turns()
            harness.upstream.release("go on")
            assert_completed("chat", await harness.read_response(raw_client), streamed=True)

        harness.run(scenario())


@pytest.mark.parametrize("collected", [0, 1, 2])
def test_what_a_case_leaves_open_is_seen_whatever_else_is_closed(collected: int) -> None:
    """The sockets of other tests are closed when the collector comes to them, in the middle of any case."""
    others = [socket.socket() for _ in range(collected)]
    with ExitStack() as stack:
        harness = GatewayHarness().start(stack)

        async def scenario() -> None:
            for one in others:
                one.close()
            await turns()
            assert not harness._left_open()
            with socket.socket():
                assert harness._left_open()

        harness.run(scenario())
