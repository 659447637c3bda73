"""API keys in the store, as generators of statements (`store.queries`).

A key has an id, a name and rights, and one secret; for some time after a rotation it has more. Only the SHA-256 of a
secret is stored. Each change grows a version in the same transaction, so that gateways notice it by one cheap query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import XenoglotError
from xenoglot.model.json import JSON
from xenoglot.store.ledger import audit
from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.store.ledger.audit import Change
    from xenoglot.store.queries import Row, Steps, Value

MOST_KEYS: Final = 1000
"""Keys that one query returns."""

MOST_LOOKED_UP: Final = 200
"""Digests or ids in one statement."""


class KeyConflictError(XenoglotError):
    """Another key has the name."""


class StoredKey(Struct, frozen=True, kw_only=True):
    """An API key without its secret: the columns of the table `api_key`. Times are Unix seconds.

    `shown` is the end of the newest secret. Without `models` all are allowed. `limits` are as in a configuration file.
    """

    id: str
    tenant: str | None = None
    name: str
    owner: str
    shown: str
    roles: tuple[str, ...] = ("client",)
    models: tuple[str, ...] = ()
    limits: JSON = None
    budgets: tuple[str, ...] = ()
    created: float
    created_by: str | None = None
    expires: float | None = None
    disabled: float | None = None
    last_used: float | None = None

    def state(self, now: float) -> str:
        """Return `active`, `disabled` or `expired`."""
        if self.disabled is not None:
            return "disabled"
        return "expired" if self.expires is not None and self.expires <= now else "active"

    def public(self) -> JSONObject:
        """Return the key as JSON for administrators and the audit log: without its owner, which is a digest."""
        plain: JSONObject = msgspec.json.decode(msgspec.json.encode(self))
        return {name: value for name, value in plain.items() if name != "owner"}


class KeySecret(NamedTuple):
    """A secret of a key: its digest, when it expires because of a rotation, and the key."""

    digest: str
    expires: float | None
    key: StoredKey


class KeySnapshot(NamedTuple):
    """Secrets with their keys, at least as new as `version`."""

    version: int
    secrets: list[KeySecret]


class KeyFilter(Struct, frozen=True, kw_only=True):
    """Which keys are meant, newest first; `after` continues after the key with this id."""

    tenant: str | None = None
    after: str | None = None
    limit: int = 50


COLUMNS: Final = StoredKey.__struct_fields__
_JSON_COLUMNS: Final = ("roles", "models", "limits", "budgets")
_SELECT: Final = f"SELECT {', '.join(f'api_key.{name}' for name in COLUMNS)}"
_GROW: Final = Statement("UPDATE api_key_version SET version = version + 1")


def create(key: StoredKey, digest: str, change: Change) -> Steps[StoredKey]:
    """Store a new key.

    Raises:
        KeyConflictError: another key has its name.
    """
    yield _GROW
    yield from _check_name(key)
    places = ", ".join(f"${place + 1}" for place in range(len(COLUMNS)))
    yield Statement(f"INSERT INTO api_key ({', '.join(COLUMNS)}) VALUES ({places})", _values(key))  # noqa: S608  as above
    yield from _add_secret(key.id, digest, change.at)
    yield from audit.record(change, "key.create", _object(key), after=key.public())
    return key


def get(reference: str) -> Steps[StoredKey | None]:
    """Return the key with this id or name."""
    rows = yield Statement(f"{_SELECT} FROM api_key WHERE id = $1 OR name = $1", (reference,))
    return _key(rows[0]) if rows else None


def listed(which: KeyFilter) -> Steps[list[StoredKey]]:
    """Return keys, the newest first."""
    conditions = ["id <> ''"]
    bound: list[Value] = []
    if which.tenant is not None:
        bound.append(which.tenant)
        conditions.append(f"tenant = ${len(bound)}")
    if which.after is not None:
        rows = yield Statement("SELECT created FROM api_key WHERE id = $1", (which.after,))
        bound += (rows[0][0] if rows else 0.0, which.after)
        at, name = f"${len(bound) - 1}", f"${len(bound)}"
        conditions.append(f"created <= {at} AND (created < {at} OR id < {name})")
    rows = yield Statement(
        f"{_SELECT} FROM api_key WHERE {' AND '.join(conditions)}"
        f" ORDER BY created DESC, id DESC LIMIT {max(1, min(which.limit, MOST_KEYS))}",
        bound,
    )
    return [_key(row) for row in rows]


def update(
    key_id: str, fields: Mapping[str, object], change: Change, action: str = "key.update"
) -> Steps[StoredKey | None]:
    """Change fields of a key; `None` if there is none.

    Raises:
        KeyConflictError: another key has its new name.
    """
    yield _GROW
    before = yield from get(key_id)
    if before is None:
        return None
    after = replace(before, **fields)
    if after.name != before.name:
        yield from _check_name(after)
    if after != before:
        yield from _write(after)
        yield from audit.record(change, action, _object(after), before=before.public(), after=after.public())
    return after


def rotate(key_id: str, digest: str, shown: str, change: Change, old_until: float) -> Steps[StoredKey | None]:
    """Give a key another secret; its older ones expire at `old_until`. `None` if there is no such key."""
    yield _GROW
    before = yield from get(key_id)
    if before is None:
        return None
    yield Statement(
        "UPDATE api_key_secret SET expires = $2 WHERE key = $1 AND (expires IS NULL OR expires > $2)",
        (before.id, old_until),
    )
    yield Statement("DELETE FROM api_key_secret WHERE key = $1 AND expires <= $2", (before.id, change.at))
    yield from _add_secret(before.id, digest, change.at)
    after = replace(before, shown=shown)
    yield from _write(after)
    told: JSONObject = after.public() | {"old_until": old_until}
    yield from audit.record(change, "key.rotate", _object(after), before=before.public(), after=told)
    return after


def delete(key_id: str, change: Change) -> Steps[StoredKey | None]:
    """Delete a key; return it as it was, `None` if there is none."""
    yield _GROW
    before = yield from get(key_id)
    if before is None:
        return None
    yield Statement("DELETE FROM api_key_secret WHERE key = $1", (before.id,))
    yield Statement("DELETE FROM api_key WHERE id = $1", (before.id,))
    yield from audit.record(change, "key.delete", _object(before), before=before.public())
    return before


def by_digests(digests: Sequence[str]) -> Steps[KeySnapshot]:
    """Return the secrets with these digests, each with its key."""
    now = yield from version()  # first: what is read after it is no older
    return KeySnapshot(now, (yield from _secrets("digest", digests)))


def by_ids(ids: Sequence[str], known: int | None = None) -> Steps[KeySnapshot | None]:
    """Return the secrets of the keys with these ids; `None` if the version still is the `known` one."""
    now = yield from version()
    return None if now == known else KeySnapshot(now, (yield from _secrets("key", ids)))


def by_owner(owner: str) -> Steps[list[StoredKey]]:
    """Return the keys of an owner, the newest first."""
    rows = yield Statement(f"{_SELECT} FROM api_key WHERE owner = $1 ORDER BY created DESC LIMIT {MOST_KEYS}", (owner,))
    return [_key(row) for row in rows]


def version() -> Steps[int]:
    """Return the version, which every change of a key grows."""
    rows = yield Statement("SELECT version FROM api_key_version")
    return int(rows[0][0])


def names(ids: Sequence[str]) -> Steps[dict[str, str]]:
    """Return the names of keys by their ids."""
    found: dict[str, str] = {}
    for start in range(0, len(ids), MOST_LOOKED_UP):
        some = ids[start : start + MOST_LOOKED_UP]
        rows = yield Statement(f"SELECT id, name FROM api_key WHERE id IN ({_places(some)})", some)  # noqa: S608  places
        found |= {str(row[0]): str(row[1]) for row in rows}
    return found


def used(times: Mapping[str, float]) -> Steps[None]:
    """Note when keys were last used, by their ids."""
    rows = [(key, times[key]) for key in sorted(times)]
    sql = "UPDATE api_key SET last_used = $2 WHERE id = $1 AND (last_used IS NULL OR last_used < $2)"
    yield Statement(sql, many=rows)


def _secrets(column: str, wanted: Sequence[str]) -> Steps[list[KeySecret]]:
    found: list[KeySecret] = []
    for start in range(0, len(wanted), MOST_LOOKED_UP):
        some = wanted[start : start + MOST_LOOKED_UP]
        rows = yield Statement(
            f"{_SELECT}, api_key_secret.digest, api_key_secret.expires FROM api_key_secret"
            f" JOIN api_key ON api_key.id = api_key_secret.key WHERE api_key_secret.{column} IN ({_places(some)})",
            some,
        )
        found += [KeySecret(str(row[-2]), row[-1], _key(row[:-2])) for row in rows]
    return found


def _places(values: Sequence[str]) -> str:
    return ", ".join(f"${place + 1}" for place in range(len(values)))


def _check_name(key: StoredKey) -> Steps[None]:
    rows = yield Statement("SELECT 1 FROM api_key WHERE name = $1 AND id <> $2", (key.name, key.id))
    if rows:
        raise KeyConflictError(f"another key is named `{key.name}`")


def _add_secret(key_id: str, digest: str, created: float) -> Steps[None]:
    sql = "INSERT INTO api_key_secret (digest, key, created, expires) VALUES ($1, $2, $3, NULL)"
    yield Statement(sql, (digest, key_id, created))


def _write(key: StoredKey) -> Steps[None]:
    pairs = ", ".join(f"{name} = ${place + 1}" for place, name in enumerate(COLUMNS) if name != "id")
    yield Statement(f"UPDATE api_key SET {pairs} WHERE id = $1", _values(key))  # noqa: S608  constants


def _object(key: StoredKey) -> str:
    return f"key:{key.id}"


def _values(key: StoredKey) -> list[Value]:
    values: JSONObject = msgspec.to_builtins(key)
    return [
        encode_json(value).decode() if name in _JSON_COLUMNS and value is not None else value
        for name, value in values.items()
    ]


def _key(row: Row) -> StoredKey:
    values = dict(zip(COLUMNS, row, strict=True))
    for name in _JSON_COLUMNS:
        values[name] = None if values[name] is None else decode_json(values[name].encode())
    for name in ("roles", "models", "budgets"):
        values[name] = tuple(values[name] or ())
    return StoredKey(**values)
