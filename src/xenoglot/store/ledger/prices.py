"""Prices in the store, as generators of statements (`store.queries`); each change writes its audit entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict, astuple

from xenoglot.store.ledger import audit
from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from xenoglot.store.ledger.audit import Change
    from xenoglot.store.queries import Row, Steps

MOST_PRICES: Final = 10_000
"""Rows that are read."""


class StoredPrice(Struct, frozen=True, kw_only=True):
    """Prices of a million tokens, as decimal numbers in text, from `valid_from` on (Unix seconds).

    They are for models that `pattern` matches, at one upstream, or at all if `upstream` is empty. Of several rows that
    match, one for the upstream comes before one for all, a name before a pattern, a longer pattern before a shorter
    one, and a newer row before an older one.
    """

    pattern: str
    upstream: str = ""
    valid_from: float
    input: str
    output: str
    cache_read: str | None = None
    cache_write: str | None = None
    currency: str = "USD"

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """The sort key: the row that counts comes first."""
        return (not self.upstream, "*" in self.pattern, -len(self.pattern), -self.valid_from)

    @property
    def key(self) -> tuple[str, str, float]:
        """The key of the row."""
        return (self.pattern, self.upstream, self.valid_from)

    @property
    def label(self) -> str:
        """The row in the audit log."""
        return f"price:{self.upstream or '*'}/{self.pattern}@{self.valid_from:g}"


_COLUMNS: Final = StoredPrice.__struct_fields__
_KEY: Final = ("pattern", "upstream", "valid_from")
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM price"  # noqa: S608  constants
_WHERE: Final = " WHERE pattern = $1 AND upstream = $2 AND valid_from = $3"
_PUT: Final = (
    f"INSERT INTO price ({', '.join(_COLUMNS)})"  # noqa: S608  constants
    f" VALUES ({', '.join(f'${place + 1}' for place in range(len(_COLUMNS)))}) ON CONFLICT ({', '.join(_KEY)})"
    f" DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS if name not in _KEY)}"
)


def prices() -> Steps[list[StoredPrice]]:
    """Return all prices, in the order of their keys."""
    rows = yield Statement(f"{_SELECT} ORDER BY {', '.join(_KEY)} LIMIT {MOST_PRICES}")
    return [_price(row) for row in rows]


def put(price: StoredPrice, change: Change) -> Steps[None]:
    """Store a price, in place of the one with its key."""
    before = yield from _one(price.key)
    yield Statement(_PUT, astuple(price))
    former = None if before is None else asdict(before)
    yield from audit.record(change, "price.set", price.label, before=former, after=asdict(price))


def delete(key: tuple[str, str, float], change: Change) -> Steps[bool]:
    """Delete a price; return whether it existed."""
    before = yield from _one(key)
    if before is None:
        return False
    yield Statement(f"DELETE FROM price{_WHERE}", key)  # noqa: S608  constants
    yield from audit.record(change, "price.delete", before.label, before=asdict(before))
    return True


def _one(key: tuple[str, str, float]) -> Steps[StoredPrice | None]:
    rows = yield Statement(_SELECT + _WHERE, key)
    return _price(rows[0]) if rows else None


def _price(row: Row) -> StoredPrice:
    return StoredPrice(**dict(zip(_COLUMNS, row, strict=True)))
