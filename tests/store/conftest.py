"""Every kind of store, empty."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.store.postgresql import running
from xenoglot.store.postgres import Postgres
from xenoglot.store.sqlite import Memory, SQLite

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from tests.store.postgresql import Server
    from xenoglot.store.store import Store

_numbers = count()


@pytest.fixture(scope="session")
def postgresql() -> Generator[Server]:
    """A server for all tests."""
    with running() as server:
        yield server


async def empty_database(postgresql: Server) -> str:
    """Return the URL of a new database."""
    name = f"empty{next(_numbers)}"
    connection = await asyncpg.connect(postgresql.url())
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return postgresql.url(name)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    """A store of each kind."""
    made: Store
    if request.param == "memory":
        made = Memory()
    elif request.param == "sqlite":
        made = SQLite(tmp_path / "state.db")
    else:
        made = Postgres(await empty_database(request.getfixturevalue("postgresql")))
    yield made
    await made.aclose()
