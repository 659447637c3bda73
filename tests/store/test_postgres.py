"""What only a store on a server has to do: make its tables once, and say when the server is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.store.conftest import empty_database
from tests.store.postgresql import running
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
