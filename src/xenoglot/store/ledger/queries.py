"""Queries of the ledger, as generators of statements (`store.queries`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from xenoglot.store.ledger.rows import COLUMNS, HOUR, RequestRow
from xenoglot.store.ledger.tables import ENDED, FAILED, USUAL_STATUS
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

MOST_HOURS: Final = 100
"""Hours that one query returns."""

BY_HOUR: Final = ("key", "model", "upstream", "dialect")
"""Filters whose requests are found by the hours that have any."""

NEVER: Final = 1e12

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


MOST_TIMED: Final = 10_000
"""Requests whose durations are read."""


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
    groups = [_group(name) for name in by] + ["currency"]
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


def _group(name: str) -> str:
    """Return the expression of a group: none that has an index, whose order would be read in place of the hours."""
    return _DAY if name == "day" else name if name == "hour" else f"{name} || ''"


def requests(which: RequestFilter) -> Steps[list[RequestRow]]:
    """Return requests, the newest first."""
    most = max(1, min(which.limit, MOST_REQUESTS))
    if which.session or which.trace or all(getattr(which, name) is None for name in BY_HOUR):
        return (yield from _newest(which, most))
    found: list[RequestRow] = []
    newest = min(one for one in (which.until, which.before and which.before[0], NEVER) if one is not None)
    hour = int(newest // HOUR) * HOUR + 1
    while hours := (yield from _hours(which, hour)):
        for hour in hours:
            period = replace(which, since=max(which.since, hour), until=min(which.until or NEVER, hour + HOUR))
            found += yield from _newest(period, most - len(found))
            if len(found) == most:
                return found
    return found


def _hours(which: RequestFilter, before: float) -> Steps[list[int]]:
    """Return hours before one that have requests with the names of a filter, the newest first; at most `MOST_HOURS`.

    The requests of a model that has few would be searched for among all others: the sums of the hours know when there
    were any.
    """
    conditions, bound = ["hour >= $1", "hour < $2"], [int(which.since // HOUR) * HOUR, before]
    values: list[Value] = [*bound]
    for name in ("tenant", *BY_HOUR):
        wanted = getattr(which, name)
        if wanted is not None:
            values.append(wanted)
            conditions.append(f"{name} = ${len(values)}")
    conditions += ["failures > 0"] * (which.failed is True) + ["losses > 0"] * which.lossy
    rows = yield Statement(
        f"SELECT hour FROM usage_hour WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" GROUP BY hour ORDER BY hour DESC LIMIT {MOST_HOURS}",
        values,
    )
    return [int(row[0]) for row in rows]


def _newest(which: RequestFilter, most: int) -> Steps[list[RequestRow]]:
    conditions, values = _conditions(which)
    if which.before is not None:
        values += which.before
        at, name = f"${len(values) - 1}", f"${len(values)}"
        conditions.append(f"at <= {at} AND (at < {at} OR id < {name})")  # the first part alone can use an index
    rows = yield Statement(
        f"SELECT {', '.join(COLUMNS)} FROM request WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" ORDER BY at DESC, id DESC LIMIT {most}",
        values,
    )
    return [_request(row) for row in rows]


def ended(which: RequestFilter, after: tuple[float, str]) -> Steps[list[RequestRow]]:
    """Return requests that ended after the one with this time of its end and this id, the first to end first."""
    conditions, values = _conditions(which, by_end=True)
    values += (*after, MOST_REQUESTS)
    end, name, most = (f"${len(values) - place}" for place in (2, 1, 0))
    rows = yield Statement(
        f"SELECT {', '.join(COLUMNS)} FROM request WHERE {' AND '.join(conditions)}"  # noqa: S608  constants
        f" AND {ENDED} >= {end} AND ({ENDED} > {end} OR id > {name}) ORDER BY {ENDED}, id LIMIT {most}",
        values,
    )
    return [_request(row) for row in rows]


def _conditions(which: RequestFilter, *, by_end: bool = False) -> tuple[list[str], list[Value]]:
    """Return the conditions of a filter, with the values that they bind.

    With `by_end` none of them can use an index: the few requests that ended last are read by the index of their ends,
    where all requests of a tenant are many.
    """
    conditions: list[str] = []
    bound: list[Value] = []
    if which.since:
        bound.append(which.since)
        conditions.append("at >= $1")
    if which.until is not None:
        bound.append(which.until)
        conditions.append(f"at < ${len(bound)}")
    text, number = (" || ''", " + 0") if by_end else ("", "")
    for name in ("tenant", "key", "model", "upstream", "dialect", "session", "trace"):
        wanted = getattr(which, name)
        if wanted is not None:
            bound.append(wanted)
            conditions.append(f"{name}{text} = ${len(bound)}")
    if which.status is not None:
        bound.append(which.status)
        conditions.append(f"status{number} = ${len(bound)}")
        if which.status != USUAL_STATUS and not by_end:
            conditions.append(f"status <> {USUAL_STATUS}")
    if which.failed is not None:
        conditions.append(FAILED if which.failed else f"NOT {FAILED}")
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


def durations(since: float, until: float) -> Steps[list[tuple[float | None, float | None, float]]]:
    """Return the milliseconds to the first byte, to the first token, and in all, of the newest requests of a period.

    They are `MOST_TIMED` at most.
    """
    rows = yield Statement(
        "SELECT ttfb_ms, first_token_ms, total_ms FROM request WHERE at >= $1 AND at < $2 ORDER BY at DESC LIMIT $3",
        (since, until, MOST_TIMED),
    )
    return [(row[0], row[1], float(row[2])) for row in rows]


def prune(before: float, sums_before: float, most: int) -> Steps[int]:
    """Delete at most so many requests from before a time, and the sums of hours before another; return how many.

    Sums of hours whose requests are still stored stay, for requests are found by them.
    """
    rows = yield Statement("SELECT id FROM request WHERE at < $1 ORDER BY at LIMIT $2", (before, most))
    if rows:
        yield Statement("DELETE FROM request WHERE id = $1", many=[(row[0],) for row in rows])
    yield Statement("DELETE FROM usage_hour WHERE hour < $1", (int(min(sums_before, before - HOUR)),))
    return len(rows)


def _request(row: Row) -> RequestRow:
    return RequestRow(**dict(zip(COLUMNS, row, strict=True)))
