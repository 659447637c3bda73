"""What only a store in a file has to do: be closed to others, outlive its process, say what is wrong with the file."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import ROOT
from xenoglot.store import schema
from xenoglot.store.queries import RowStatement
from xenoglot.store.records import Conversation, Stored, StoreError, Window
from xenoglot.store.sqlite import SQLite, _execute

if TYPE_CHECKING:
    from pathlib import Path

KEPT_BEFORE_THE_KILL = 50


def an_answer(name: str) -> Stored:
    return Stored(id=name, owner="", kind="k", created=1.0, status="completed", items=[], response={"a": 1})


async def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "made" / "here" / "state.db"
    store = SQLite(path)
    await store.put(an_answer("resp_1"))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (path.parent, *path.parent.iterdir())}
    await store.aclose()
    assert modes == {"here": 0o700, "state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


async def test_what_was_kept_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "state.db")
    await store.put(an_answer("resp_1"))
    await store.aclose()
    store = SQLite(tmp_path / "state.db")
    assert await store.get("", "resp_1") == an_answer("resp_1")
    await store.aclose()


async def test_nothing_that_was_kept_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    command = [sys.executable, "-m", "tests.store.writer_program", str(path)]
    with subprocess.Popen(  # noqa: ASYNC220  there is nothing else to do meanwhile
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(KEPT_BEFORE_THE_KILL)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
        assert process.wait() == -signal.SIGKILL
    store = SQLite(path)
    found = [await store.get("", f"resp_{int(number)}") for number in said]
    await store.aclose()
    assert [answer is not None and answer.response for answer in found] == [{"text": "word " * 500}] * len(said)


async def test_two_share_a_file(tmp_path: Path) -> None:
    one, other = SQLite(tmp_path / "state.db"), SQLite(tmp_path / "state.db")
    names = [f"resp_{index}" for index in range(40)]
    await asyncio.gather(*((one, other)[index % 2].put(an_answer(name)) for index, name in enumerate(names)))
    found = await other.answers("", "k", Window(limit=99))
    await one.aclose()
    await other.aclose()
    assert sorted(answer.id for answer in found) == sorted(names)


async def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Gateways that are started together: none finds the file locked by another that makes it."""
    for name in map(str, range(10)):
        stores = [SQLite(tmp_path / name) for _ in range(8)]
        await asyncio.gather(*(store.ready() for store in stores))
        await asyncio.gather(*(store.aclose() for store in stores))


async def test_one_that_waits_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xenoglot.store.sqlite.BUSY_SECONDS", 0.0)
    store = SQLite(tmp_path / "state.db")
    await store.ready()
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="the store failed: SQLITE_BUSY"):
        await store.put(an_answer("resp_1"))
    assert await store.get("", "resp_1") is None  # reading goes on beside a writer
    other.close()
    await store.put(an_answer("resp_1"))
    await store.aclose()


async def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "state.db")
    await store.ready()
    with sqlite3.connect(tmp_path / "state.db") as other:
        other.execute("DROP TABLE item")
    other.close()
    with pytest.raises(StoreError, match="SQLITE_ERROR"):
        await store.delete("", "resp_1")
    await store.aclose()


class Full(sqlite3.Connection):
    """A connection to a disk that is full when a transaction is to be committed, for a while."""

    full = False

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        """Fail to commit; the transaction stays open."""
        if self.full and sql == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *values)  # type: ignore[arg-type]


async def test_k18_a_transaction_that_cannot_be_committed_blocks_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda *args, **named: connect(*args, factory=Full, **named))
    store = SQLite(tmp_path / "state.db")
    await store.ready()
    monkeypatch.setattr(Full, "full", True)
    with pytest.raises(StoreError):
        await store.put(an_answer("resp_1"))
    monkeypatch.setattr(Full, "full", False)
    await store.put(an_answer("resp_2"))
    assert [await store.get("", name) for name in ("resp_1", "resp_2")] == [None, an_answer("resp_2")]
    await store.aclose()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"not a database at all" * 100, "SQLITE_NOTADB", id="another-file"),
        pytest.param(None, "Is a directory", id="a-folder"),
    ],
)
async def test_what_is_no_store_is_told(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "state.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    store = SQLite(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=problem):
            await store.ready()
    await store.aclose()


async def test_rows_that_are_broken_are_told(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "state.db")
    await store.put(an_answer("resp_1"))
    await store.create_conversation(Conversation(id="conv_1", owner="", created=1.0), [{"id": "msg_1"}])
    with sqlite3.connect(tmp_path / "state.db") as other:
        other.execute("UPDATE answer SET body = CAST('{\"id\": 5' AS BLOB)")
        other.execute("UPDATE conversation_item SET data = X'FF'")
    other.close()
    for asked in (store.get("", "resp_1"), store.item("", "msg_1"), store.items("", "conv_1", Window(limit=9))):
        with pytest.raises(StoreError, match="something in the store cannot be read"):
            await asked
    await store.aclose()


async def test_a_store_of_the_future_is_left_alone(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "state.db")
    await store.ready()
    await store.aclose()
    with sqlite3.connect(tmp_path / "state.db") as other:
        other.execute("UPDATE schema_version SET version = 999")
    other.close()
    with pytest.raises(StoreError, match=f"is of version 999, and this program knows {schema.VERSION}"):
        await store.get("", "resp_1")
    await store.aclose()


async def test_its_thread_ends_with_it(tmp_path: Path) -> None:
    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("store")}

    store = SQLite(tmp_path / "state.db")
    before = threads()
    await store.ready()
    during = threads() - before
    await store.aclose()
    for thread in during:
        thread.join(120)
    assert (len(during), threads() - before) == (1, set())


def test_rows_are_inserted_by_few_statements() -> None:
    """A statement costs as much as binding twenty values: 500 rows are sixteen of 32 rows, or less."""
    rows = [(f"req_{number}", float(number), None if number % 2 else 7, "m", None) for number in range(500)]
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE one (id TEXT PRIMARY KEY, at REAL, input INTEGER, model TEXT, failure TEXT)")
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    _execute(connection, RowStatement.into("one", ("id", "at", "input", "model", "failure"), rows))
    connection.set_trace_callback(None)
    inserted = [sql for sql in statements if sql.startswith("INSERT")]
    assert len(inserted) == 500 // 32 + 2
    assert connection.execute("SELECT * FROM one").fetchall() == rows
    connection.close()
