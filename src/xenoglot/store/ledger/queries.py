"""Queries of the ledger, as generators of statements (`store.queries`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import astuple

from xenoglot.store.ledger.rows import COLUMNS, FIRST_FAILED_STATUS, RequestRow
from xenoglot.store.ledger.tables import ENDED
from xenoglot.store.ledger.tag_usage import TAG, tag_usage
from xenoglot.store.ledger.usage_sums import KEYS, SUMS, summed
from xenoglot.store.queries import RowStatement, Statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.store.ledger.usage_sums import RowValues, SumKey
    from xenoglot.store.queries import Row, Steps, Value

GROUPS: Final = ("tenant", "key", "model", "upstream", "dialect", "hour", "day")
"""What usage can be grouped by."""

MOST_REQUESTS: Final = 1000
"""Rows of requests that one query returns."""

CHECK: Final = Statement("SELECT 1 FROM request LIMIT 1")
"""Fails if the store cannot be used."""

_HOUR_COLUMNS: Final = (*KEYS, *SUMS)
_ADD: Final = (
    f"INSERT INTO usage_hour ({', '.join(_HOUR_COLUMNS)})"  # noqa: S608  constants
    f" VALUES ({', '.join(f'${place + 1}' for place in range(len(_HOUR_COLUMNS)))})"
    f" ON CONFLICT ({', '.join(KEYS)}) DO UPDATE SET "
    + ", ".join(f"{name} = usage_hour.{name} + excluded.{name}" for name in SUMS)
)
_DAY: Final = "(hour / 86400) * 86400"


class UsageFilter(Struct, frozen=True, kw_only=True):
    """Which usage is meant: of hours from `since` until before `until`, and of what has these names, if given."""

    since: float = 0.0
    until: float = 1e12
    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    upstream: str | None = None
    dialect: str | None = None


class RequestFilter(Struct, frozen=True, kw_only=True):
    """Which requests are meant, newest first; `before` continues after the request with this time and id."""

    since: float = 0.0
    until: float | None = None
    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    upstream: str | None = None
    dialect: str | None = None
    session: str | None = None
    trace: str | None = None
    status: int | None = None
    failed: bool | None = None
    """Whether they failed; `None` for both."""
    lossy: bool = False
    """Only those that lost something in translation."""
    before: tuple[float, str] | None = None
    limit: int = 50


def add(rows: Sequence[RequestRow]) -> Steps[None]:
    """Store requests, and add them to the sums of their hours."""
    values = [astuple(row) for row in rows]
    yield from add_summed(values, summed(values))


def add_summed(rows: Sequence[RowValues], sums: Mapping[SumKey, Sequence[int]]) -> Steps[None]:
    """Store requests as tuples in the order of the columns, and add their `sums` to those of their hours."""
    yield RowStatement.into("request", COLUMNS, rows)
    # gateways that write the same hours take the locks of a database in the same order
    yield Statement(_ADD, many=[(*key, *sums[key]) for key in sorted(sums)])


def known(names: Sequence[str]) -> Steps[set[str]]:
    """Return which of the requests with these ids are stored."""
    places = ", ".join(f"${place + 1}" for place in range(len(names)))
    rows = yield Statement(f"SELECT id FROM request WHERE id IN ({places})", names)  # noqa: S608  numbers
    return {str(row[0]) for row in rows}


EXPECTED: Final = f"{', '.join(GROUPS)}, {TAG}NAME"




def is_group(name: str) -> bool:
    """Return whether usage can be grouped by `name`."""
    return name in GROUPS or (name.startswith(TAG) and name != TAG)


def usage(
    by: Sequence[str], which: UsageFilter, *, limit: int | None = None, offset: int = 0
) -> Steps[list[dict[str, JSON]]]:
    """Return the sums of usage by each group and currency, in order; `by` are some of `GROUPS`, or `tag:NAME`.

    At most `limit` of them after the first `offset`.

    Raises:
        ValueError: it is none of them.
    """
    unknown = [name for name in by if not is_group(name)]
    if unknown:
        raise ValueError(f"`{unknown[0]}`: expected one of {EXPECTED}")
    if any(name.startswith(TAG) for name in by):
        names = {name: getattr(which, name) for name in KEYS[1:-1]}
        found = yield from tag_usage(by, which.since, which.until, names, SUMS)
        return found[offset:][:limit]
    groups = [_DAY if name == "day" else name for name in by] + ["currency"]
    conditions, values = ["hour >= $1", "hour < $2"], [int(which.since), int(which.until)]
    bound: list[Value] = [*values]
    for name in ("tenant", "key", "model", "upstream", "dialect"):
        wanted = getattr(which, name)
        if wanted is not None:
            bound.append(wanted)
            conditions.append(f"{name} = ${len(bound)}")
    sums = ", ".join(f"CAST(SUM({name}) AS BIGINT)" for name in SUMS)
    rows = yield Statement(
        f"SELECT {', '.join(groups)}, {sums} FROM usage_hour WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}"
        + ("" if limit is None else f" LIMIT {limit} OFFSET {offset}"),
        bound,
    )
    return [dict(zip((*by, "currency", *SUMS), row, strict=True)) for row in rows]


def requests(which: RequestFilter) -> Steps[list[RequestRow]]:
    """Return requests, the newest first."""
    conditions, values = _conditions(which)
    if which.before is not None:
        values += which.before
        at, name = f"${len(values) - 1}", f"${len(values)}"
        conditions.append(f"(at < {at} OR (at = {at} AND id < {name}))")
    rows = yield Statement(
        f"SELECT {', '.join(COLUMNS)} FROM request WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" ORDER BY at DESC, id DESC LIMIT {max(1, min(which.limit, MOST_REQUESTS))}",
        values,
    )
    return [_request(row) for row in rows]


def ended(which: RequestFilter, after: tuple[float, str]) -> Steps[list[RequestRow]]:
    """Return requests that ended after the one with this time of its end and this id, the first to end first."""
    conditions, values = _conditions(which)
    values += (*after, MOST_REQUESTS)
    end, name, most = (f"${len(values) - place}" for place in (2, 1, 0))
    rows = yield Statement(
        f"SELECT {', '.join(COLUMNS)} FROM request WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" AND {ENDED} >= {end} AND ({ENDED} > {end} OR id > {name}) ORDER BY {ENDED}, id LIMIT {most}",
        values,
    )
    return [_request(row) for row in rows]


def _conditions(which: RequestFilter) -> tuple[list[str], list[Value]]:
    """Return the conditions of a filter, with the values that they bind."""
    conditions: list[str] = []
    bound: list[Value] = []
    if which.since:
        bound.append(which.since)
        conditions.append("at >= $1")
    if which.until is not None:
        bound.append(which.until)
        conditions.append(f"at < ${len(bound)}")
    for name in ("tenant", "key", "model", "upstream", "dialect", "session", "trace", "status"):
        wanted = getattr(which, name)
        if wanted is not None:
            bound.append(wanted)
            conditions.append(f"{name} = ${len(bound)}")
    if which.failed is not None:
        failure = f"(failure IS NOT NULL OR COALESCE(status, 0) >= {FIRST_FAILED_STATUS})"
        conditions.append(failure if which.failed else f"NOT {failure}")
    if which.lossy:
        conditions.append("losses > 0")
    return conditions or ["1 = 1"], bound


class CapturePart(Struct, frozen=True, kw_only=True):
    """A body of a request that was captured, without its content: which it is, its media type, and until when."""

    part: str
    media: str
    bytes: int
    expires: float


def captured(request: str) -> Steps[list[CapturePart]]:
    """Return the bodies that were captured of a request."""
    rows = yield Statement(
        "SELECT part, media, LENGTH(body), expires FROM capture WHERE request = $1 ORDER BY part", (request,)
    )
    return [CapturePart(part=row[0], media=row[1], bytes=row[2], expires=row[3]) for row in rows]


def request(name: str) -> Steps[RequestRow | None]:
    """Return the request with this id; `None` if there is none."""
    rows = yield Statement(f"SELECT {', '.join(COLUMNS)} FROM request WHERE id = $1", (name,))  # noqa: S608  as above
    return _request(rows[0]) if rows else None


def prune(before: float, sums_before: float, most: int) -> Steps[int]:
    """Delete at most so many requests from before a time, and the sums of hours before another; return how many."""
    rows = yield Statement("SELECT id FROM request WHERE at < $1 ORDER BY at LIMIT $2", (before, most))
    if rows:
        yield Statement("DELETE FROM request WHERE id = $1", many=[(row[0],) for row in rows])
    yield Statement("DELETE FROM usage_hour WHERE hour < $1", (int(sums_before),))
    return len(rows)


def _request(row: Row) -> RequestRow:
    return RequestRow(**dict(zip(COLUMNS, row, strict=True)))
