"""What only a store on a server has to do: make its tables once, and say when the server is away."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.store.conftest import empty_database
from tests.store.postgresql import running
from xenoglot.store import postgres
from xenoglot.store.postgres import Postgres
from xenoglot.store.records import StoreError, Window

if TYPE_CHECKING:
    from tests.store.postgresql import Server


async def test_those_that_start_together_make_the_tables_once(postgresql: Server) -> None:
    url = await empty_database(postgresql)
    stores = [Postgres(url) for _ in range(4)]
    await asyncio.gather(*(store.ready() for store in stores))
    assert [await store.answers("", "k", Window(limit=1)) for store in stores] == [[]] * 4
    for store in stores:
        await store.aclose()


WAITING = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


async def _waits(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Wait until another connection waits for a lock."""
    for _ in count():
        if await connection.fetchval(WAITING):
            return


async def test_a_migration_goes_on_after_those_that_wait_for_it_have_given_up(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "TIMEOUT", 0.5)
    url = await empty_database(postgresql)
    other = await asyncpg.connect(url)
    await other.execute("SELECT pg_advisory_lock($1)", postgres.MIGRATION_LOCK)  # as a gateway that migrates
    store = Postgres(url)
    asking = [asyncio.ensure_future(store.ready()) for _ in range(2)]
    await _waits(other)
    asking[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking[0]
    assert await other.fetchval(WAITING) == 1
    await other.close()
    await asking[1]
    assert await store.answers("", "k", Window(limit=1)) == []
    await store.aclose()


async def test_a_store_is_closed_while_it_waits_for_a_migration(postgresql: Server) -> None:
    url = await empty_database(postgresql)
    other = await asyncpg.connect(url)
    await other.execute("SELECT pg_advisory_lock($1)", postgres.MIGRATION_LOCK)
    store = Postgres(url)
    asking = asyncio.ensure_future(store.ready())
    await _waits(other)
    await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        await asking
    await other.close()


async def test_a_server_that_goes_and_comes_back() -> None:
    with running() as server:
        store = Postgres(server.url())
        await store.put_cached("", "key", "main", b"kept", 1.0)
        server.stop()
        with pytest.raises(StoreError, match="the store failed"):
            await store.get_cached("", "key", "main")
        server.start()
        await store.ready()
        assert await store.get_cached("", "key", "main") == b"kept"
        await store.aclose()


async def test_nobody_there() -> None:
    store = Postgres("postgresql://nobody@/none?host=/nonexistent")
    with pytest.raises(StoreError, match="the store failed"):
        await store.ready()
    await store.aclose()
