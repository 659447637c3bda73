"""Audit log of administration: what was changed, when, and by which key; written in the transaction of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.model.json import JSON
from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from xenoglot.store.queries import Steps, Value

MOST_ENTRIES: Final = 1000
"""Entries that one query returns."""

_COLUMNS: Final = ("id", "at", "actor", "action", "object", "before", "after", "request")


class Change(Struct, frozen=True, kw_only=True):
    """A change about to be made: the id of its audit entry, its time, who makes it, and by which request."""

    id: str
    at: float
    actor: str
    request: str | None = None


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change of one `object`, such as `key:key_0123456789ab`. Neither side has secrets."""

    id: str
    at: float
    actor: str
    action: str
    object: str
    before: JSON = None
    after: JSON = None
    request: str | None = None


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Which entries are meant, newest first; `after` continues after the entry with this id."""

    since: float = 0.0
    until: float = 1e12
    actor: str | None = None
    action: str | None = None
    object: str | None = None
    after: str | None = None
    limit: int = 50


def record(change: Change, action: str, target: str, *, before: JSON = None, after: JSON = None) -> Steps[None]:
    """Write an audit entry; part of the steps that make the change."""
    values = (change.id, change.at, change.actor, action, target, _text(before), _text(after), change.request)
    places = ", ".join(f"${place + 1}" for place in range(len(_COLUMNS)))
    yield Statement(f"INSERT INTO audit ({', '.join(_COLUMNS)}) VALUES ({places})", values)  # noqa: S608  constants


def entries(which: AuditFilter) -> Steps[list[AuditEntry]]:
    """Return audit entries, the newest first."""
    conditions, values = ["at >= $1", "at < $2"], [which.since, which.until]
    bound: list[Value] = [*values]
    for name in ("actor", "action", "object"):
        wanted = getattr(which, name)
        if wanted is not None:
            bound.append(wanted)
            conditions.append(f"{name} = ${len(bound)}")
    if which.after is not None:
        rows = yield Statement("SELECT at FROM audit WHERE id = $1", (which.after,))
        bound += (rows[0][0] if rows else which.since, which.after)
        at, name = f"${len(bound) - 1}", f"${len(bound)}"
        conditions.append(f"at <= {at} AND (at < {at} OR id < {name})")
    rows = yield Statement(
        f"SELECT {', '.join(_COLUMNS)} FROM audit WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" ORDER BY at DESC, id DESC LIMIT {max(1, min(which.limit, MOST_ENTRIES))}",
        bound,
    )
    found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
    return [AuditEntry(**row | {name: _value(row[name]) for name in ("before", "after")}) for row in found]


def _text(value: JSON) -> str | None:
    return None if value is None else encode_json(value).decode()


def _value(text: str | None) -> JSON:
    return None if text is None else decode_json(text.encode())
