"""PostgreSQL store, which several gateways can share. Needs the extra `postgres` (asyncpg).

Connections are opened on first use and belong to the event loop that used them first. A committed transaction is on the
server's disk. Failures of the connection and of the server are `StoreError`s; the next call opens a new connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.store.queries import LARGE, RowStatement, Statement, ThreadStatement, migrate
from xenoglot.store.records import StoreError
from xenoglot.store.sql import SQLStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    import asyncpg

    from xenoglot.store.queries import Row, Steps

T = TypeVar("T")

CONNECTIONS = 8
TIMEOUT = 10.0
"""Seconds for a connection, and for a statement."""

MIGRATION_TIMEOUT = 3600.0
"""Seconds for a statement of a migration: an index of a large table takes minutes."""

MIGRATION_LOCK = 0x78656E6F
"""Lock of the migrations, for gateways that start at the same time."""


class Postgres(SQLStore):
    """A `Store` in the database at `url` (`postgresql://...`)."""

    def __init__(self, url: str) -> None:
        try:
            import asyncpg  # noqa: PLC0415  an extra
        except ImportError:
            raise ConfigurationError(missing_extra("asyncpg")) from None
        self._asyncpg = asyncpg
        self._url = url
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._opening: asyncio.Task[asyncpg.Pool[asyncpg.Record]] | None = None

    async def read(self, steps: Steps[T]) -> T:
        """Run statements that change nothing, in one transaction."""
        return await self._transact(steps)

    async def write(self, steps: Steps[T]) -> T:
        """Run statements in one transaction."""
        return await self._transact(steps)

    def has_history(self) -> bool:
        """Whether it may contain data of other processes: always."""
        return True

    async def ready(self) -> None:
        """Connect if necessary, and check the connection."""
        await self._transact(_nothing())

    async def aclose(self) -> None:
        """Close the connections."""
        pool, self._pool = self._pool, None
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
            self._opening = None
        if pool is not None:
            await pool.close()

    async def _transact(self, steps: Steps[T]) -> T:
        try:
            pool = await self._open()
            async with pool.acquire(timeout=TIMEOUT) as connection, connection.transaction():
                return await _run(connection, steps)
        except (self._asyncpg.PostgresError, self._asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise StoreError(f"the store failed: {_error_text(error)}") from error

    async def _open(self) -> asyncpg.Pool[asyncpg.Record]:
        """Return the connections. A cancelled wait for them does not cancel a migration, which may take minutes."""
        if self._pool is None:
            if self._opening is None:
                self._opening = asyncio.get_running_loop().create_task(self._connect())
            opening = self._opening
            try:
                self._pool = await asyncio.shield(opening)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if opening.cancelled() and not (task and task.cancelling()):
                    raise StoreError("the store failed: it is closed") from None
                raise
            finally:
                if opening.done() and self._opening is opening:
                    self._opening = None
        return self._pool

    async def _connect(self) -> asyncpg.Pool[asyncpg.Record]:
        pool = await self._asyncpg.create_pool(
            self._url, min_size=1, max_size=CONNECTIONS, timeout=TIMEOUT, command_timeout=TIMEOUT
        )
        try:
            await _prepare(pool)
        except BaseException:
            pool.terminate()
            raise
        return pool


async def _prepare(pool: asyncpg.Pool[asyncpg.Record]) -> None:
    async with pool.acquire() as connection, connection.transaction():
        # another gateway may be making indexes of a large table
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK, timeout=MIGRATION_TIMEOUT)
        await _run(connection, migrate(), MIGRATION_TIMEOUT)


async def _run(
    connection: asyncpg.pool.PoolConnectionProxy[asyncpg.Record], steps: Steps[T], seconds: float = TIMEOUT
) -> T:
    try:
        statement = next(steps)
        while True:
            rows = await _execute(connection, statement, seconds)
            if _is_large(rows):
                following, result = await asyncio.to_thread(_step, steps, rows)
                if following is None:
                    return cast("T", result)
                statement = following
            else:
                statement = steps.send(rows)
    except StopIteration as end:
        return cast("T", end.value)


def _is_large(rows: Sequence[Row]) -> bool:
    """Whether decoding the rows would block the event loop for too long."""
    return sum(len(value) for row in rows for value in row if isinstance(value, bytes)) >= LARGE


def _step(steps: Steps[T], rows: Sequence[Row]) -> tuple[Statement | None, T | None]:
    """Return the next statement, or the result: a future cannot raise `StopIteration`."""
    try:
        return steps.send(rows), None
    except StopIteration as end:
        return None, end.value


async def _execute(
    connection: asyncpg.pool.PoolConnectionProxy[asyncpg.Record], statement: Statement, seconds: float
) -> Sequence[Row]:
    if isinstance(statement, RowStatement):
        await connection.copy_records_to_table(
            statement.table, records=statement.many or (), columns=statement.columns, timeout=seconds
        )
        return ()
    if isinstance(statement, ThreadStatement):
        await asyncio.to_thread(statement.work)
        return ()
    if statement.many is not None:
        await connection.executemany(statement.sql, statement.many, timeout=seconds)
        return ()
    return [tuple(record) for record in await connection.fetch(statement.sql, *statement.values, timeout=seconds)]


def _nothing() -> Steps[None]:
    yield Statement("SELECT 1")


def _error_text(error: BaseException) -> str:
    """Return the class of the error: messages of the server can quote values and addresses."""
    return type(error).__name__
