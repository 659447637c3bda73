"""Every answer and every request that is known passes without a task as it passes with one."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.faults.client_requests import PATHS
from tests.faults.harness import GatewayHarness
from tests.faults.upstream_steps import CONNECTION_CLOSE, valid_response, whole_response
from tests.faults.wire_responses import DIALECTS
from tests.gateway.relay.both_drivers import LIMITED, PUSH_DIALECTS, assert_same_trace
from tests.laws.vectors import cases
from tests.laws.vendor_streams import each_vendor
from xenoglot.backends.http.connection import UpstreamConnection
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.relay import envelope
from xenoglot.http1.syntax import chunk
from xenoglot.testing.playback import encode_head
from xenoglot.testing.script import ResponseHead, Send

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.relay.both_drivers import Scenario, ScenarioRun
    from tests.laws.vectors import Case
    from tests.laws.vendor_streams import Vendor
    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSONObject

pytestmark = pytest.mark.usefixtures("with_shortcuts")

CREATED = 1_700_000_000.0
READ = 700
"""Bytes of a stream in one segment: it ends within a frame, mostly."""
PACKET = 1448
"""Bytes of a segment as Ethernet carries it."""
LAST_CHUNK = b"0\r\n\r\n"
KNOWN = [case for case in cases() if case.folder.parent.name in DIALECTS]
"""Vectors of the dialects that the harness has an upstream of."""


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness with limits, whose places are counted."""
    with ExitStack() as stack:
        yield GatewayHarness(more={"keys": LIMITED}).start(stack)


@pytest.fixture(autouse=True)
def _created(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers without a time of their own made at the same one."""
    monkeypatch.setattr(envelope, "time", SimpleNamespace(time=lambda: CREATED))


@pytest.mark.parametrize("client", ["chat", "messages"])
@pytest.mark.parametrize("case", [case for case in KNOWN if case.has("response.json")], ids=lambda case: case.id)
def test_whole_answers(harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, case: Case, client: str) -> None:
    upstream, data = case.dialect.name, (case.folder / "response.json").read_bytes()

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(whole_response(data))
        await run.wait_for_end(await run.start_request(client, f"{upstream}-small", streamed=False))

    assert_same_trace(harness, monkeypatch, scenario)


@pytest.mark.parametrize("client", ["chat", "messages"])
@pytest.mark.parametrize("case", [case for case in KNOWN if case.has("stream.*")], ids=lambda case: case.id)
def test_streams(harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, case: Case, client: str) -> None:
    for size in (READ, None):
        assert_same_trace(harness, monkeypatch, streaming(case.dialect, case.stream, size, client))


@pytest.mark.parametrize("client", ["chat", "responses"])
@each_vendor
def test_streams_of_vendors(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, vendor: Vendor, client: str
) -> None:
    """findings-A1: in reads of whole packets, of so few bytes that most end within an event, and in one read."""
    for size in (PACKET, 97, None):
        assert_same_trace(harness, monkeypatch, streaming(vendor.dialect, vendor.stream(12), size, client))


@pytest.mark.parametrize("size", [97, None], ids=["cut", "whole"])
def test_each_read_holds_one_segment(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    """Else the kernel decides where reads end, and the two plays of a case differ when the machine is busy."""
    reads: list[int] = []
    update = UpstreamConnection.buffer_updated

    def updated(connection: UpstreamConnection, nbytes: int) -> None:
        reads.append(nbytes)
        update(connection, nbytes)

    case = next(case for case in KNOWN if case.has("stream.*") and case.dialect.name == "messages")
    monkeypatch.setattr(UpstreamConnection, "buffer_updated", updated)
    assert_same_trace(harness, monkeypatch, streaming(case.dialect, case.stream, size, "chat"))
    assert reads == [len(segment) for segment in segments(case.dialect, case.stream, size)] * 2


def segments(dialect: Dialect, data: bytes, size: int | None) -> list[bytes]:
    """Return the segments of a response that streams `data`, `size` bytes in each; all in one where that is `None`."""
    head = encode_head(ResponseHead(headers=(("content-type", dialect.framing.media_type), CONNECTION_CLOSE)))
    if size is None:
        return [head + chunk(data) + LAST_CHUNK]
    return [head, *(chunk(data[start : start + size]) for start in range(0, len(data), size)), LAST_CHUNK]


def streaming(dialect: Dialect, data: bytes, size: int | None, client: str) -> Scenario:
    """Return a scenario in which a client asks a server, which streams `data` in such segments."""
    steps = tuple(Send(segment) for segment in segments(dialect, data, size))

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(steps)
        await run.wait_for_end(await run.start_request(client, f"{dialect.name}-small", streamed=True))

    return scenario


def renamed(case: Case, model: str) -> JSONObject:
    """Return the request of a case, for another model, and with nothing to be kept."""
    asked = case.request
    assert isinstance(asked, dict)
    return asked | {case.dialect.model_field: model} | ({"store": False} if case.dialect.name == "responses" else {})


@pytest.mark.parametrize("upstream", ["the-same", "chat", "messages"])
@pytest.mark.parametrize(
    "case",
    [case for case in KNOWN if case.has("request.json") and case.folder.parent.name in {*PUSH_DIALECTS} & PATHS.keys()],
    ids=lambda case: case.id,
)
def test_requests(harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, case: Case, upstream: str) -> None:
    client = case.dialect.name
    to = client if upstream == "the-same" else upstream
    asked = renamed(case, f"{to}-small")

    async def scenario(run: ScenarioRun) -> None:
        run.harness.upstream.script(valid_response(to, streamed=bool(asked.get("stream"))))
        raw_client = await run.harness.post(PATHS[client], encode_json(asked))
        run.raw_clients.append(raw_client)
        await run.wait_for_end(raw_client)

    assert_same_trace(harness, monkeypatch, scenario, passages=None)
