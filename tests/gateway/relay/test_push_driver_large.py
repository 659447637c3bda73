"""Large frames of a stream: decoded in a thread, sent a few events at a time, and otherwise told as all others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import turns
from tests.faults.harness import GatewayHarness
from tests.faults.wire_responses import HELLO, sse_event
from tests.gateway.relay.both_drivers import PAIRS, assert_same_trace, run_scenario, run_until_end
from xenoglot.backends import stream_guard
from xenoglot.backends.offload import LARGE, Offload, Result
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.gateway.relay import answer as answer_relay
from xenoglot.gateway.relay import envelope, push_stream
from xenoglot.testing.script import Body, Close, End, Reset, ResponseHead

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from tests.gateway.relay.both_drivers import ScenarioRun, Trace
    from xenoglot.model.events import Event
    from xenoglot.testing.script import Step

pytestmark = pytest.mark.usefixtures("with_shortcuts")


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    with ExitStack() as stack:
        yield GatewayHarness().start(stack)


@pytest.fixture(autouse=True)
def _created(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers without a time of their own made at the same one."""
    monkeypatch.setattr(envelope, "time", SimpleNamespace(time=lambda: 1_700_000_000.0))


@pytest.fixture
def threadless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have large work done a few turns of the loop later: time is pushed here while nothing happens in the loop."""

    async def run(_: Offload, __: int, work: Callable[[], Result]) -> Result:
        await turns(5)
        return work()

    monkeypatch.setattr(Offload, "run", run)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have large work done in a thread and the loop wait: time is pushed here while nothing happens in the loop."""

    async def run(_: Offload, __: int, work: Callable[[], Result]) -> Result:
        await turns(5)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    monkeypatch.setattr(Offload, "run", run)


def calls(count: int) -> bytes:
    """A frame of Chat Completions with so many tool calls."""
    made = [
        {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for n in range(count)
    ]
    return sse_event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"tool_calls": made}}]})


def words(upstream: str, size: int) -> bytes:
    """A frame with a long text."""
    return b"".join(HELLO[upstream].middle_frames).replace(b'"lo"', b'"%b"' % (b"x" * size), 1)


def steps(upstream: str, large: Sequence[bytes], *ending: Step, first: bool = True) -> tuple[Step, ...]:
    """An answer with a large frame, in several reads, behind a small one or as the `first`."""
    wire = HELLO[upstream]
    begun = [Body(each) for each in wire.first_frames] if first else []
    ended = ending or (*(Body(each) for each in (*wire.last_frames, *wire.end_mark)), End())
    return (ResponseHead(headers=(("content-type", wire.media_type),)), *begun, *map(Body, large), *ended)


def played(harness: GatewayHarness, client: str, upstream: str, script: tuple[Step, ...]) -> Trace:
    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(script)
        await run_until_end(run, await run.start_request(client, f"{upstream}-small", streamed=True))

    return run_scenario(harness, scenario)


@pytest.mark.usefixtures("joined")
@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
@pytest.mark.parametrize("pieces", [1, 9])
def test_the_loop_decodes_no_large_frame_and_sends_few_events_at_once(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, client: str, pieces: int
) -> None:
    loops = {threading.get_ident()}
    decoded: list[int] = []
    written: list[int] = []
    feed, write = StreamReader.feed, StreamWriter.write

    def fed(reader: StreamReader, chunk: bytes) -> Sequence[Event]:
        if threading.get_ident() in loops:
            decoded.append(reader.held + len(chunk))
        return feed(reader, chunk)

    def wrote(writer: StreamWriter, events: Sequence[Event]) -> bytes:
        written.append(len(events))
        return write(writer, events)

    monkeypatch.setattr(StreamReader, "feed", fed)
    monkeypatch.setattr(StreamWriter, "write", wrote)
    frame = calls(2_500)
    assert len(frame) > LARGE
    size = len(frame) // pieces + 1
    cut = [frame[at : at + size] for at in range(0, len(frame), size)]
    trace = played(harness, client, "chat", steps("chat", cut))
    assert [line["failure"] for line in trace.access_log] == [None]
    assert max(decoded) < LARGE
    assert max(written, default=0) <= answer_relay.MOST_EVENTS
    (told,) = trace.responses
    assert told is not None
    assert told.body.count(b'"c') >= 2_500


ENDINGS: dict[str, tuple[Step, ...]] = {"whole": (), "cut": (Close(),), "reset": (Reset(),)}


@pytest.mark.usefixtures("threadless")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("first", [pytest.param(True, id="later"), pytest.param(False, id="first")])
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_large_frame_is_told_as_a_small_one(  # noqa: PLR0913, PLR0917  the case, and two fixtures
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    upstream: str,
    first: bool,  # noqa: FBT001  a case
    ending: str,
) -> None:
    frame = words(upstream, 900)
    cuts = [[frame], [frame[:500], frame[500:]], [frame[:-1], frame[-1:]], [frame, *[words(upstream, 2)] * 3]]
    for cut in cuts:
        script = steps(upstream, cut, *ENDINGS[ending], first=first)
        usual = played(harness, client, upstream, script)
        with monkeypatch.context() as patch:
            for module in (stream_guard, push_stream):
                patch.setattr(module, "LARGE", 400)
            patch.setattr(answer_relay, "MOST_EVENTS", 2)

            async def scenario(run: ScenarioRun, script: tuple[Step, ...] = script) -> None:
                run.harness.upstream.script(script)
                await run_until_end(run, await run.start_request(client, f"{upstream}-small", streamed=True))

            assert assert_same_trace(harness, patch, scenario).responses == usual.responses


@pytest.mark.usefixtures("threadless")
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_client_that_leaves_at_a_large_frame_ends_its_request(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, client: str, upstream: str
) -> None:
    monkeypatch.setattr(stream_guard, "LARGE", 400)
    monkeypatch.setattr(push_stream, "LARGE", 400)
    leaving: list[bool] = []

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(steps(upstream, [words(upstream, 900)] * 50))
        raw_client = await run.start_request(client, f"{upstream}-small", streamed=True)
        await run.wait_for_bytes(raw_client, b"Hel")
        raw_client.transport.abort()
        leaving.append(True)
        await turns(200)

    trace = run_scenario(harness, scenario)
    assert leaving == [True]
    assert [line["failure"] for line in trace.access_log] in (["cancelled"], [None])
