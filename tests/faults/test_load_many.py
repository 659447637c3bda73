"""A thousand streams at once (K23): all of them end well; how long the loop stood still is measured, and not judged."""

from __future__ import annotations

import asyncio
import resource
import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed
from tests.faults.upstream_steps import streamed_response
from tests.faults.wire_responses import HELLO
from xenoglot.testing.script import Body, End, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.harness import GatewayHarness

STREAMS = 1_000
DESCRIPTORS = 4 * STREAMS + 500
"""Both ends of two connections for each stream, and some."""

LONG = 120.0
"""Real seconds in which so many must end."""


@pytest.fixture(scope="module", autouse=True)
def descriptors() -> Iterator[None]:
    """Have as many descriptors as it takes, where the system gives them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < DESCRIPTORS:
        if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
            pytest.skip(f"the system gives {hard} descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("client", "upstream"), [("chat", "chat"), ("messages", "chat")], ids=["K23-alike", "K23-across"]
)
def test_a_thousand_streams(
    harness: GatewayHarness, client: str, upstream: str, record_property: Callable[[str, object], None]
) -> None:
    async def scenario() -> None:
        wire = HELLO[upstream]
        rest = [Body(frame) for frame in (*wire.middle_frames, *wire.last_frames, *wire.end_mark)]
        harness.upstream.script(
            ScriptRule(steps=streamed_response(upstream, *wire.first_frames, ending=[WaitEvent("go on"), *rest, End()]))
        )
        lags: list[float] = []
        watch = asyncio.create_task(measure_loop_lag(lags))
        raw_clients = [
            await harness.start_request(client, f"patient-{upstream}-small", streamed=True) for _ in range(STREAMS)
        ]
        await wait_until(lambda: all(b"Hel" in raw_client.reader.raw for raw_client in raw_clients))
        assert not any(raw_client.finished for raw_client in raw_clients)
        harness.upstream.release("go on")
        await wait_until(lambda: all(raw_client.finished for raw_client in raw_clients))
        watch.cancel()
        for raw_client in raw_clients:
            assert_completed(client, await harness.read_response(raw_client), streamed=True)
        record_property("longest_lag_ms", round(max(lags) * 1000))
        assert [line["failure"] for line in harness.access_log.lines] == [None] * STREAMS
        assert len(harness.upstream.requests) == STREAMS

    harness.run(scenario())


async def measure_loop_lag(lags: list[float]) -> None:
    """Note how long each turn of the loop takes."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0)
        lags.append(time.monotonic() - before)


async def wait_until(look: Callable[[], bool]) -> None:
    """Let the loop turn until that is so."""
    start = time.monotonic()
    while not look():
        for _ in range(50):
            await asyncio.sleep(0)
        assert time.monotonic() - start < LONG
