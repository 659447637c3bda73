"""Streams that are cut behind their finish reason: without a task and with one, the client gets the same bytes."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.faults.client_view import read_stream
from tests.faults.harness import GatewayHarness
from tests.faults.upstream_steps import CONNECTION_CLOSE
from tests.faults.wire_responses import HELLO
from tests.gateway.relay.both_drivers import LIMITED, PUSH_DIALECTS, assert_same_trace
from xenoglot.gateway.relay import envelope
from xenoglot.testing.script import Body, Close, End, Reset, ResponseHead

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.relay.both_drivers import ScenarioRun
    from xenoglot.testing.script import Step

CREATED = 1_700_000_000.0
PAIRS = (*((name, name) for name in PUSH_DIALECTS), ("chat", "messages"), ("messages", "chat"), ("messages", "gemini"))
ENDINGS: dict[str, tuple[Step, ...]] = {"ended": (End(),), "closed": (Close(),), "reset": (Reset(),)}
NEAR = 3
"""Bytes around the end of a frame that are looked at one by one; `tests/laws/test_closed.py` looks at all."""


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness with limits, whose places are counted."""
    with ExitStack() as stack:
        yield GatewayHarness(more={"keys": LIMITED}).start(stack)


@pytest.fixture(autouse=True)
def _created(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers without a time of their own made at the same one."""
    monkeypatch.setattr(envelope, "time", SimpleNamespace(time=lambda: CREATED))


def places(upstream: str) -> list[int]:
    """Return where a stream is cut: around the ends of all frames from the last word on, and inside each."""
    wire = HELLO[upstream]
    at = len(b"".join((*wire.first_frames, *wire.middle_frames)))
    found = {at}
    for frame in (*wire.last_frames, *wire.end_mark):
        at += len(frame)
        found |= {at - len(frame) // 2, *range(at - NEAR, at + 1)}
    return sorted(found)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_u13_u14_a_stream_that_is_cut(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, client: str, upstream: str, ending: str
) -> None:
    """findings-6."""
    wire = HELLO[upstream]
    first, head = b"".join(wire.first_frames), ResponseHead(200, (("content-type", wire.media_type), CONNECTION_CLOSE))
    for at in places(upstream):
        rest = wire.stream[len(first) : at]
        steps = (head, Body(first), *((Body(rest),) if rest else ()), *ENDINGS[ending])

        async def scenario(run: ScenarioRun, steps: tuple[Step, ...] = steps) -> None:
            run.harness.upstream.script(steps)
            await run.wait_for_end(await run.start_request(client, f"{upstream}-small", streamed=True))

        (answer,) = assert_same_trace(harness, monkeypatch, scenario).responses
        assert answer is not None
        assert answer.status == 200, at
        if answer.complete:
            said = read_stream(client, answer.body)
            assert (said.text, said.ended, said.error) == ("Hello", True, None), (at, answer.body)
        elif client != upstream:
            said = read_stream(client, answer.body)
            assert (said.ended, said.error is None) == (False, False), (at, answer.body)
