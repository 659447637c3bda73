"""Queries of the store as generators: each yields SQL statements and gets rows, all in one transaction.

The SQL is the common subset of SQLite and PostgreSQL. Values are always bound, never interpolated. Every lookup has the
owner in its condition: another owner's id is as unknown as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json import slices
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.store import schema
from xenoglot.store.records import UNDONE, Stored, StoreError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON
    from xenoglot.store.records import Order, ReasoningKey, Window

Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = "Sequence[JSON]"
T = TypeVar("T")


class Statement(Struct, frozen=True):
    """One statement with its values; with `many`, the same statement for each row of values."""

    sql: str
    values: Sequence[Value] = ()
    many: Sequence[Sequence[Value]] | None = None


class RowStatement(Statement, frozen=True):
    """Rows for the `columns` of a `table`, none of which exists; PostgreSQL copies them."""

    table: str = ""
    columns: Sequence[str] = ()

    @classmethod
    def into(cls, table: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> RowStatement:
        """Return the statement."""
        places = ", ".join(f"${place + 1}" for place in range(len(columns)))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  names of tables are constants
        return cls(sql, many=rows, table=table, columns=columns)


class ThreadStatement(Statement, frozen=True):
    """Work of some milliseconds before the next statement, done in a thread: it does not block an event loop."""

    work: Callable[[], object] = bool

    @classmethod
    def by(cls, work: Callable[[], object]) -> ThreadStatement:
        """Return the statement."""
        return cls("", work=work)


Steps: TypeAlias = Generator[Statement, Sequence[Row], T]


class Database(Protocol):
    """Runs the statements of a generator in one transaction."""

    async def read(self, steps: Steps[T]) -> T:
        """Run statements that change nothing."""
        ...

    async def write(self, steps: Steps[T]) -> T:
        """Run statements; they are committed when this returns, and rolled back if it raises."""
        ...


LARGE = 1024 * 1024
"""Bytes from which stored JSON is decoded in slices: one call would hold the interpreter's lock too long."""

_answer = msgspec.json.Decoder(Stored)
MOST_KEYS: Final = 256
"""In one statement, of those that are looked up together."""
_KEYS_STEP: Final = 16
_UNDONE = ", ".join(f"'{status}'" for status in UNDONE)
_LONGEST_ID = 256

UNREADABLE = "something in the store cannot be read"


def migrate() -> Steps[None]:
    """Bring the tables to today's version."""
    yield Statement(schema.VERSION_TABLE)
    rows = yield Statement(schema.READ_VERSION)
    version = int(rows[0][0]) if rows else 0
    if version > schema.VERSION:
        raise StoreError(f"the store is of version {version}, and this program knows {schema.VERSION}")
    for migration in schema.MIGRATIONS[version:]:
        for sql in migration:
            yield Statement(sql)
    if version < schema.VERSION:
        yield Statement(schema.FORGET_VERSION)
        yield Statement(schema.WRITE_VERSION, (schema.VERSION,))


def read(data: bytes) -> JSON:
    """Return stored JSON.

    Raises:
        StoreError: not valid JSON.
    """
    try:
        return decode_json(data)
    except WireError:
        raise StoreError(UNREADABLE) from None


def put(answer: Stored) -> Steps[None]:
    """Store a response, replacing one with its id."""
    body = msgspec.json.encode(answer)
    yield Statement(
        "INSERT INTO answer (owner, id, kind, created, status, process, lease, body, size)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        " ON CONFLICT (owner, id) DO UPDATE SET status = excluded.status, process = excluded.process,"
        " lease = excluded.lease, body = excluded.body, size = answer.size - LENGTH(answer.body) + excluded.size",
        (
            answer.owner,
            answer.id,
            answer.kind,
            answer.created,
            answer.status,
            answer.process,
            answer.lease,
            body,
            len(body),
        ),
    )
    yield from _index(answer)


def get(owner: str, answer: str) -> Steps[Stored | None]:
    """Return the answer with that id."""
    rows = yield Statement("SELECT body, status, lease FROM answer WHERE owner = $1 AND id = $2", (owner, answer))
    return _stored(rows[0]) if rows else None


def delete(owner: str, answer: str) -> Steps[bool]:
    """Forget an answer with all that belongs to it."""
    rows = yield Statement("DELETE FROM answer WHERE owner = $1 AND id = $2 RETURNING id", (owner, answer))
    yield Statement("DELETE FROM frame WHERE owner = $1 AND answer = $2", (owner, answer))
    yield Statement("DELETE FROM item WHERE owner = $1 AND answer = $2", (owner, answer))
    return bool(rows)


_ANSWERS = "SELECT body, status, lease FROM answer WHERE owner = $1 AND kind = $2"
_ANSWER_PAGES: dict[Order, tuple[str, str]] = {
    "asc": (
        f"{_ANSWERS} ORDER BY created, id LIMIT $3",
        f"{_ANSWERS} AND (created > $4 OR (created = $4 AND id > $5)) ORDER BY created, id LIMIT $3",
    ),
    "desc": (
        f"{_ANSWERS} ORDER BY created DESC, id DESC LIMIT $3",
        f"{_ANSWERS} AND (created < $4 OR (created = $4 AND id < $5)) ORDER BY created DESC, id DESC LIMIT $3",
    ),
}


def answers(owner: str, kind: str, window: Window) -> Steps[list[Stored]]:
    """Return responses of one kind; none if the cursor does not exist."""
    first, further = _ANSWER_PAGES[window.order]
    if window.after is None:
        rows = yield Statement(first, (owner, kind, window.limit))
        return [_stored(row) for row in rows]
    sql = "SELECT created FROM answer WHERE owner = $1 AND id = $2 AND kind = $3"
    found = yield Statement(sql, (owner, window.after, kind))
    if not found:
        return []
    rows = yield Statement(further, (owner, kind, window.limit, found[0][0], window.after))
    return [_stored(row) for row in rows]


def settle(answer: Stored, first: int, frames: Sequence[bytes]) -> Steps[bool]:
    """Replace an answer that is not done."""
    body = msgspec.json.encode(answer)
    rows = yield Statement(
        "UPDATE answer SET status = $3, process = $4, lease = $5, body = $6, size = size - LENGTH(body) + $7"  # noqa: S608  constants
        f" WHERE owner = $1 AND id = $2 AND status IN ({_UNDONE}) RETURNING id",
        (answer.owner, answer.id, answer.status, answer.process, answer.lease, body, len(body)),
    )
    if rows:
        yield from _index(answer)
        yield from append(answer.owner, answer.id, first, frames)
    return bool(rows)


def amend(answer: Stored) -> Steps[bool]:
    """Replace a response."""
    body = msgspec.json.encode(answer)
    rows = yield Statement(
        "UPDATE answer SET body = $3, size = size - LENGTH(body) + $4 WHERE owner = $1 AND id = $2 RETURNING id",
        (answer.owner, answer.id, body, len(body)),
    )
    return bool(rows)


def renew(process: str, until: float) -> Steps[set[tuple[str, str]]]:
    """Vouch for all undone answers of a process."""
    rows = yield Statement(
        f"UPDATE answer SET lease = $2 WHERE process = $1 AND status IN ({_UNDONE}) RETURNING owner, id",  # noqa: S608
        (process, until),
    )
    return {(row[0], row[1]) for row in rows}


def append(owner: str, answer: str, first: int, frames: Sequence[bytes]) -> Steps[None]:
    """Store frames; those of a response deleted meanwhile are deleted with it."""
    rows = yield Statement(
        "UPDATE answer SET size = size + $3 WHERE owner = $1 AND id = $2 RETURNING id",
        (owner, answer, sum(map(len, frames))),
    )
    if rows and frames:
        yield Statement(
            "INSERT INTO frame (owner, answer, number, data) VALUES ($1, $2, $3, $4)",
            many=[(owner, answer, first + index, data) for index, data in enumerate(frames)],
        )


def frames(owner: str, answer: str, after: int, limit: int) -> Steps[list[tuple[int, bytes]]]:
    """Return frames after the number `after`."""
    rows = yield Statement(
        "SELECT number, data FROM frame WHERE owner = $1 AND answer = $2 AND number > $3 ORDER BY number LIMIT $4",
        (owner, answer, after, limit),
    )
    return [(row[0], row[1]) for row in rows]


def item(owner: str, item: str) -> Steps[JSON]:
    """Return the item with that id, of any response or conversation; of several, the latest."""
    rows = yield Statement(
        "SELECT data FROM conversation_item WHERE owner = $1 AND id = $2 ORDER BY position DESC LIMIT 1", (owner, item)
    )
    if rows:
        return read(rows[0][0])
    rows = yield Statement(
        "SELECT a.body, a.status, a.lease FROM item i JOIN answer a ON a.owner = i.owner AND a.id = i.answer"
        " WHERE i.owner = $1 AND i.id = $2 ORDER BY a.created DESC LIMIT 1",
        (owner, item),
    )
    output = _stored(rows[0]).output if rows else ()
    return next((found for found in output if _id(found) == item), None)


def put_cached(owner: str, key: str, backend: str, payload: bytes, now: float) -> Steps[None]:
    """Store an entry of the reasoning cache, replacing an earlier one."""
    yield Statement(
        "INSERT INTO vault (owner, name, backend, created, payload, size) VALUES ($1, $2, $3, $4, $5, $6)"
        " ON CONFLICT (owner, name, backend) DO UPDATE SET created = excluded.created, payload = excluded.payload,"
        " size = excluded.size",
        (owner, key, backend, now, payload, len(payload)),
    )


def get_cached(owner: str, key: str, backend: str) -> Steps[bytes | None]:
    """Return an entry of the reasoning cache."""
    rows = yield Statement(
        "SELECT payload FROM vault WHERE owner = $1 AND name = $2 AND backend = $3", (owner, key, backend)
    )
    return rows[0][0] if rows else None


def has_cached() -> Steps[bool]:
    """Return whether the table of the reasoning cache has any entry, of any kind."""
    return bool((yield Statement("SELECT 1 FROM vault LIMIT 1", ())))


def get_cached_of(owner: str, keys: Sequence[str], backend: str) -> Steps[dict[str, bytes]]:
    """Return the entries of the reasoning cache under any of `keys`, by key.

    A statement has a multiple of `_KEYS_STEP` keys, the last one repeated: few statements are to be prepared.
    """
    found: dict[str, bytes] = {}
    for start in range(0, len(keys), MOST_KEYS):
        names = list(keys[start : start + MOST_KEYS])
        names += names[-1:] * (-len(names) % _KEYS_STEP)
        places = ", ".join(f"${number}" for number in range(3, len(names) + 3))
        rows = yield Statement(
            f"SELECT name, payload FROM vault WHERE owner = $1 AND backend = $2 AND name IN ({places})",  # noqa: S608  numbers
            (owner, backend, *names),
        )
        found.update((name, payload) for name, payload in rows)
    return found


def swap(place: ReasoningKey, before: bytes | None, after: bytes | None, now: float) -> Steps[bool]:
    """Replace the cache entry `before` by `after`, if it is `before`; return whether it was. `None` is no entry."""
    if before is None and after is None:
        return (yield from get_cached(*place)) is None
    if before is None:
        rows = yield Statement(
            "INSERT INTO vault (owner, name, backend, created, payload, size) VALUES ($1, $2, $3, $4, $5, $6)"
            " ON CONFLICT (owner, name, backend) DO NOTHING RETURNING name",
            (*place, now, after, len(after or b"")),
        )
    elif after is None:
        rows = yield Statement(
            "DELETE FROM vault WHERE owner = $1 AND name = $2 AND backend = $3 AND payload = $4 RETURNING name",
            (*place, before),
        )
    else:
        rows = yield Statement(
            "UPDATE vault SET created = $4, payload = $5, size = $6"
            " WHERE owner = $1 AND name = $2 AND backend = $3 AND payload = $7 RETURNING name",
            (*place, now, after, len(after), before),
        )
    return bool(rows)


def _index(answer: Stored) -> Steps[None]:
    """Note under which ids the answer's items can be found."""
    found = dict.fromkeys(name for item in answer.output if (name := _id(item)) is not None)
    if found:
        yield Statement(
            "INSERT INTO item (owner, id, answer) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            many=[(answer.owner, name, answer.id) for name in found],
        )


def _id(item: JSON) -> str | None:
    name = item.get("id") if isinstance(item, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= _LONGEST_ID and name.isprintable() else None


def _stored(row: Row) -> Stored:
    """Return an answer; its status and lease are those of the row, which can be newer than the rest."""
    body, status, lease = row
    try:
        found = _answer.decode(body) if len(body) < LARGE else msgspec.convert(slices.decode(body), Stored)
        return replace(found, status=status, lease=lease)
    except (msgspec.DecodeError, UnicodeError):
        raise StoreError(UNREADABLE) from None
