"""Liveness and readiness, over HTTP: the drain, the store, the embedded models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT, RunningGateway, config_for
from tests.gateway.scripted_backends import HELLO, Backend
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway, keeper_of
from xenoglot.gateway.config.ledger import LedgerSettings
from xenoglot.gateway.ledger.recorder import RequestRecorder
from xenoglot.store.records import StoreError
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xenoglot.model.json import JSON


class Embedded(Backend):
    """A model whose process may have crashed."""

    def __init__(self, *, available: bool) -> None:
        super().__init__("embedded")
        self.available = available

    def is_available(self) -> bool:
        """Say so."""
        return self.available


class Ailing(SQLite):
    """A store that fails, and counts how often it is checked."""

    checks = 0
    fails = True

    async def ready(self) -> None:
        """Fail."""
        self.checks += 1
        await asyncio.sleep(0)
        if self.fails:
            raise StoreError("postgresql://secret@db: no connection")


def states(url: str, *paths: str) -> list[tuple[int, JSON]]:
    """What `paths` answer."""
    answers = [httpx2.get(url + path, timeout=TIMEOUT) for path in paths]
    return [(answer.status_code, answer.json()) for answer in answers]


def test_a_gateway_that_serves_is_live_and_ready() -> None:
    with Upstream() as server, DialectGateway(server, keys={"env": ["KEY"]}, environ={"KEY": "k" * 20}) as running:
        found = states(running.url, "/livez", "/readyz", "/readyz?verbose", "/health", "/health/ready")
    checks = {"status": "ready", "checks": {"accepting": "ok"}}
    ok, ready = {"status": "ok"}, {"status": "ready"}
    assert found == [(200, ok), (200, ready), (200, checks), (200, ok), (200, ready)]


def test_a_gateway_that_drains_is_not_ready() -> None:
    gateway = Gateway(config_for("a"), {"a": Scripted(HELLO)})
    with RunningGateway(gateway) as running:
        gateway.draining = True
        found = states(running.url, "/livez", "/readyz?verbose", "/health/ready")
    draining = {"status": "draining"}
    checks = {**draining, "checks": {"accepting": "draining"}}
    assert found == [(200, {"status": "ok"}), (503, checks), (503, draining)]


@pytest.mark.parametrize("available", [True, False])
def test_readiness_includes_embedded_models(available: bool) -> None:  # noqa: FBT001  a case
    with RunningGateway(Gateway(config_for("a"), {"a": Embedded(available=available)})) as running:
        found = states(running.url, "/livez", "/readyz?verbose", "/readyz?exclude=a")
    checks = {"accepting": "ok", "a": "ok" if available else "failed"}
    status = {"status": "ready" if available else "unready", "checks": checks}
    assert found == [(200, {"status": "ok"}), (200 if available else 503, status), (200, {"status": "ready"})]


def test_readiness_includes_a_store_in_use_which_is_checked_once_a_second(tmp_path: Path) -> None:
    config = config_for("a")
    store = Ailing(tmp_path / "state.db")
    keeper = keeper_of(config, store)
    recorder = RequestRecorder(keeper, LedgerSettings())
    gateway = Gateway(config, {"a": Scripted(HELLO)}, keeper=keeper, recorder=recorder)
    with RunningGateway(gateway) as running:
        clock = _clock(gateway)
        [verbose, excluded, *many] = states(running.url, "/readyz?verbose", "/readyz?exclude=store", *["/readyz"] * 20)
        assert verbose == (503, {"status": "unready", "checks": {"accepting": "ok", "store": "failed"}})
        assert excluded == (200, {"status": "ready"})
        assert set(map(str, many)) == {str((503, {"status": "unready"}))}
        assert store.checks == 1
        store.fails = False
        clock(2.0)
        assert states(running.url, "/readyz") == [(200, {"status": "ready"})]
        assert store.checks == 2


def _clock(gateway: Gateway) -> Callable[[float], None]:
    """Have the time stand still for the endpoint; return what moves it on."""
    now = [0.0]
    gateway.health.now = lambda: now[0]
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def test_a_store_that_was_never_made_is_not_made_by_a_check(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Upstream() as server, DialectGateway(server, store={"url": f"sqlite://{path}"}) as running:
        assert states(running.url, "/readyz?verbose") == [(200, {"status": "ready", "checks": {"accepting": "ok"}})]
    assert not path.exists()
