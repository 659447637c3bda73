"""Upstreams that take their time: signs of life while they may, an error when not; on a clock that never jumps.

U09, U10, U35 and U50.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_aborted, assert_completed
from tests.faults.client_view import error_codes, read_stream
from tests.faults.fault_cases import BOTH, mode_of, wait_until_disconnected
from tests.faults.harness import IDLE, PING, TOTAL, GatewayHarness
from tests.faults.manual_clock import advance, wait_until
from tests.faults.upstream_steps import streamed_response, valid_response
from tests.faults.wire_responses import DIALECTS, FIRST, HELLO, SECOND
from xenoglot.dialect_registry import get
from xenoglot.testing.script import Body, End, Hang, Pause, Repeat, WaitEvent

if TYPE_CHECKING:
    from tests.faults.raw_client import RawClient

GO_ON = "go on"
LONG = 300.0
YEARS = 2e8
"""Seconds by which a wall clock may jump."""


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("where", ["U09-before-the-head", "U09-behind-the-head"])
def test_a_long_think(harness: GatewayHarness, where: str, client: str, upstream: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        steps = valid_response(upstream, streamed=streamed)
        head = 1 if where == "U09-behind-the-head" and streamed else 0
        harness.upstream.script((*steps[:head], WaitEvent(GO_ON), *steps[head:]))
        raw_client = await harness.start_request(client, f"patient-{upstream}-small", streamed=streamed)
        await harness.wait_for_upstream_requests()
        for _ in range(2):
            before = len(raw_client.reader.raw)
            await advance(PING)
            await wait_for_heartbeat(raw_client, before) if streamed else None
        await advance(LONG)
        harness.upstream.release(GO_ON)
        answer = await harness.read_response(raw_client)
        assert_completed(client, answer, streamed=streamed)
        line = harness.access_log_line()
        assert (line["finish"], line["failure"]) == ("stop", None)

    harness.run(scenario())


async def wait_for_heartbeat(raw_client: RawClient, before: int) -> None:
    """Wait until more has come than before."""
    await wait_until(lambda: len(raw_client.reader.raw) > before, "a sign of life comes")
    assert not raw_client.finished


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U10-{client}" for client in DIALECTS])
def test_a_long_pause_between_words(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U10: no deadline but that of the silence, and signs of life in it: events, where comments are none (Codex)."""

    async def scenario() -> None:
        wire = HELLO[upstream]
        rest = [Body(frame) for frame in (*wire.middle_frames, *wire.last_frames, *wire.end_mark)]
        harness.upstream.script(
            streamed_response(upstream, *wire.first_frames, ending=(WaitEvent(GO_ON), *rest, End()))
        )
        raw_client = await start_stream(harness, client, f"patient-{upstream}-small")
        before = len(raw_client.reader.raw)
        await advance(PING)
        await wait_for_heartbeat(raw_client, before)
        assert b"\ndata: " in raw_client.reader.raw[before:] or not get(client).begins_early
        await advance(LONG)
        harness.upstream.release(GO_ON)
        assert_completed(client, await harness.read_response(raw_client), streamed=True)

    harness.run(scenario())


async def start_stream(harness: GatewayHarness, client: str, model: str) -> RawClient:
    """Ask for a stream, and wait for its first word."""
    raw_client = await harness.start_request(client, model, streamed=True)
    await wait_until(lambda: FIRST.encode() in raw_client.reader.body or raw_client.finished, "the first word is heard")
    return raw_client


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U10-too-long-{client}" for client in DIALECTS])
def test_too_long_a_pause_between_words(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U10: the deadline of the silence is an error, and the upstream is let go."""

    async def scenario() -> None:
        harness.upstream.script(streamed_response(upstream, *HELLO[upstream].first_frames, ending=(Hang(),)))
        raw_client = await start_stream(harness, client, f"{upstream}-small")
        await advance(IDLE - 1)
        assert not raw_client.finished
        await advance(1)
        answer = await harness.read_response(raw_client)
        assert_aborted(client, answer, error_codes(client, "timeout", streamed=True), FIRST)
        assert harness.access_log_line()["failure"] == "timeout"
        await wait_until_disconnected(harness)

    harness.run(scenario())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U35-{client}" for client in DIALECTS])
def test_an_endless_stream(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U35: whoever never falls silent is stopped all the same."""

    async def scenario() -> None:
        wire = HELLO[upstream]
        more = Repeat((Pause(IDLE - 4), *(Body(frame) for frame in wire.middle_frames)))
        harness.upstream.script(streamed_response(upstream, *wire.first_frames, ending=(more,)))
        raw_client = await start_stream(harness, client, f"{upstream}-small")
        said = FIRST
        for _ in range(int(TOTAL / (IDLE - 4))):
            assert not raw_client.finished
            await advance(IDLE - 4)
            said += SECOND
            await wait_until(partial(has_received, client, raw_client, said), "words go on")
        await advance(IDLE - 4)
        answer = await harness.read_response(raw_client)
        assert_aborted(client, answer, error_codes(client, "timeout", streamed=True), said)
        await wait_until_disconnected(harness)

    harness.run(scenario())


def has_received(client: str, raw_client: RawClient, text: str) -> bool:
    """Whether these are the words so far."""
    return read_stream(client, raw_client.reader.body).text == text


@pytest.mark.parametrize("jump", [YEARS, -YEARS], ids=["U50-forward", "U50-back"])
@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_wall_clock_that_jumps(
    harness: GatewayHarness, client: str, jump: float, monkeypatch: pytest.MonkeyPatch, *, streamed: bool
) -> None:
    """U50: no deadline moves with it."""

    async def scenario() -> None:
        real = time.time
        steps = valid_response("messages", streamed=streamed)
        harness.upstream.script((WaitEvent(GO_ON), *steps))
        raw_client = await harness.start_request(client, "messages-small", streamed=streamed)
        await harness.wait_for_upstream_requests()
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        await advance(1)
        harness.upstream.release(GO_ON)
        assert_completed(client, await harness.read_response(raw_client), streamed=streamed)
        harness.upstream.script((Hang(),))
        raw_client = await harness.start_request(client, "messages-small", streamed=streamed)
        await harness.wait_for_upstream_requests(2)
        await advance(9)
        assert not raw_client.finished
        monkeypatch.undo()
        await advance(1)
        assert (await harness.read_response(raw_client)).status == 504

    harness.run(scenario())
