"""Stored files, in pieces, so that memory does not grow with the size of a file.

A file is visible when it is complete. Its pieces are stored as they arrive; those of an incomplete file are deleted
after `UNFINISHED` seconds. The output of a batch has no pieces: its bytes are the batch's results. Every method raises
`StoreError` if the store fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from xenoglot.codec.features.batch import PARTS, StoredFile
from xenoglot.store.queries import UNREADABLE, Row, Statement, Steps
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.store.queries import Database
    from xenoglot.store.records import Order, Window

UNFINISHED = 3_600.0

MOST_UNFINISHED = 10_000
"""Incomplete files of one owner: their sizes are added up for each piece."""

_decode = msgspec.json.Decoder(StoredFile).decode


class PartialFile(NamedTuple):
    """The metadata of a file that is still being uploaded, and the numbers of pieces and bytes that arrived."""

    file: StoredFile
    pieces: int
    size: int


class Files:
    """The files of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, file: StoredFile) -> bool:
        """Store the metadata of a file before its bytes; return whether its owner could have one more."""
        return await self._database.write(_begin(file))

    async def add(self, owner: str, name: str, number: int, piece: bytes) -> bool:
        """Store the piece `number`; return whether the file is still being uploaded and had no such piece."""
        return await self._database.write(_add(owner, name, number, piece))

    async def finish(self, file: StoredFile) -> bool:
        """Make a complete file visible; return whether it was not deleted meanwhile."""
        return await self._database.write(_finish(file))

    async def get(self, owner: str, name: str, now: float) -> StoredFile | None:
        """Return the metadata of a file."""
        return await self._database.read(_get(owner, name, now))

    async def list_page(self, owner: str, window: Window, now: float, purpose: str | None = None) -> list[StoredFile]:
        """Return files, of one purpose if set; none if the cursor does not exist."""
        return await self._database.read(_listed(owner, window, now, purpose))

    async def pieces(self, owner: str, name: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return pieces with their numbers, in order, after the number `after`."""
        return await self._database.read(_pieces(owner, name, after, limit))

    async def unfinished(self, name: str, now: float) -> PartialFile | None:
        """Return a file that is still being uploaded, of any owner; `None` if its time is over."""
        return await self._database.read(_unfinished(name, now))

    async def compose(self, file: StoredFile, parts: Sequence[str]) -> bool:
        """Store a complete file of the pieces of unfinished `parts` of its owner, which are deleted.

        Return whether all parts existed and have `file.size` bytes together; else nothing is changed.
        """
        return await self._database.write(_compose(file, parts))

    async def discard(self, owner: str, purpose: str) -> None:
        """Delete the unfinished files of a purpose."""
        await self._database.write(_discard(owner, purpose))

    async def delete(self, owner: str, name: str) -> bool:
        """Delete a file; return whether it existed."""
        return await self._database.write(delete(owner, name))


def put(file: StoredFile) -> Steps[None]:
    """Store a file without pieces."""
    yield from _put(file, ready=True)


def _begin(file: StoredFile) -> Steps[bool]:
    rows = yield Statement("SELECT COUNT(*) FROM file WHERE owner = $1 AND ready = 0", (file.owner,))
    if int(rows[0][0]) >= MOST_UNFINISHED:
        return False
    yield from _put(file, ready=False)
    return True


def _put(file: StoredFile, *, ready: bool) -> Steps[None]:
    body = msgspec.json.encode(file)
    yield Statement(
        "INSERT INTO file (owner, id, created, purpose, expires, ready, batch, part, size, body)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        (
            file.owner,
            file.id,
            file.created,
            file.purpose,
            file.expires,
            int(ready),
            file.batch,
            file.part,
            len(body),
            body,
        ),
    )


def _add(owner: str, name: str, number: int, piece: bytes) -> Steps[bool]:
    rows = yield Statement(
        "UPDATE file SET size = size + $3 WHERE owner = $1 AND id = $2 AND ready = 0 RETURNING id",
        (owner, name, len(piece)),
    )
    if not rows:
        return False
    added = yield Statement(
        "INSERT INTO file_piece (owner, file, number, data) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT DO NOTHING RETURNING number",
        (owner, name, number, piece),
    )
    if not added:
        yield Statement("UPDATE file SET size = size - $3 WHERE owner = $1 AND id = $2", (owner, name, len(piece)))
    return bool(added)


def _finish(file: StoredFile) -> Steps[bool]:
    body = msgspec.json.encode(file)
    rows = yield Statement(
        "UPDATE file SET ready = 1, purpose = $3, expires = $4, size = size - LENGTH(body) + $5, body = $6"
        " WHERE owner = $1 AND id = $2 AND ready = 0 RETURNING id",
        (file.owner, file.id, file.purpose, file.expires, len(body), body),
    )
    return bool(rows)


_THERE = "FROM file WHERE owner = $1 AND ready = 1 AND (expires IS NULL OR expires > $2)"


def _get(owner: str, name: str, now: float) -> Steps[StoredFile | None]:
    rows = yield Statement(f"SELECT body {_THERE} AND id = $3", (owner, now, name))
    return _file(rows[0]) if rows else None


_PAGES: dict[Order, tuple[str, str]] = {
    "asc": ("(created > $4 OR (created = $4 AND id > $5))", "ORDER BY created, id LIMIT $3"),
    "desc": ("(created < $4 OR (created = $4 AND id < $5))", "ORDER BY created DESC, id DESC LIMIT $3"),
}


def _listed(owner: str, window: Window, now: float, purpose: str | None) -> Steps[list[StoredFile]]:
    behind, page = _PAGES[window.order]
    values: list[str | float] = [owner, now, window.limit]
    where = ""
    if window.after is not None:
        rows = yield Statement(f"SELECT created {_THERE} AND id = $3", (owner, now, window.after))
        if not rows:
            return []
        values += [rows[0][0], window.after]
        where = f" AND {behind}"
    if purpose is not None:
        values.append(purpose)
        where += f" AND purpose = ${len(values)}"
    rows = yield Statement(f"SELECT body {_THERE}{where} {page}", values)
    return [_file(row) for row in rows]


def _pieces(owner: str, name: str, after: int, limit: int) -> Steps[list[tuple[int, bytes]]]:
    rows = yield Statement(
        "SELECT number, data FROM file_piece WHERE owner = $1 AND file = $2 AND number > $3 ORDER BY number LIMIT $4",
        (owner, name, after, limit),
    )
    return [(row[0], row[1]) for row in rows]


def _unfinished(name: str, now: float) -> Steps[PartialFile | None]:
    rows = yield Statement(
        "SELECT body, size - LENGTH(body) FROM file"
        " WHERE ready = 0 AND id = $1 AND created >= CAST($2 AS DOUBLE PRECISION)",
        (name, now - UNFINISHED),
    )
    if not rows:
        return None
    file = _file(rows[0])
    last = yield Statement(
        "SELECT COALESCE(MAX(number), -1) FROM file_piece WHERE owner = $1 AND file = $2", (file.owner, name)
    )
    return PartialFile(file, int(last[0][0]) + 1, int(rows[0][1]))


def _compose(file: StoredFile, parts: Sequence[str]) -> Steps[bool]:
    found = 0
    for part in sorted(parts):  # each is locked, in one order everywhere
        rows = yield Statement(
            "UPDATE file SET size = size WHERE owner = $1 AND id = $2 AND ready = 0 RETURNING size - LENGTH(body)",
            (file.owner, part),
        )
        if not rows:
            return False
        found += int(rows[0][0])
    if found != file.size:
        return False
    yield from _put(file, ready=True)
    number = 0
    for part in parts:
        rows = yield Statement(
            "UPDATE file_piece SET file = $3, number = number + $4 WHERE owner = $1 AND file = $2 RETURNING number",
            (file.owner, part, file.id, number),
        )
        number += len(rows)
        yield Statement("DELETE FROM file WHERE owner = $1 AND id = $2", (file.owner, part))
    yield Statement("UPDATE file SET size = size + $3 WHERE owner = $1 AND id = $2", (file.owner, file.id, file.size))
    return True


def _discard(owner: str, purpose: str) -> Steps[None]:
    rows = yield Statement("SELECT id FROM file WHERE owner = $1 AND purpose = $2 AND ready = 0", (owner, purpose))
    for (name,) in rows:
        yield from delete(owner, str(name))


def delete(owner: str, name: str) -> Steps[bool]:
    """Delete a file and its pieces; for a batch's output, delete the results."""
    # The batch is locked first, as by whoever forgets that: two who wait for each other would both fail.
    found = yield Statement("SELECT batch FROM file WHERE owner = $1 AND id = $2 AND batch IS NOT NULL", (owner, name))
    for (batch,) in found:
        yield Statement("UPDATE batch SET size = size WHERE owner = $1 AND id = $2", (owner, batch))
    rows = yield Statement("DELETE FROM file WHERE owner = $1 AND id = $2 RETURNING batch, part", (owner, name))
    yield Statement("DELETE FROM file_piece WHERE owner = $1 AND file = $2", (owner, name))
    for batch, part in rows:
        for outcome in PARTS.get(str(part), ()):
            yield Statement(
                "UPDATE batch SET size = size - (SELECT COALESCE(SUM(LENGTH(result)), 0) FROM batch_line"
                " WHERE owner = $1 AND batch = $2 AND outcome = $3) WHERE owner = $1 AND id = $2",
                (owner, batch, outcome),
            )
            yield Statement(
                "UPDATE batch_line SET result = NULL WHERE owner = $1 AND batch = $2 AND outcome = $3",
                (owner, batch, outcome),
            )
    return bool(rows)


def _file(row: Row) -> StoredFile:
    try:
        return _decode(row[0])
    except (msgspec.DecodeError, UnicodeError):
        raise StoreError(UNREADABLE) from None
