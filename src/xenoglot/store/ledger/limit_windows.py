"""Windows of limits in the store: one row for each scope that a gateway limits by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.store.queries import Steps


class LimitWindow(NamedTuple):
    """What was used of one scope, encoded, and when none of it counts any more, in Unix seconds."""

    scope: str
    expires: float
    data: bytes


def save(gateway: str, rows: Sequence[LimitWindow]) -> Steps[None]:
    """Store the windows of scopes of a gateway, in place of those that it has."""
    yield Statement(
        "INSERT INTO limit_window (gateway, scope, expires, data) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (gateway, scope) DO UPDATE SET expires = excluded.expires, data = excluded.data",
        many=[(gateway, *row) for row in sorted(rows)],
    )


def load(gateway: str, now: float) -> Steps[list[LimitWindow]]:
    """Return the windows of a gateway that still count."""
    rows = yield Statement(
        "SELECT scope, expires, data FROM limit_window WHERE gateway = $1 AND expires > $2 ORDER BY scope",
        (gateway, now),
    )
    return [LimitWindow(str(scope), float(expires), bytes(data)) for scope, expires, data in rows]


def prune(now: float) -> Steps[None]:
    """Delete windows that do not count any more, of all gateways."""
    yield Statement("DELETE FROM limit_window WHERE expires <= $1", (now,))
