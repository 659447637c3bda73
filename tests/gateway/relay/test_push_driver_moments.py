"""Somebody leaves, stops everything, or puts another gateway in place, wherever a request without a task stands."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import turns
from tests.faults.client_requests import client_request
from tests.faults.harness import PING, GatewayHarness
from tests.faults.manual_clock import advance, wait_until
from tests.gateway.relay.both_drivers import (
    GO_ON,
    LIMITED,
    MOMENTS,
    PAIRS,
    assert_same_trace,
    pushed_at,
    run_scenario,
    some_modes,
)
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process import build
from xenoglot.gateway.relay import envelope

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.relay.both_drivers import ScenarioRun
    from xenoglot.model.json import JSONObject

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


@some_modes
@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_client_leaves(  # noqa: PLR0913, PLR0917  the case, and two fixtures
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    how: str,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        raw_client = await MOMENTS[moment](run, client, upstream, streamed=streamed)
        if how == "reset":
            raw_client.transport.abort()
        else:
            raw_client.transport.close()
        await wait_until(lambda: bool(run.harness.access_log.lines), "the request is written down")

    trace = assert_same_trace(harness, monkeypatch, scenario, passages=pushed_at(moment))
    assert [line["failure"] for line in trace.access_log] == ["cancelled"]


@some_modes
@pytest.mark.parametrize("moment", MOMENTS)
def test_everything_is_stopped(  # noqa: PLR0913, PLR0917  as above
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        raw_client = await MOMENTS[moment](run, client, upstream, streamed=streamed)
        run.harness.server.native.stop_now()
        await run.wait_for_end(raw_client)
        run.harness.gateway.requests._stopping = False

    trace = assert_same_trace(harness, monkeypatch, scenario, passages=pushed_at(moment))
    assert [line["failure"] for line in trace.access_log] == ["overloaded"]


@some_modes
@pytest.mark.parametrize("moment", MOMENTS)
def test_another_gateway_takes_over(  # noqa: PLR0913, PLR0917  as above
    harness: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    """What is under way ends where it began, and is waited for; what is still being asked is the new one's."""

    async def scenario(run: ScenarioRun) -> None:
        home, server = run.harness, run.harness.server.native
        raw_client = await MOMENTS[moment](run, client, upstream, streamed=streamed)
        async with build.build_gateway(check(home._config(), os.environ, "the test")) as other:
            other.inherit(home.gateway)
            server.exchange(other)
            over = asyncio.get_running_loop().create_task(home.gateway.over())
            await turns()
            assert over.done() == (moment == "while-it-asks")
            if moment == "before-the-connection":
                assert isinstance(home.addresses, asyncio.Future)
                home.addresses.set_result(("127.0.0.1",))
            if moment == "while-it-asks":
                data = json.dumps(client_request(client, f"{upstream}-small", "Hi", streamed=streamed)[1]).encode()
                raw_client.transport.write(data[-9:])
            home.upstream.release(GO_ON)
            await run.wait_for_end(raw_client)
            await over
            server.exchange(home.gateway)
            server.former.clear()

    # without shortcuts a request is the old one's as soon as its head is there
    asks = moment == "while-it-asks"
    trace = assert_same_trace(harness, monkeypatch, scenario, passages=pushed_at(moment), others=asks)
    assert [line["failure"] for line in trace.access_log] == [None]


@some_modes
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("ends", [True, False], ids=["in-time", "too-late"])
def test_a_drain(  # noqa: PLR0913, PLR0917  as above
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    ends: bool,  # noqa: FBT001  a case
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        home = run.harness
        raw_client = await MOMENTS[moment](run, client, upstream, streamed=streamed)
        home.server.should_exit = True
        await turns()
        if ends:
            if moment == "before-the-connection":
                assert isinstance(home.addresses, asyncio.Future)
                home.addresses.set_result(("127.0.0.1",))
            if moment == "while-it-asks":
                data = json.dumps(client_request(client, f"{upstream}-small", "Hi", streamed=streamed)[1]).encode()
                raw_client.transport.write(data[-9:])
            home.upstream.release(GO_ON)
        else:
            await advance(4.0)
        await run.wait_for_end(raw_client)
        await home._serving

    traces = []
    for lane in (True, False):
        with ExitStack() as stack, monkeypatch.context() as patch:
            if not lane:
                patch.setattr(FastPath, "passage", lambda *_: None)
            server: JSONObject = {"drain_seconds": 3.0, "ping_interval": PING}
            traces.append(run_scenario(GatewayHarness(more={"keys": LIMITED, "server": server}).start(stack), scenario))
    assert traces[0] == traces[1]
    assert [line["failure"] for line in traces[0].access_log] == [None if ends else "overloaded"]


@pytest.mark.parametrize("moment", ["before-the-connection", "before-the-head", "in-the-middle"])
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_signs_of_life(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch, client: str, upstream: str, moment: str
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        home = run.harness
        raw_client = await MOMENTS[moment](run, client, upstream, streamed=True)
        await advance(PING - 4.0)
        await advance(3.0)
        if moment == "before-the-connection":
            assert isinstance(home.addresses, asyncio.Future)
            home.addresses.set_result(("127.0.0.1",))
        home.upstream.release(GO_ON)
        await run.wait_for_end(raw_client)

    assert_same_trace(harness, monkeypatch, scenario)
