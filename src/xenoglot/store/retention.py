"""Retention: deletion of data that is too old, and of the oldest if there is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.store import batches, conversations, files, queries
from xenoglot.store.files import UNFINISHED
from xenoglot.store.queries import Statement, Steps
from xenoglot.store.records import IDEMPOTENCY, IDEMPOTENCY_SECONDS

if TYPE_CHECKING:
    from xenoglot.store.records import Retention


def sweep(now: float, retention: Retention, batch: int) -> Steps[int]:
    """Delete one batch of expired data; if there is none, of data above the size limit, oldest first."""
    before = now - retention.max_age
    gone = 0
    for oldest, forget in _KINDS:
        rows = yield Statement(oldest, (before, batch - gone, now))
        for owner, *key, _size, _time in rows:
            yield from forget(owner, *key)
        gone += len(rows)
    if gone:
        return gone
    return (yield from _shrink(now, retention.max_bytes, batch))


def protected_bytes(owner: str) -> Steps[int]:
    """Return the bytes of an owner that retention never deletes: batches in progress, and incomplete files."""
    rows = yield Statement(
        "SELECT (SELECT COALESCE(SUM(size), 0) FROM batch WHERE owner = $1 AND ended IS NULL)"
        " + (SELECT COALESCE(SUM(size), 0) FROM file WHERE owner = $1 AND ready = 0)",
        (owner,),
    )
    return int(rows[0][0])


def _shrink(now: float, max_bytes: int, batch: int) -> Steps[int]:
    """Delete the oldest data of any kind, as much as necessary, but at most one batch."""
    rows = yield Statement(
        "SELECT (SELECT COALESCE(SUM(size), 0) FROM answer) + (SELECT COALESCE(SUM(size), 0) FROM conversation)"
        " + (SELECT COALESCE(SUM(size), 0) FROM vault) + (SELECT COALESCE(SUM(size), 0) FROM file)"
        " + (SELECT COALESCE(SUM(size), 0) FROM batch)"
    )
    excess = int(rows[0][0]) - max_bytes
    if excess <= 0:
        return 0
    candidates = []
    for oldest, forget in _KINDS:
        found = yield Statement(oldest, (_FAR_FUTURE, batch, now))
        candidates += [(row[-1], row[-2], forget, row[:-2]) for row in map(tuple, found)]
    gone = 0
    for _time, size, forget, key in sorted(candidates, key=lambda candidate: candidate[0])[:batch]:
        if excess <= 0:
            break
        yield from forget(*key)
        excess -= size
        gone += 1
    return gone


def _forget(owner: str, key: str, backend: str) -> Steps[bool]:
    yield Statement("DELETE FROM vault WHERE owner = $1 AND name = $2 AND backend = $3", (owner, key, backend))
    return True


_FAR_FUTURE = 1e18
_KINDS = (
    (
        (
            "SELECT owner, id, size, created FROM answer"
            " WHERE created < $1 AND (lease IS NULL OR lease < $3) ORDER BY created LIMIT $2"
        ),
        queries.delete,
    ),
    (
        (
            "SELECT owner, id, size, used FROM conversation"
            " WHERE used < $1 AND (held_until IS NULL OR held_until < $3) ORDER BY used LIMIT $2"
        ),
        conversations.delete,
    ),
    (
        (
            "SELECT owner, name, backend, size, created FROM vault"  # noqa: S608  constants
            f" WHERE (created < $1 OR (backend = '{IDEMPOTENCY}'"
            f" AND created < CAST($3 AS DOUBLE PRECISION) - {IDEMPOTENCY_SECONDS}))"
            " AND created <= CAST($3 AS DOUBLE PRECISION) ORDER BY created LIMIT $2"
        ),
        _forget,
    ),
    (
        (
            "SELECT owner, id, size, created FROM file"  # noqa: S608  constants
            " WHERE (created < $1 OR (expires IS NOT NULL AND expires < CAST($3 AS DOUBLE PRECISION)))"
            f" AND (ready = 1 OR created < CAST($3 AS DOUBLE PRECISION) - {UNFINISHED}) ORDER BY created LIMIT $2"
        ),
        files.delete,
    ),
    (
        (
            "SELECT owner, id, size, COALESCE(ended, created) FROM batch"  # noqa: S608  constants
            " WHERE (ended < $1"
            f" OR (ready = 0 AND created < CAST($3 AS DOUBLE PRECISION) - {UNFINISHED}))"
            " ORDER BY COALESCE(ended, created) LIMIT $2"
        ),
        batches.delete,
    ),
)
"""Kinds of data that expire: the columns of key, size and time, and how to delete. Data in progress or locked now ($3)
stays."""
