"""Windows of limits survive a restart, with their ages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.limits.limit_history import LimitHistory
from xenoglot.gateway.limits.limiter import MemoryLimiter, Scope, Window
from xenoglot.gateway.store_service import StoreService
from xenoglot.store.ledger import limit_windows
from xenoglot.store.records import Retention, StoreError
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from xenoglot.store.ledger.limit_windows import LimitWindow
    from xenoglot.store.queries import Steps

SCOPE = Scope("key:a", requests=(Window(2, 3600.0),), tokens=(Window(1000, 60.0),))
RETENTION = Retention(max_age=1e9, max_bytes=2**30)


class Clocks:
    """The clock of the world, and the monotonic one of a process, which begins anywhere."""

    def __init__(self) -> None:
        self.world, self.mine = 1e9, 50.0

    def restarted(self, down: float) -> None:
        self.world, self.mine = self.world + down, 3.0


def test_a_gateway_that_is_restarted_knows_what_its_clients_used(tmp_path: Path) -> None:
    def send(running: DialectGateway) -> httpx2.Response:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        return httpx2.post(f"{running.url}/v1/chat/completions", json=body, timeout=TIMEOUT)

    with Upstream(*answers("chat", text="Hello.").rules()) as server:
        store, keys = {"url": f"sqlite://{tmp_path}/state.db"}, {"limits": {"requests": ["2/1h"]}}
        with DialectGateway(server, store=store, keys=keys) as running:
            assert send(running).status_code == 200
        with DialectGateway(server, store=store, keys=keys) as running:
            told = [send(running) for _ in range(2)]
    assert [one.status_code for one in told] == [200, 429]
    assert told[1].headers["retry-after"] == "60"


async def started(
    path: Path, clocks: Clocks, name: str = "a gateway"
) -> tuple[MemoryLimiter, LimitHistory, StoreService]:
    keeper = StoreService(SQLite(path / "state.db"), RETENTION, now=lambda: clocks.world)
    limiter = MemoryLimiter(clock=lambda: clocks.mine)
    history = LimitHistory(keeper, limiter, name)
    await history.start()
    return limiter, history, keeper


async def test_ages_are_kept_and_each_gateway_has_its_own(tmp_path: Path) -> None:
    clocks = Clocks()
    limiter, history, keeper = await started(tmp_path, clocks)
    lease = await limiter.enter([SCOPE], owner="a", tokens=900)
    await lease.leave(used=700)
    clocks.mine, clocks.world = clocks.mine + 10.0, clocks.world + 10.0
    await history.aclose()
    await keeper.aclose()
    clocks.restarted(20.0)
    limiter, history, keeper = await started(tmp_path, clocks)
    other, others, third = await started(tmp_path, clocks, "another gateway")
    assert other.try_enter([SCOPE], owner="a", tokens=900) is not None
    assert limiter.try_enter([SCOPE], owner="a", tokens=301) is None
    clocks.mine += 29.9
    assert limiter.try_enter([SCOPE], owner="a", tokens=301) is None
    clocks.mine += 0.2  # a minute after the use, of which the gateway was down for 20 seconds
    assert limiter.try_enter([SCOPE], owner="a", tokens=301) is not None
    assert limiter.try_enter([SCOPE], owner="a", tokens=1) is None, "two requests in an hour"
    await asyncio.gather(history.aclose(), others.aclose())
    await asyncio.gather(keeper.aclose(), third.aclose())


async def test_only_scopes_that_were_used_since_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[list[str]] = []
    save = limit_windows.save

    def seen(gateway: str, rows: Sequence[LimitWindow]) -> Steps[None]:
        written.append([row.scope for row in rows])
        return save(gateway, rows)

    monkeypatch.setattr(limit_windows, "save", seen)
    limiter, history, keeper = await started(tmp_path, Clocks())
    short = Scope("key:short", requests=(Window(9, 1.0),))
    unlimited = Scope("key:places", concurrency=3)
    for scope in (SCOPE, short, unlimited, Scope("model:m", requests=(Window(9, 60.0),))):
        await (await limiter.enter([scope], owner="a", tokens=1)).leave(used=1)
    await history.save()
    await history.save()
    await (await limiter.enter([SCOPE], owner="a", tokens=1)).leave(used=1)
    await history.aclose()
    assert written == [["key:a", "model:m"], ["key:a"]]
    await keeper.aclose()


async def test_a_store_that_fails_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limiter, history, keeper = await started(tmp_path, Clocks())
    await (await limiter.enter([SCOPE], owner="a", tokens=1)).leave(used=1)

    async def fail(_steps: object) -> None:
        raise StoreError("the store failed: X")

    with monkeypatch.context() as patch:
        patch.setattr(keeper.store, "write", fail)
        await history.save()
        await history.save()
    assert [record.getMessage() for record in caplog.records] == [
        "windows of limits are not stored: the store failed: X"
    ]
    await history.aclose()
    rows = await keeper.store.read(limit_windows.load("a gateway", 0.0))  # type: ignore[attr-defined]
    assert [row.scope for row in rows] == ["key:a"]
    await keeper.aclose()
