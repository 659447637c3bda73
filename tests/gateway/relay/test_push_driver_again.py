"""What fails before a request without a task is answered is tried again as a task tries it."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.faults.client_requests import PATHS
from tests.faults.harness import GatewayHarness
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import DIALECTS
from tests.gateway.relay.both_drivers import LIMITED, assert_same_trace, run_until_end, some_modes
from xenoglot.gateway.relay import envelope
from xenoglot.testing.faults import FAULTS, fault
from xenoglot.testing.script import RequestMatcher, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.relay.both_drivers import ScenarioRun
    from xenoglot.model.json import JSON, JSONObject

pytestmark = pytest.mark.usefixtures("with_shortcuts")

CREATED = 1_700_000_000.0
TARGETS = ("chat", "messages")


@pytest.fixture(scope="module")
def trying() -> Generator[GatewayHarness]:
    """Give a harness that tries again; `either` is a model that leads to two upstreams, one asked after the other."""
    retry: JSONObject = {"attempts": 2, "base": 0.0, "cap": 0.0, "timeouts": True}
    models: list[JSON] = [{"name": f"{name}-*", "upstream": name} for name in DIALECTS]
    targets: list[JSON] = [{"upstream": name, "model": name, "tier": tier} for tier, name in enumerate(TARGETS)]
    with ExitStack() as stack:
        more: JSONObject = {"keys": LIMITED, "models": [*models, {"name": "either", "targets": targets}]}
        yield GatewayHarness(more=more, retry=retry).start(stack)


@pytest.fixture(autouse=True)
def _created(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers without a time of their own made at the same one."""
    monkeypatch.setattr(envelope, "time", SimpleNamespace(time=lambda: CREATED))


@some_modes
@pytest.mark.parametrize("name", [name for name, one in FAULTS.items() if one.fails])
def test_every_fault_is_tried_again_alike(  # noqa: PLR0913, PLR0917  the case, and two fixtures
    trying: GatewayHarness,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    async def scenario(run: ScenarioRun) -> None:
        first = ScriptRule(steps=fault(name, upstream, streamed=streamed), times=1)
        run.harness.upstream.script(first, ScriptRule(steps=valid_response(upstream, streamed=streamed)))
        await run_until_end(run, await run.start_request(client, f"{upstream}-small", streamed=streamed))

    assert_same_trace(trying, monkeypatch, scenario)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", [name for name, one in FAULTS.items() if one.fails])
def test_another_is_asked_alike(
    trying: GatewayHarness, monkeypatch: pytest.MonkeyPatch, name: str, *, streamed: bool
) -> None:
    first, second = TARGETS

    async def scenario(run: ScenarioRun) -> None:
        failing = ScriptRule(steps=fault(name, first, streamed=streamed), when=RequestMatcher(path=f"*{PATHS[first]}"))
        run.harness.upstream.script(failing, ScriptRule(steps=valid_response(second, streamed=streamed)))
        await run_until_end(run, await run.start_request(first, "either", streamed=streamed))

    assert_same_trace(trying, monkeypatch, scenario)
