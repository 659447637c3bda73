"""Stored batches, with one row per request: an outcome is permanent once stored, whichever process dies.

An unfinished batch is worked on by one process at a time, which holds a lease on it; an outcome is stored only if that
process still holds the lease and the request has none. Every method raises `StoreError` if the store fails.
"""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from xenoglot.codec.features.batch import Batch, StoredFile
from xenoglot.model.response import Usage
from xenoglot.store import files
from xenoglot.store.queries import UNREADABLE, Row, Statement, Steps
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from xenoglot.codec.features.batch import Outcome
    from xenoglot.store.queries import Database
    from xenoglot.store.records import Order, Window

Key: TypeAlias = tuple[str, str]
"""A batch's owner and id."""

ROW = 200
"""Approximate bytes of a request without its id, body and result."""

_decode = msgspec.json.Decoder(Batch).decode
_COLUMNS = "body, total, succeeded, errored, cancelled, input_tokens, cached_tokens, output_tokens, reasoning_tokens"


RESULT_BYTES = 1024 * 1024
"""Bytes after which no further result is read at once."""


class BatchRow(NamedTuple):
    """One request of a batch: its number, the client's id for it, and its body."""

    number: int
    name: str
    body: bytes


class BatchResult(NamedTuple):
    """The outcome of a request, as the client reads it, and its usage."""

    outcome: Outcome
    line: bytes
    usage: Usage = Usage()


class Batches:
    """The batches of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, batch: Batch, *, ready: bool = True, expected: int = 0) -> None:
        """Store a new batch; it is invisible, and not worked on, until it is `ready`.

        Requests that are still to be added count as `expected` bytes.
        """
        await self._database.write(_create(batch, ready=ready, expected=expected))

    async def open(self, batch: Batch) -> bool:
        """Have a batch be ready, all its requests being there; return whether it was not forgotten meanwhile."""
        return await self._database.write(_open(batch))

    async def get(self, owner: str, name: str) -> Batch | None:
        """Return a batch."""
        return await self._database.read(_get(owner, name))

    async def list_page(self, owner: str, kind: str, window: Window) -> list[Batch]:
        """Return batches of one kind; none if the cursor does not exist."""
        return await self._database.read(_listed(owner, kind, window))

    async def claim(self, process: str, now: float, until: float, limit: int, share: int = 1_000) -> list[Batch]:
        """Take over unfinished batches without a valid lease, oldest first.

        The process gets no more than `share` of one owner at once.
        """
        return await self._database.write(_claim(process, now, until, limit, share))

    async def renew(self, process: str, keys: Collection[Key], until: float) -> dict[Key, float | None]:
        """Vouch for batches; return those that the process still has, and when each was to be cancelled."""
        return await self._database.write(_renew(process, keys, until))

    async def release(self, process: str, batch: Batch) -> None:
        """Release an unfinished batch, so that another process may claim it."""
        await self._database.write(_release(process, batch))

    async def save(self, process: str, batch: Batch) -> bool:
        """Replace the state of a batch; return whether the process still holds it."""
        return await self._database.write(_save(process, batch))

    async def finish(self, process: str, batch: Batch, made: Sequence[StoredFile], now: float) -> bool:
        """Finish a batch and publish its files; return whether the process still held it."""
        return await self._database.write(_finish(process, batch, made, now))

    async def cancel(self, owner: str, name: str, now: float) -> Batch | None:
        """Mark an unfinished batch as to be cancelled; return its current state."""
        return await self._database.write(_cancel(owner, name, now))

    async def delete(self, owner: str, name: str) -> bool:
        """Delete a batch with its requests and results; return whether it existed."""
        return await self._database.write(delete(owner, name))

    async def add(self, owner: str, name: str, requests: Sequence[BatchRow]) -> bool:
        """Store requests of a batch; return whether the batch still exists."""
        return await self._database.write(_add(owner, name, requests))

    async def clear(self, owner: str, name: str) -> None:
        """Forget the requests of a batch."""
        await self._database.write(_clear(owner, name))

    async def unanswered(self, owner: str, name: str, after: int, limit: int) -> list[tuple[int, str]]:
        """Return the numbers and ids of requests without an outcome, in order, after the number `after`."""
        return await self._database.read(_unanswered(owner, name, after, limit))

    async def request(self, owner: str, name: str, number: int) -> BatchRow | None:
        """Return one request, unless it has an outcome."""
        return await self._database.read(_request(owner, name, number))

    async def settle(self, process: str, batch: Batch, request: BatchRow, result: BatchResult) -> bool:
        """Store the outcome of a request; return whether the process still holds the batch."""
        return await self._database.write(_settle(process, batch, request, result))

    async def record_abandoned(self, process: str, batch: Batch, results: Sequence[tuple[int, bytes]]) -> bool:
        """Store that requests were left unanswered; return whether the process still holds the batch."""
        return await self._database.write(_leave(process, batch, results))

    async def part_ids(self, owner: str, name: str) -> dict[str, int]:
        """Return how many bytes the results of a batch are, by outcome."""
        return await self._database.read(_parts(owner, name))

    async def results(
        self, owner: str, name: str, outcomes: Sequence[str], after: int, limit: int
    ) -> list[tuple[int, bytes]]:
        """Return results with their numbers, in order, after the number `after`; at least one, but few large ones."""
        return await self._database.read(_results(owner, name, outcomes, after, limit))


def _create(batch: Batch, *, ready: bool, expected: int) -> Steps[None]:
    body = msgspec.json.encode(batch)
    yield Statement(
        "INSERT INTO batch (owner, id, kind, created, ready, total, succeeded, errored, size, body)"
        " VALUES ($1, $2, $3, $4, $5, 0, 0, 0, $6, $7)",
        (batch.owner, batch.id, batch.kind, batch.created, int(ready), len(body) + expected, body),
    )


def _open(batch: Batch) -> Steps[bool]:
    rows = yield Statement(
        "UPDATE batch SET ready = 1, total = $3 WHERE owner = $1 AND id = $2 AND ready = 0 RETURNING id",
        (batch.owner, batch.id, batch.total),
    )
    return bool(rows)


def _get(owner: str, name: str) -> Steps[Batch | None]:
    rows = yield Statement(
        f"SELECT {_COLUMNS} FROM batch WHERE owner = $1 AND id = $2 AND ready = 1",  # noqa: S608  constants
        (owner, name),
    )
    return _batch(rows[0]) if rows else None


_LISTED = f"SELECT {_COLUMNS} FROM batch WHERE owner = $1 AND kind = $2 AND ready = 1"  # noqa: S608  constants
_PAGES: dict[Order, tuple[str, str]] = {
    "asc": (" AND (created > $4 OR (created = $4 AND id > $5))", " ORDER BY created, id LIMIT $3"),
    "desc": (" AND (created < $4 OR (created = $4 AND id < $5))", " ORDER BY created DESC, id DESC LIMIT $3"),
}


def _listed(owner: str, kind: str, window: Window) -> Steps[list[Batch]]:
    behind, page = _PAGES[window.order]
    if window.after is None:
        rows = yield Statement(_LISTED + page, (owner, kind, window.limit))
        return [_batch(row) for row in rows]
    sql = "SELECT created FROM batch WHERE owner = $1 AND id = $2 AND kind = $3"
    found = yield Statement(sql, (owner, window.after, kind))
    if not found:
        return []
    rows = yield Statement(_LISTED + behind + page, (owner, kind, window.limit, found[0][0], window.after))
    return [_batch(row) for row in rows]


_FREE = (
    "ended IS NULL AND ready = 1 AND (lease IS NULL OR lease < $1) AND (SELECT COUNT(*) FROM batch AS other"
    " WHERE other.owner = batch.owner AND other.process = $2 AND other.ended IS NULL AND other.lease >= $1) < $3"
)


def _claim(process: str, now: float, until: float, limit: int, share: int) -> Steps[list[Batch]]:
    found = yield Statement(
        f"SELECT owner, id FROM batch WHERE {_FREE} ORDER BY created LIMIT $4",  # noqa: S608  constants
        (now, process, share, limit),
    )
    claimed = []
    for owner, name in found:
        rows = yield Statement(  # of several who found it, one gets it
            f"UPDATE batch SET process = $2, lease = $4 WHERE {_FREE} AND owner = $5 AND id = $6"  # noqa: S608
            f" RETURNING {_COLUMNS}",
            (now, process, share, until, owner, name),
        )
        claimed += [_batch(row) for row in rows]
    return claimed


def _renew(process: str, keys: Collection[Key], until: float) -> Steps[dict[Key, float | None]]:
    found: dict[Key, float | None] = {}
    for key in keys:
        rows = yield Statement(
            f"UPDATE batch SET lease = $4 WHERE {_MINE} RETURNING cancelled",  # noqa: S608  constants
            (*key, process, until),
        )
        if rows:
            found[key] = rows[0][0]
    return found


def _release(process: str, batch: Batch) -> Steps[None]:
    yield Statement(
        "UPDATE batch SET process = NULL, lease = NULL WHERE owner = $1 AND id = $2 AND process = $3",
        (batch.owner, batch.id, process),
    )


def _save(process: str, batch: Batch) -> Steps[bool]:
    body = msgspec.json.encode(batch)
    rows = yield Statement(
        "UPDATE batch SET body = $4, size = size - LENGTH(body) + $5, total = $6"
        " WHERE owner = $1 AND id = $2 AND process = $3 AND ended IS NULL RETURNING id",
        (batch.owner, batch.id, process, body, len(body), batch.total),
    )
    return bool(rows)


def _finish(process: str, batch: Batch, made: Sequence[StoredFile], now: float) -> Steps[bool]:
    if not (yield from _save(process, batch)):
        return False
    yield Statement(
        "UPDATE batch SET ended = $3, process = NULL, lease = NULL WHERE owner = $1 AND id = $2",
        (batch.owner, batch.id, now),
    )
    for file in made:
        yield from files.put(file)
    return True


def _cancel(owner: str, name: str, now: float) -> Steps[Batch | None]:
    yield Statement(
        "UPDATE batch SET cancelled = $3"
        " WHERE owner = $1 AND id = $2 AND ready = 1 AND ended IS NULL AND cancelled IS NULL",
        (owner, name, now),
    )
    return (yield from _get(owner, name))


def delete(owner: str, name: str) -> Steps[bool]:
    """Delete a batch with its requests and results."""
    rows = yield Statement("DELETE FROM batch WHERE owner = $1 AND id = $2 RETURNING id", (owner, name))
    yield Statement("DELETE FROM file WHERE owner = $1 AND batch = $2", (owner, name))
    yield Statement("DELETE FROM batch_line WHERE owner = $1 AND batch = $2", (owner, name))
    return bool(rows)


def _add(owner: str, name: str, requests: Sequence[BatchRow]) -> Steps[bool]:
    rows = yield Statement(
        "UPDATE batch SET size = size + $3 WHERE owner = $1 AND id = $2 AND ended IS NULL RETURNING id",
        (owner, name, sum(ROW + len(one.name) + len(one.body) for one in requests)),
    )
    if rows and requests:
        yield Statement(
            "INSERT INTO batch_line (owner, batch, number, name, request) VALUES ($1, $2, $3, $4, $5)",
            many=[(owner, name, one.number, _bytes(one.name), one.body) for one in requests],
        )
    return bool(rows)


def _clear(owner: str, name: str) -> Steps[None]:
    yield Statement("DELETE FROM batch_line WHERE owner = $1 AND batch = $2", (owner, name))
    yield Statement("UPDATE batch SET size = LENGTH(body) WHERE owner = $1 AND id = $2", (owner, name))


def _unanswered(owner: str, name: str, after: int, limit: int) -> Steps[list[tuple[int, str]]]:
    rows = yield Statement(
        "SELECT number, name FROM batch_line WHERE owner = $1 AND batch = $2 AND outcome IS NULL AND number > $3"
        " ORDER BY number LIMIT $4",
        (owner, name, after, limit),
    )
    return [(row[0], _text(row[1])) for row in rows]


def _request(owner: str, name: str, number: int) -> Steps[BatchRow | None]:
    rows = yield Statement(
        "SELECT number, name, request FROM batch_line"
        " WHERE owner = $1 AND batch = $2 AND number = $3 AND outcome IS NULL",
        (owner, name, number),
    )
    return BatchRow(rows[0][0], _text(rows[0][1]), rows[0][2]) if rows else None


_USED = ", ".join(
    f"{column} = COALESCE({column} + {said}, {column}, {said})"
    for column, said in zip(
        ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"), ("$6", "$7", "$8", "$9"), strict=True
    )
)
_MINE = "owner = $1 AND id = $2 AND process = $3 AND ended IS NULL"


def _settle(process: str, batch: Batch, request: BatchRow, result: BatchResult) -> Steps[bool]:
    key, (outcome, line, usage) = (batch.owner, batch.id), result
    mine = yield Statement(f"UPDATE batch SET size = size WHERE {_MINE} RETURNING id", (*key, process))  # noqa: S608
    if not mine:
        return False
    rows = yield Statement(
        "UPDATE batch_line SET outcome = $4, result = $5, request = $6"
        " WHERE owner = $1 AND batch = $2 AND number = $3 AND outcome IS NULL RETURNING number",
        (*key, request.number, outcome, line, b""),
    )
    if rows:
        yield Statement(
            f"UPDATE batch SET succeeded = succeeded + $3, errored = errored + $4, size = size + $5, {_USED}"  # noqa: S608
            " WHERE owner = $1 AND id = $2",
            (
                *(*key, int(outcome == "ok"), int(outcome == "error"), len(line) - len(request.body)),
                *(usage.input_tokens, usage.cache_read, usage.output_tokens, usage.reasoning),
            ),
        )
    return True


def _leave(process: str, batch: Batch, results: Sequence[tuple[int, bytes]]) -> Steps[bool]:
    key = (batch.owner, batch.id)
    mine = yield Statement(
        "UPDATE batch SET size = size + $4 - (SELECT COALESCE(SUM(LENGTH(request)), 0) FROM batch_line"  # noqa: S608
        " WHERE owner = $1 AND batch = $2 AND number >= $5 AND number <= $6 AND outcome IS NULL)"
        f" WHERE {_MINE} RETURNING id",
        (*key, process, sum(len(result) for _, result in results), results[0][0], results[-1][0]),
    )
    if mine:
        yield Statement(
            "UPDATE batch_line SET outcome = 'left', result = $4, request = $5"
            " WHERE owner = $1 AND batch = $2 AND number = $3 AND outcome IS NULL",
            many=[(*key, number, result, b"") for number, result in results],
        )
    return bool(mine)


def _parts(owner: str, name: str) -> Steps[dict[str, int]]:
    rows = yield Statement(
        "SELECT outcome, COALESCE(SUM(LENGTH(result)), 0) FROM batch_line"
        " WHERE owner = $1 AND batch = $2 AND outcome IS NOT NULL GROUP BY outcome",
        (owner, name),
    )
    return {row[0]: int(row[1]) for row in rows}


def _results(owner: str, name: str, outcomes: Sequence[str], after: int, limit: int) -> Steps[list[tuple[int, bytes]]]:
    places = ", ".join(f"${number}" for number in range(5, 5 + len(outcomes)))
    where = (
        "FROM batch_line WHERE owner = $1 AND batch = $2 AND number > $3"
        f" AND outcome IN ({places}) AND result IS NOT NULL ORDER BY number LIMIT $4"
    )
    sizes = yield Statement(f"SELECT LENGTH(result) {where}", (owner, name, after, limit, *outcomes))
    count = bisect(list(accumulate(int(row[0]) for row in sizes)), RESULT_BYTES) + 1
    rows = yield Statement(f"SELECT number, result {where}", (owner, name, after, min(limit, count), *outcomes))
    return [(row[0], row[1]) for row in rows]


def _bytes(name: str) -> bytes:
    """Return a client's id as bytes: it may contain NUL, which text in SQL may not."""
    return name.encode("utf-8", "surrogatepass")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def _batch(row: Row) -> Batch:
    """Return a batch; its counters are those of the row, which are newer than the rest."""
    body, total, succeeded, errored, cancelled, *used = row
    try:
        found = _decode(body)
    except (msgspec.DecodeError, UnicodeError):
        raise StoreError(UNREADABLE) from None
    usage = Usage(**dict(zip(("input_tokens", "cache_read", "output_tokens", "reasoning"), used, strict=True)))
    return replace(found, total=total, succeeded=succeeded, errored=errored, cancelled=cancelled, usage=usage)
