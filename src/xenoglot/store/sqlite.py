"""SQLite store in one file, in a thread of its own.

Theory of operation. One thread runs all statements, in order; it starts with the first, never at import. Several
processes may share the file: it is in WAL mode, a writer waits for another's transaction, and each transaction takes
its lock at the start.

A committed transaction is in the operating system's page cache, so it survives a killed process. `synchronous = NORMAL`
requires no more: disk writes are awaited only at checkpoints (https://www.sqlite.org/pragma.html#pragma_synchronous),
so a power failure can undo the last transactions, but never leaves half of one. Waiting at every commit would cost each
response several milliseconds, to protect responses that clients have already received.

In-memory store, which ends with its process.
"""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from xenoglot.store.queries import RowStatement, ThreadStatement, migrate
from xenoglot.store.records import StoreError
from xenoglot.store.sql import SQLStore

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Hashable, Sequence

    from xenoglot.store.queries import Row, Statement, Steps, Value
    from xenoglot.store.records import ReasoningKey


T = TypeVar("T")

MEMORY = ":memory:"
BUSY_SECONDS = 5.0
"""Seconds to wait for another process's transaction."""

MOST_INSERTED = 32
"""Rows in one statement."""

_RETRY_SECONDS = 0.02

_SETTLED_NS = 2_000_000_000
"""After so long without a write, the next one has another time for sure."""

_MARK = "-vault"
"""Suffix of the name of the store: the file whose time is that of the last write of the vault."""

_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA secure_delete = FAST",
)


class SQLite(SQLStore):
    """A `Store` in the file `path`, created readable only by its owner; `:memory:` is private to the process."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def read(self, steps: Steps[T]) -> T:
        """Run statements that change nothing, in one transaction."""
        return await self._in_thread(lambda: self._transact(steps, "DEFERRED"))

    async def write(self, steps: Steps[T]) -> T:
        """Run statements in one transaction."""
        return await self._in_thread(lambda: self._transact(steps, "IMMEDIATE"))

    def has_history(self) -> bool:
        """Whether the file exists."""
        return self._path != MEMORY and Path(self._path).exists()

    async def put_cached(self, owner: str, key: str, backend: str, payload: bytes, now: float) -> None:
        """Store a cache entry, and let other processes know."""
        await super().put_cached(owner, key, backend, payload, now)
        await self._in_thread(self._mark)

    async def swap(self, place: ReasoningKey, before: bytes | None, after: bytes | None, now: float) -> bool:
        """Replace `before` in the vault by `after`, as above; let other processes know."""
        swapped = await super().swap(place, before, after, now)
        await self._in_thread(self._mark)
        return swapped

    def version(self) -> Hashable | None:
        """Return the time of the last write of the vault; `None` for a time that is hardly past.

        It is that of an empty file next to the store: the store itself is written all the time, for example by limits.
        Times of files are as coarse as two seconds: two writes may have the same.
        """
        if self._path == MEMORY:
            return None
        try:
            latest = os.stat(self._path + _MARK).st_mtime_ns  # noqa: PTH116  half the cost of a `Path`
        except OSError:
            return 0
        return None if time.time_ns() - latest < _SETTLED_NS else latest

    def _mark(self) -> None:
        if self._path != MEMORY:
            mark = Path(self._path + _MARK)
            mark.touch(mode=0o600)

    async def ready(self) -> None:
        """Open the file if it is not open."""
        await self._in_thread(self._open)

    async def aclose(self) -> None:
        """Close the file and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(thread, self._close)
            thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        import sqlite3  # noqa: PLC0415  most gateways are never asked to keep anything

        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(_error_text(error)) from error

    def _transact(self, steps: Steps[T], kind: Literal["DEFERRED", "IMMEDIATE"]) -> T:
        connection = self._open()
        connection.execute(f"BEGIN {kind}")
        try:
            result = _run(connection, steps)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite may have ended it by itself
                connection.execute("ROLLBACK")
            raise
        return result

    def _open(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415  as above

        if self._connection is None:
            if self._path != MEMORY:
                _create(Path(self._path))
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                _prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _create(path: Path) -> None:
    """Create the file and its folder, unreadable for other users."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _prepare(connection: sqlite3.Connection) -> None:
    _use_wal(connection)
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    connection.execute("BEGIN IMMEDIATE")
    _run(connection, migrate())
    connection.execute("COMMIT")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Have the file in WAL mode; SQLite itself does not wait for another connection that brings it there just now."""
    import sqlite3  # noqa: PLC0415  as above

    waited = 0.0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or waited >= BUSY_SECONDS:
                raise
        else:
            return
        time.sleep(_RETRY_SECONDS)
        waited += _RETRY_SECONDS


def _run(connection: sqlite3.Connection, steps: Steps[T]) -> T:
    rows: Sequence[Row] = ()
    try:
        statement = next(steps)
        while True:
            rows = _execute(connection, statement)
            statement = steps.send(rows)
    except StopIteration as end:
        result: T = end.value
        return result


def _execute(connection: sqlite3.Connection, statement: Statement) -> Sequence[Row]:
    if isinstance(statement, RowStatement):
        _insert(connection, statement)
        return ()
    if isinstance(statement, ThreadStatement):
        statement.work()
        return ()
    sql = statement.sql.replace("$", "?")  # `?1` is SQLite's word for the `$1` of PostgreSQL
    if statement.many is not None:
        connection.executemany(sql, statement.many)
        return ()
    return connection.execute(sql, tuple(statement.values)).fetchall()


def _insert(connection: sqlite3.Connection, statement: RowStatement) -> None:
    """Insert rows, many of them with one statement.

    Each statement costs as much as several rows, and releases the interpreter's lock. Binding costs most of the rest:
    what all rows have alike is bound once, and a column that none of them has is left out.
    """
    rows = statement.many
    if not rows:
        return
    shared: dict[str, Value] = {}
    own: dict[str, Sequence[Value]] = {}
    for name, column in zip(statement.columns, zip(*rows, strict=True), strict=True):
        if column.count(column[0]) < len(rows):
            own[name] = column
        elif column[0] is not None:
            shared[name] = column[0]
    cells = list(zip(*own.values(), strict=True)) or [()] * len(rows)
    start = 0
    while start < len(rows):
        size = min(MOST_INSERTED, 1 << ((len(rows) - start).bit_length() - 1))  # few sizes: each is prepared once
        sql = _insertion(statement.table, tuple(shared), tuple(own), size)
        connection.execute(sql, (*shared.values(), *chain.from_iterable(cells[start : start + size])))
        start += size


@lru_cache(maxsize=128)
def _insertion(table: str, shared: Sequence[str], own: Sequence[str], rows: int) -> str:
    """Return the statement that inserts so many rows: the values of `shared` come first, then those of each row."""
    alike = [f"?{place + 1}" for place in range(len(shared))]
    values: list[str] = []
    for row in range(rows):
        first = len(shared) + row * len(own) + 1
        values.append(", ".join([*alike, *(f"?{place}" for place in range(first, first + len(own)))]))
    return f"INSERT INTO {table} ({', '.join((*shared, *own))}) VALUES ({'), ('.join(values)})"  # noqa: S608  constants


def _error_text(error: sqlite3.Error | OSError) -> str:
    """Return the error without the statement's values, which SQLite's messages do not quote."""
    if isinstance(error, OSError):
        return f"the store's file cannot be opened: {os.strerror(error.errno or 0)}"
    return f"the store failed: {getattr(error, 'sqlite_errorname', type(error).__name__)}"


class Memory(SQLite):
    """A `Store` in memory: SQLite without a file, so it behaves like the others."""

    def __init__(self) -> None:
        super().__init__(MEMORY)
