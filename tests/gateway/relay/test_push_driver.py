"""What passes without a task is told as a task tells it: every fault, and every moment at which somebody leaves.

Each case is played twice on one loop whose time is pushed: as it is, and with every request left to a task. Client,
upstream, log, metrics and gauges must see the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import ExitStack
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import turns
from tests.faults.client_requests import client_request
from tests.faults.harness import PING, GatewayHarness
from tests.faults.manual_clock import advance
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import DIALECTS, HELLO
from tests.gateway.relay.both_drivers import (
    GO_ON,
    LIMITED,
    PAIRS,
    PUSH_DIALECTS,
    ServedCounts,
    assert_same_trace,
    each_mode,
    mid_request,
    run_scenario,
    run_until_end,
    some_modes,
)
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.gateway.relay import envelope
from xenoglot.gateway.upstream.call import UpstreamCall
from xenoglot.testing.canned import answers
from xenoglot.testing.faults import FAULTS, fault
from xenoglot.testing.script import Body, Close, End, Reset, ResponseHead, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tests.faults.raw_client import RawClient
    from tests.gateway.relay.both_drivers import ScenarioRun
    from xenoglot.testing.script import Step

pytestmark = pytest.mark.usefixtures("with_shortcuts")

CREATED = 1_700_000_000.0


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness with limits, whose places are counted."""
    with ExitStack() as stack:
        yield GatewayHarness(more={"keys": LIMITED}).start(stack)


@pytest.fixture(autouse=True)
def _created(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers without a time of their own made at the same one."""
    monkeypatch.setattr(envelope, "time", SimpleNamespace(time=lambda: CREATED))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("upstream", DIALECTS)
def test_plain_requests_need_no_task(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, upstream: str, client: str, *, streamed: bool
) -> None:
    ways = ServedCounts(monkeypatch)

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(valid_response(upstream, streamed=streamed))
        await run.wait_for_end(await run.start_request(client, f"{upstream}-small", streamed=streamed))

    trace = run_scenario(harness, scenario)
    assert [line["status"] for line in trace.access_log] == [200]
    passes = client in (*PUSH_DIALECTS, "interactions")
    assert (ways.counts["passages"], ways.counts["tasks"]) == ((1, 0) if passes else (0, 1))


@each_mode
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_told_alike(  # noqa: PLR0913, PLR0917  the case, and two fixtures
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(fault(name, upstream, streamed=streamed))
        await run_until_end(run, await run.start_request(client, f"{upstream}-small", streamed=streamed))

    assert_same_trace(harness, monkeypatch, scenario)


# Silences, slow clients, and connections that are kept.


async def patient(run: ScenarioRun, client: str, upstream: str, steps: Sequence[Step]) -> RawClient:
    """Have a client ask an upstream for which everybody has time."""
    run.harness.upstream.script(tuple(steps))
    raw_client = await run.start_request(client, f"patient-{upstream}-small", streamed=True)
    await run.harness.wait_for_upstream_requests()
    await turns()
    return raw_client


@pytest.mark.parametrize(
    ("where", "client", "upstream"),
    [
        (where, *pair)
        for where, pair in product(("before", "behind-a-frame", "behind-a-half", "behind-signs"), PAIRS)
        if where != "behind-signs" or pair[1] != "ollama"  # whose lines have no comments
    ],
)
def test_silences_are_bridged(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, where: str, client: str, upstream: str
) -> None:
    wire = HELLO[upstream]
    frames = b"".join((*wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark))
    begun = b"".join(wire.first_frames)
    sign = b": a comment\n\n"
    first = {"before": b"", "behind-a-frame": begun, "behind-a-half": begun[:-3], "behind-signs": sign}[where]
    rest = frames if where == "behind-signs" else frames[len(first) :]

    async def scenario(run: ScenarioRun) -> None:
        pieces = [Body(first)] if first else []
        head = ResponseHead(headers=(("content-type", wire.media_type),))
        opening: tuple[Step, ...] = (head, *pieces, WaitEvent(GO_ON)) if first else (WaitEvent(GO_ON), head)
        raw_client = await patient(run, client, upstream, (*opening, Body(rest), End()))
        await advance(PING + 1.0)
        await advance(PING + 1.0)
        run.harness.upstream.release(GO_ON)
        await run.wait_for_end(raw_client)

    assert_same_trace(harness, monkeypatch, scenario)


def test_reasoning_that_the_client_does_not_get_is_a_silence(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clients-0: the upstream is never silent for long, the client hears of it for minutes."""
    begun, thought, *rest = answers("chat", reasoning="hm").frames
    assert b"reasoning_content" in thought

    async def scenario(run: ScenarioRun) -> None:
        steps = [step for number in range(5) for step in (Body(thought), WaitEvent(f"{GO_ON} {number}"))]
        head = ResponseHead(headers=(("content-type", "text/event-stream"),))
        raw_client = await patient(run, "messages", "chat", (head, Body(begun), *steps, *map(Body, rest), End()))
        for number in range(5):
            await advance(PING / 2 + 1.0)
            run.harness.upstream.release(f"{GO_ON} {number}")
            await turns()
        await run.wait_for_end(raw_client)

    (told,) = assert_same_trace(harness, monkeypatch, scenario).responses
    assert told is not None
    assert told.body.count(b"event: ping") == 2
    assert b"thinking" not in told.body


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_slow_client_is_waited_for(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, client: str, upstream: str
) -> None:
    wire = HELLO[upstream]
    count, word = 400, "x" * 50_000
    frame = b"".join(wire.middle_frames).replace(b"lo", word.encode(), 1)
    assert len(frame) > len(word)
    unsent: list[bool] = []

    async def scenario(run: ScenarioRun) -> None:
        begun = [Body(each) for each in wire.first_frames]
        ended = [Body(each) for each in (*wire.last_frames, *wire.end_mark)]
        head = ResponseHead(headers=(("content-type", wire.media_type),))
        run.harness.upstream.script((head, *begun, *([Body(frame)] * count), *ended, End()))
        raw_client = await run.start_request(client, f"patient-{upstream}-small", streamed=True)
        await run.wait_for_bytes(raw_client, b"Hel")
        raw_client.transport.pause_reading()
        await turns(2_000)
        unsent.append(run.harness.upstream.connections[-1].sent_bytes < count * len(frame))
        raw_client.transport.resume_reading()
        await run.wait_for_end(raw_client)

    trace = assert_same_trace(harness, monkeypatch, scenario)
    assert unsent == [True, True]
    assert [line["failure"] for line in trace.access_log] == [None]


@some_modes
@pytest.mark.parametrize("ending", [Close(), Reset()], ids=["fin", "reset"])
def test_a_kept_connection_that_was_closing(  # noqa: PLR0913, PLR0917  the case, and two fixtures
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    ending: Step,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    answer = answers(upstream)
    kept = answer.streamed() if streamed else answer.complete()

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(
            ScriptRule(steps=kept, times=1),
            ScriptRule(steps=(ending,), times=1),
            valid_response(upstream, streamed=streamed),
        )
        for _ in range(2):
            await run.wait_for_end(await run.start_request(client, f"{upstream}-small", streamed=streamed))
            await turns()

    trace = assert_same_trace(harness, monkeypatch, scenario, passages=2)
    assert [(line["status"], line["tries"]) for line in trace.access_log] == [(200, 1)] * 2
    assert len(trace.upstream_requests) == 3


# Bugs, and how requests come.


@some_modes
@pytest.mark.parametrize("place", ["composing", "sending", "answering", "first-words", "later-words"])
def test_a_bug_is_owned_up_to(  # noqa: PLR0913, PLR0917  as above
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    def raising(*_: object, **__: object) -> None:
        raise ValueError("a bug")

    write = StreamWriter.write
    left = [0]

    def writing(stage: StreamWriter, events: object) -> bytes:
        left[0] -= 1
        if left[0] < 0:
            raise ValueError("a bug")
        return write(stage, events)  # type: ignore[arg-type]  # as it came

    async def scenario(run: ScenarioRun) -> None:
        left[0] = 0 if place == "first-words" else 1
        run.harness.upstream.script(valid_response(upstream, streamed=streamed))
        await run.wait_for_end(await run.start_request(client, f"{upstream}-small", streamed=streamed))

    if place == "composing":
        monkeypatch.setattr(UpstreamCall, "call", raising)
    elif place == "sending":
        monkeypatch.setattr(Remote, "_request", raising)
    elif place == "answering":
        monkeypatch.setattr(Remote, "limits", raising)
    else:
        monkeypatch.setattr(StreamWriter, "write", writing)
    assert_same_trace(harness, monkeypatch, scenario, passages=0 if place == "composing" else 1)


@some_modes
def test_a_request_comes_in_many_reads(
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        raw_client = await mid_request(run, client, upstream, streamed=streamed)
        data = json.dumps(client_request(client, f"{upstream}-small", "Hi", streamed=streamed)[1]).encode()
        for byte in data[-9:]:
            await turns(5)
            raw_client.transport.write(bytes((byte,)))
        await run.wait_for_end(raw_client)

    trace = assert_same_trace(harness, monkeypatch, scenario)
    assert [line["status"] for line in trace.access_log] == [200]


@some_modes
def test_requests_behind_each_other(
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    heads: list[list[bytes]] = []

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(ScriptRule(steps=valid_response(upstream, streamed=streamed)))
        path, body = client_request(client, f"{upstream}-small", "Hi", streamed=streamed)
        data = json.dumps(body).encode()
        key = run.harness.canaries.client_key
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: {len(data)}\r\n"
        last = f"{head}connection: close\r\n\r\n".encode() + data
        reader, writer = await asyncio.open_connection("127.0.0.1", run.harness.port)
        writer.write((f"{head}\r\n".encode() + data) * 2 + last)
        raw = await reader.read()
        writer.close()
        heads.append(re.findall(rb"HTTP/1\.1 \d+", raw))

    trace = assert_same_trace(harness, monkeypatch, scenario, passages=3)
    assert heads == [[b"HTTP/1.1 200"] * 3] * 2
    assert [line["status"] for line in trace.access_log] == [200] * 3
