"""Cases played twice on one loop whose time is pushed: as they are, and with every request left to a task."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.backends.raw_server import turns
from tests.faults.client_requests import client_request
from tests.faults.manual_clock import advance, wait_until
from tests.faults.raw_client import RawClient
from tests.faults.upstream_steps import streamed_response, valid_response
from tests.faults.wire_responses import HELLO
from tests.shortcuts import switched
from xenoglot.backends.http.connection import UpstreamConnection as Asking
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.http import connection as http_connection
from xenoglot.gateway.limits.limiter import MemoryLimiter
from xenoglot.policy.target_health import Breaker
from xenoglot.testing.connection import ScriptedConnection as Answering
from xenoglot.testing.script import Body, End, ResponseHead, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from tests.faults.harness import GatewayHarness
    from tests.faults.raw_client import RawResponse
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.policy.limits.usage_ledger import ScopeReservation
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

    Scenario = Callable[["ScenarioRun"], Awaitable[None]]

GO_ON = "go on"
PAIRS = (("chat", "chat"), ("messages", "messages"), ("messages", "chat"), ("chat", "ollama"))
"""The client's dialect and the upstream's: bytes that pass as they are, and such as are written anew."""
PUSH_DIALECTS = ("chat", "gemini", "llama_stack", "messages", "responses")
"""The dialects whose clients' plain requests need no task. What the others ask may be several requests, or none."""
TIMING_KEYS = ("time", "ttfb_ms", "total_ms", "request")
LIMITED: JSONObject = {"env": ["CLIENT_KEY"], "limits": {"concurrency": 8, "tokens": ["1000000000/1h"]}}
"""Keys whose places and tokens are counted."""
NUMBER = re.compile(r"^(\S+) (\S+)$", re.MULTILINE)


class ClientResult(NamedTuple):
    """What one client got, but for what is never twice the same; `ended` is whether the framing of HTTP says so."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    complete: bool


class Trace(NamedTuple):
    """What is seen of a case from outside."""

    responses: tuple[ClientResult | None, ...]
    upstream_requests: tuple[tuple[object, ...], ...]
    access_log: tuple[JSONObject, ...]
    metrics: dict[str, float]
    releases: tuple[object, ...]
    """What was given back of limits (the tokens used, and whether anybody was asked), and what breakers were told."""


class ScenarioRun:
    """A scenario being run on `harness`; `raw_clients` are its clients so far."""

    def __init__(self, harness: GatewayHarness) -> None:
        self.harness = harness
        self.raw_clients: list[RawClient] = []

    async def start_request(self, client: str, model: str, *, streamed: bool, **more: JSON) -> RawClient:
        """Have a client ask."""
        raw_client = await self.harness.start_request(client, model, streamed=streamed, **more)
        self.raw_clients.append(raw_client)
        return raw_client

    async def wait_for_end(self, raw_client: RawClient) -> None:
        """Wait for the end of an answer."""
        await wait_until(lambda: raw_client.finished, "an answer ends")

    async def wait_for_bytes(self, raw_client: RawClient, said: bytes) -> None:
        """Wait until a client has heard so much."""
        await wait_until(lambda: said in bytes(raw_client.reader.raw), f"{said!r} comes")

    async def trace(self, scenario: Scenario) -> Trace:
        """Play a scenario, and return what is seen of it when nothing is under way any more."""
        harness = self.harness
        for connection in harness.upstream.connections:
            connection.abort()
        await wait_until(lambda: not any(pool.connections for pool in harness._pools()), "no connection is kept")
        before = metric_values(harness)
        with pytest.MonkeyPatch.context() as patch:
            held = record_releases(patch)
            read_in_lockstep(patch, harness)
            await self._run(scenario)
        after = metric_values(harness)
        return Trace(
            tuple(client_result(raw_client) for raw_client in self.raw_clients),
            tuple((one.method, one.path, upstream_headers(one), one.body) for one in harness.upstream.requests),
            tuple(
                {name: value for name, value in line.items() if name not in TIMING_KEYS}
                for line in harness.access_log.lines
            ),
            {name: value - before.get(name, 0.0) for name, value in after.items() if value != before.get(name, 0.0)},
            tuple(held),
        )

    async def _run(self, scenario: Scenario) -> None:
        harness = self.harness
        await scenario(self)
        await wait_until(
            lambda: len(harness.access_log.lines) >= len(self.raw_clients), "every request is written down"
        )
        for raw_client in self.raw_clients:
            raw_client.transport.abort()
        await turns()
        await wait_until(lambda: not harness.gateway.requests.passages, "nothing is under way")


def client_result(raw_client: RawClient) -> ClientResult | None:
    """Return what a client got; `None` where that is nothing at all."""
    answer: RawResponse = raw_client.response()
    if not answer.raw:
        return None
    name = answer.headers.get("x-request-id", "").removeprefix("req_").encode()
    headers = [(key, "" if name and name.decode() in value else value) for key, value in answer.headers.items()]
    body = answer.body.replace(name, b"ID") if name else answer.body
    return ClientResult(
        answer.status, tuple((key, value) for key, value in headers if key != "date"), body, answer.complete
    )


def upstream_headers(request: Received) -> tuple[tuple[str, str], ...]:
    """Return the headers of what an upstream was asked, but for where it is."""
    return tuple((name, value) for name, value in request.headers if name != "host")


def record_releases(patch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Return what will have been given back of limits, and told to breakers, in the order in which it is."""
    held: list[tuple[object, ...]] = []
    give_back = MemoryLimiter.give_back

    def given(limiter: MemoryLimiter, taken: ScopeReservation, used: int | None, *, asked: bool) -> None:
        held.append(("limits", used, asked))
        give_back(limiter, taken, used, asked=asked)

    patch.setattr(MemoryLimiter, "give_back", given)
    for name in ("failed", "succeeded", "released"):
        patch.setattr(Breaker, name, recorded(held, name, getattr(Breaker, name)))
    return held


def read_in_lockstep(patch: pytest.MonkeyPatch, harness: GatewayHarness) -> None:
    """Have the upstream send each segment once the gateway has read the one before it.

    Where a read ends may show: what is lost until then is in a header, and a failure until then is a status. Without
    this the kernel decides it, and two plays of one case may differ.
    """
    read: Counter[object] = Counter()
    """Bytes, by the address of the gateway's end."""
    update, write = Asking.buffer_updated, Answering.write

    def updated(connection: Asking, nbytes: int) -> None:
        read[connection.transport.get_extra_info("sockname")] += nbytes
        update(connection, nbytes)

    async def written(connection: Answering, data: bytes) -> None:
        await write(connection, data)
        assert connection._transport is not None
        place = connection._transport.get_extra_info("peername")

        def is_read() -> bool:
            ends = (one for pool in harness._pools() for one in pool.connections)
            end = next((one for one in ends if one.transport.get_extra_info("sockname") == place), None)
            return read[place] >= connection.sent_bytes or end is None or not end.transport.is_reading()

        await wait_until(is_read, "the gateway reads what the upstream sends")

    patch.setattr(Asking, "buffer_updated", updated)
    patch.setattr(Answering, "write", written)


def recorded(held: list[tuple[object, ...]], name: str, function: Callable[..., None]) -> Callable[..., None]:
    """Return a breaker's `function`, which notes that it is called."""

    def called(*arguments: object) -> None:
        held.append(("breaker", name))
        function(*arguments)

    return called


def metric_values(harness: GatewayHarness) -> dict[str, float]:
    """Return what the metrics say, but for how long things took, and how often a busy machine held the loop up."""
    said = NUMBER.findall(harness.gateway.own_metrics().decode())
    return {name: float(value) for name, value in said if not any(one in name for one in ("seconds", "stalls", "#"))}


class ServedCounts:
    """How requests were served: those that were taken up without a task, and the tasks that were made."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        found, have_served = FastPath.passage, http_connection.ClientConnection.have_served

        def passage(*arguments: object) -> object:
            taken = found(*arguments)  # type: ignore[arg-type]  # as they came
            self.counts["passages"] += taken is not None
            return taken

        def counted(connection: http_connection.ClientConnection, *arguments: object) -> None:
            self.counts["tasks"] += 1
            have_served(connection, *arguments)  # type: ignore[arg-type]  # as above

        patch.setattr(FastPath, "passage", passage)
        patch.setattr(http_connection.ClientConnection, "have_served", counted)


def run_scenario(harness: GatewayHarness, scenario: Scenario) -> Trace:
    """Return the trace of one case."""
    traces: list[Trace] = []

    async def traced() -> None:
        traces.append(await ScenarioRun(harness).trace(scenario))

    harness.run(traced())
    return traces[0]


def assert_same_trace(
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    scenario: Scenario,
    *,
    passages: int | None = 1,
    others: bool = False,
) -> Trace:
    """Play a scenario with all shortcuts, and with none, by tasks; assert that both look the same, and return that.

    `passages` is how many requests are taken up without a task the first time; `None` where that is the case's own.
    With `others` the other shortcuts are taken the second time, too.
    """
    with monkeypatch.context() as patch, switched(on=True):
        ways = ServedCounts(patch)
        without = run_scenario(harness, scenario)
        assert passages is None or ways.counts["passages"] == passages
    with monkeypatch.context() as patch, switched(on=others):
        patch.setattr(FastPath, "passage", lambda *_: None)
        with_tasks = run_scenario(harness, scenario)
    assert without == with_tasks
    return without


def mode_params(pairs: Sequence[tuple[str, str]] = PAIRS) -> Iterator[object]:
    """Yield pairs of dialects, whole and streamed."""
    for (client, upstream), streamed in product(pairs, (False, True)):
        yield pytest.param(client, upstream, streamed, id=f"{client}-{upstream}-{'stream' if streamed else 'whole'}")


EVERY = tuple(mode_params())
each_mode = pytest.mark.parametrize(("client", "upstream", "streamed"), EVERY)
some_modes = pytest.mark.parametrize(("client", "upstream", "streamed"), EVERY[:2] + EVERY[4:6])
"""One pair whose bytes pass as they are, and one whose bytes are written anew."""


# Where a request stands.


def half_response(upstream: str, *, streamed: bool) -> tuple[Step, ...]:
    """Return the steps of an answer that goes on when it is let."""
    wire = HELLO[upstream]
    if streamed:
        rest: tuple[Step, ...] = (
            WaitEvent(GO_ON),
            *(Body(frame) for frame in (*wire.middle_frames, *wire.last_frames, *wire.end_mark)),
            End(),
        )
        return streamed_response(upstream, *wire.first_frames, ending=(WaitEvent(GO_ON), *rest, End()))
    middle = len(wire.whole) // 2
    head = ResponseHead(headers=(("content-type", "application/json"),), length=len(wire.whole))
    return (head, Body(wire.whole[:middle]), WaitEvent(GO_ON), Body(wire.whole[middle:]), End())


async def before_connection(run: ScenarioRun, client: str, upstream: str, *, streamed: bool) -> RawClient:
    """Have a client ask an upstream to which there is no connection yet."""
    run.harness.upstream.script(valid_response(upstream, streamed=streamed))
    run.harness.addresses = asyncio.get_running_loop().create_future()
    raw_client = await run.start_request(client, f"{upstream}-small", streamed=streamed)
    await turns()
    return raw_client


async def before_response(run: ScenarioRun, client: str, upstream: str, *, streamed: bool) -> RawClient:
    """Have a client ask an upstream that says nothing yet."""
    run.harness.upstream.script((WaitEvent(GO_ON), *valid_response(upstream, streamed=streamed)))
    raw_client = await run.start_request(client, f"{upstream}-small", streamed=streamed)
    await run.harness.wait_for_upstream_requests()
    await turns()
    return raw_client


async def mid_response(run: ScenarioRun, client: str, upstream: str, *, streamed: bool) -> RawClient:
    """Have a client ask an upstream that has said half of what it says."""
    run.harness.upstream.script(half_response(upstream, streamed=streamed))
    raw_client = await run.start_request(client, f"{upstream}-small", streamed=streamed)
    await run.harness.wait_for_upstream_requests()
    if streamed:
        await run.wait_for_bytes(raw_client, b"Hel")
    await turns()
    return raw_client


async def mid_request(run: ScenarioRun, client: str, upstream: str, *, streamed: bool) -> RawClient:
    """Have a client send the head and a part of the body."""
    run.harness.upstream.script(valid_response(upstream, streamed=streamed))
    path, body = client_request(client, f"{upstream}-small", "Hi", streamed=streamed)
    data = json.dumps(body).encode()
    _, raw_client = await asyncio.get_running_loop().create_connection(RawClient, "127.0.0.1", run.harness.port)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {run.harness.canaries.client_key}\r\n"
    raw_client.transport.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data[:-9])
    await turns()
    run.raw_clients.append(raw_client)
    return raw_client


MOMENTS = {
    "before-the-connection": before_connection,
    "before-the-head": before_response,
    "in-the-middle": mid_response,
    "while-it-asks": mid_request,
}
"""Where a request stands."""


def pushed_at(moment: str) -> int:
    """How many requests are under way at that moment."""
    return 0 if moment == "while-it-asks" else 1


async def run_until_end(run: ScenarioRun, raw_client: RawClient) -> None:
    """Let time pass until an answer ends."""
    await run.harness.wait_for_upstream_requests()
    for _ in range(200):
        await turns(100)
        if raw_client.finished:
            return
        await advance(0.5)
    assert raw_client.finished, raw_client.response()
