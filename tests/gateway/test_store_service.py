"""How long the store may take, on a loop whose clock a test pushes."""

from __future__ import annotations

import asyncio

import pytest

from tests.backends.raw_server import advance, leakless, turns
from xenoglot.gateway.store_service import PATIENCE, SILENT_PATIENCE, StoreService
from xenoglot.store.records import Retention, StoreError
from xenoglot.store.sqlite import Memory

RETENTION = Retention(max_age=60.0, max_bytes=1_000)


class Driver:
    """A database driver whose server hangs: cancelled, it takes long to clean up after itself."""

    def __init__(self) -> None:
        self.freed = asyncio.Event()
        self.cancelled = 0

    async def ask(self) -> None:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
            await self.freed.wait()


async def known() -> str:
    """Answer."""
    await asyncio.sleep(0)
    return "known"


@leakless
async def test_findings_11_a_store_that_hangs_is_waited_for_once() -> None:
    keeper, driver = StoreService(Memory(), RETENTION), Driver()
    for patience in (PATIENCE, SILENT_PATIENCE, SILENT_PATIENCE):
        asking = asyncio.create_task(keeper.within(driver.ask()))
        await advance(patience - 0.5)
        assert not asking.done()
        await advance(0.5)
        with pytest.raises(StoreError, match=f"within {patience:g} seconds"):
            await asking
    assert driver.cancelled == 3
    assert await keeper.within(known()) == "known"
    asking = asyncio.create_task(keeper.within(driver.ask()))
    await advance(PATIENCE - 0.5)
    assert not asking.done()  # it has answered since: the usual patience holds again
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    driver.freed.set()
    await turns()
    assert driver.cancelled == 4
    await keeper.aclose()


@leakless
async def test_an_error_of_the_store_is_passed_on() -> None:
    async def fail() -> None:
        raise StoreError("the store failed: TEST")

    keeper = StoreService(Memory(), RETENTION)
    with pytest.raises(StoreError, match="TEST"):
        await keeper.within(fail())
    await keeper.aclose()
