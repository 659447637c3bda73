"""Plans of the queries of the ledger: each finds its rows by an index, whatever it filters by.

With hundreds of thousands of requests a query that reads them all blocks the only thread of an SQLite store, or comes
to the time limit of a statement in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

import asyncpg
import pytest
from msgspec import convert
from msgspec.structs import asdict

from tests.store.conftest import empty_database
from xenoglot.policy.limits.money_budget import Budget
from xenoglot.store.ledger import audit, bodies, budgets, queries
from xenoglot.store.ledger.audit import AuditFilter
from xenoglot.store.ledger.queries import RequestFilter, UsageFilter
from xenoglot.store.ledger.rows import COLUMNS, HOUR
from xenoglot.store.ledger.tables import FAILED, USUAL_STATUS
from xenoglot.store.postgres import Postgres
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.store.postgresql import Server
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.queries import Statement, Steps

ROWS: Final = 20_000
"""Requests in PostgreSQL, whose plans depend on their number and values."""
BEGIN: Final = 1.7e9
DAY: Final = (BEGIN + 1000, BEGIN + 1100)
FILTERS: Final[dict[str, JSON]] = {
    "tenant": "tenant-7",
    "key": "key-7",
    "model": "model-7",
    "upstream": "upstream-7",
    "dialect": "dialect-7",
    "session": "session-7",
    "trace": "trace-7",
    "status": 429,
    "failed": True,
    "lossy": True,
}
"""Filters of requests, each with a value that few requests have."""
UNFILTERED: Final[dict[str, JSONObject]] = {
    "all": {},
    "successful": {"failed": False},
    "status=200": {"status": USUAL_STATUS},
}
"""What nearly all requests pass: the newest are read by their time, as many as are listed."""
PERIOD: Final[JSONObject] = {"since": DAY[0], "until": DAY[1]}
PAGE: Final[JSONObject] = {"before": [DAY[1], "r"]}


class Query(NamedTuple):
    """A query, and whether it may read a table from its newest row on, until it has enough."""

    steps: Steps[object]
    newest: bool = False


def which(*fields: JSONObject) -> RequestFilter:
    """Return the filter with these fields."""
    return convert({name: value for some in fields for name, value in some.items()}, RequestFilter)


def _queries() -> dict[str, Query]:
    """Return the queries of commands, administration and console, and those of the gateway itself."""
    found: dict[str, Query] = {}
    day = UsageFilter(since=DAY[0], until=DAY[1])
    for name, value in FILTERS.items():
        one: JSONObject = {name: value}
        found[f"list {name}"] = Query(queries.requests(which(one)))
        found[f"list {name}, a period"] = Query(queries.requests(which(one, PERIOD)))
        found[f"list {name}, next page"] = Query(queries.requests(which(one, PAGE)))
        found[f"tail {name}"] = Query(queries.ended(which(one), (BEGIN + ROWS - 3, "")))
    for name, unfiltered in UNFILTERED.items():
        found[f"list {name}"] = Query(queries.requests(which(unfiltered)), newest=True)
        found[f"list {name}, a period"] = Query(queries.requests(which(unfiltered, PERIOD)))
        found[f"list {name}, next page"] = Query(queries.requests(which(unfiltered, PAGE)))
    found["tail"] = Query(queries.ended(RequestFilter(), (BEGIN + ROWS - 3, "")))
    found["one"] = Query(queries.request("req_7"))
    found["known"] = Query(queries.known(["req_7", "req_8"]))
    found["captured"] = Query(queries.captured("req_7"))
    found["body"] = Query(bodies.captured_body("req_7", "client_request"))
    found["durations"] = Query(queries.durations(*DAY))
    found["prune"] = Query(queries.prune(BEGIN + 10, BEGIN, 1000))
    found["prune captures"] = Query(bodies.prune_captures(BEGIN, 1000))
    found["usage by tag"] = Query(queries.usage(("tag:team",), day))
    for by in (*queries.GROUPS, ("tenant", "model"), ("key", "hour"), ()):
        found[f"usage by {by}"] = Query(queries.usage((by,) if isinstance(by, str) else by, day))
    for name in ("tenant", "key"):
        found[f"usage of a {name}"] = Query(queries.usage(("model",), convert({name: FILTERS[name]}, UsageFilter)))
    for scope in ("all", "tenant:tenant-7", "key:key-7", "model:model-*", "upstream:upstream-7"):
        budget = Budget(id="b", scope=scope, amount=1, period="day", zone="Asia/Kathmandu")
        found[f"spent of {scope}"] = Query(budgets.uses([budget], BEGIN + ROWS))
    found["audit"] = Query(audit.entries(AuditFilter(since=DAY[0], until=DAY[1], after="a")))
    return found


def _statements(steps: Steps[object]) -> Iterator[Statement]:
    """Yield the statements of a query that finds nothing but an hour that has requests."""
    hours = [[(int(DAY[0]) // HOUR * HOUR,)]]
    try:
        statement = next(steps)
        while True:
            yield statement
            statement = steps.send(hours.pop() if hours and statement.sql.startswith("SELECT hour FROM") else [])
    except StopIteration:
        return


def test_each_filter_is_tested() -> None:
    assert {*FILTERS} == {*asdict(RequestFilter())} - {"since", "until", "before", "limit"}


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Give an empty store: plans of SQLite do not depend on its rows."""
    path = tmp_path_factory.mktemp("plans") / "state.db"
    _made(path)
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def _made(path: Path) -> None:
    async def make() -> None:
        store = SQLite(path)
        await store.ready()
        await store.aclose()

    asyncio.run(make())


@pytest.mark.parametrize("name", _queries())
def test_sqlite_searches(name: str, sqlite: sqlite3.Connection) -> None:
    query = _queries()[name]
    for statement in _statements(query.steps):
        if statement.many is not None:
            continue
        sql = statement.sql.replace("$", "?")
        steps = [row[3] for row in sqlite.execute(f"EXPLAIN QUERY PLAN {sql}", tuple(statement.values))]
        scans = [step for step in steps if step.startswith("SCAN") and not _is_partial(step)]
        allowed = ["SCAN request USING INDEX request_at"] if query.newest else []
        small = [f"SCAN {table}" for table in ("budget_state",)]
        assert [step for step in scans if step not in small] == allowed, (sql, steps)
        sorts = [step for step in steps if step == "USE TEMP B-TREE FOR ORDER BY"]
        assert not (sorts and "FROM request" in sql), (sql, steps)  # only requests of the same time are sorted


def _is_partial(step: str) -> bool:
    return step.rpartition(" ")[2] in ("request_failed", "request_lossy")


async def test_postgresql_searches(postgresql: Server) -> None:
    url = await empty_database(postgresql)
    store = Postgres(url)
    await store.ready()
    await store.aclose()
    connection = await asyncpg.connect(url)
    try:
        await _fill(connection)
        problems = [
            (name, statement.sql, scan)
            for name, query in _queries().items()
            for statement in _statements(query.steps)
            if statement.many is None
            for scan in await _scans(connection, statement, newest=query.newest)
        ]
    finally:
        await connection.close()
    assert problems == []


async def _fill(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Add requests, of which one in a hundred has each value."""
    names = ["tenant", "key", "model", "upstream", "dialect", "session", "trace"]
    values = {name: f"'{name}-' || (n % 100)" for name in names}
    values |= {"id": "'req_' || n", "at": f"{BEGIN} + n", "total_ms": "n % 2000", "tries": "1", "estimated": "0"}
    values |= {
        "status": "CASE WHEN n % 100 = 7 THEN 429 ELSE 200 END",
        "losses": "CASE WHEN n % 100 = 7 THEN 1 ELSE 0 END",
    }
    columns = [name for name in COLUMNS if name in values]
    await connection.execute(
        f"INSERT INTO request ({', '.join(columns)})"  # noqa: S608  constants
        f" SELECT {', '.join(values[name] for name in columns)} FROM generate_series(1, {ROWS}) AS n"
    )
    await connection.execute("ANALYZE request")


async def _scans(
    connection: asyncpg.Connection[asyncpg.Record], statement: Statement, *, newest: bool
) -> list[JSONObject]:
    """Return the steps of a plan that read the whole table of requests."""
    (row,) = await connection.fetch(f"EXPLAIN (FORMAT JSON) {statement.sql}", *statement.values)
    return [node for node in _nodes(json.loads(row[0])[0]["Plan"]) if _scans_all(node, newest=newest)]


def _nodes(node: JSONObject) -> Iterator[JSONObject]:
    yield node
    for part in node.get("Plans", ()):
        yield from _nodes(part)


def _scans_all(node: JSONObject, *, newest: bool) -> bool:
    if node["Node Type"] == "Seq Scan":
        return bool(node["Relation Name"] == "request")
    if node.get("Index Name") in ("request_failed", "request_lossy"):
        return False
    by_index = node["Node Type"] in ("Index Scan", "Index Only Scan", "Bitmap Index Scan")
    return by_index and "Index Cond" not in node and not newest


def test_the_partial_index_has_the_words_of_the_query() -> None:
    (statement,) = _statements(queries.requests(RequestFilter(failed=True)))
    assert FAILED in statement.sql
