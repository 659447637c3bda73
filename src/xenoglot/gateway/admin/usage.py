"""`/admin/v1/usage`: sums of usage and cost, as JSON or CSV."""

from __future__ import annotations

import csv
import io
from math import ceil
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from xenoglot.errors import WireError
from xenoglot.gateway.admin.route import AdminRequest, AdminRoute, RawBody, decode_cursor, encode_cursor
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.interval import since
from xenoglot.store.ledger.tag_usage import TAG
from xenoglot.store.ledger.usage_sums import SUMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.model.json import JSON

HOUR: Final = 3600
CSV: Final = "text/csv; charset=utf-8"


class UsageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Which usage is meant. Times are durations ago (`24h`, `7d`), dates, times or Unix seconds.

    Without `to` the period ends now.
    """

    from_: str = "30d"
    to: str | None = None
    by: str = "model"
    """Groups, separated by commas: tenant, key, model, upstream, dialect, hour, day, tag:NAME."""
    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    upstream: str | None = None
    dialect: str | None = None
    format: Literal["json", "csv"] = "json"
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    after: str | None = None


class UsageSum(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sums of one group. Names that are not grouped by are left out. Costs are micro-units of the currency.

    `unpriced` are requests that used tokens and have no cost because the price is unknown.
    """

    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    upstream: str | None = None
    dialect: str | None = None
    hour: int | None = None
    day: int | None = None
    tags: dict[str, str] = {}
    """Values of the tags that are grouped by; empty for requests without the tag."""
    currency: str
    requests: int
    failures: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    audio_in: int
    audio_out: int
    searches: int
    extra_input: int
    extra_output: int
    estimated: int
    cost: int
    unpriced: int
    losses: int


class UsageReport(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The sums of a period. Times are Unix seconds; `from` is the beginning of an hour, because sums are of hours."""

    object: Literal["usage"] = "usage"
    from_: float
    to: float
    by: list[str]
    data: list[UsageSum]
    has_more: bool
    next: str | None


class DurationQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Of which period durations are."""

    from_: str = "24h"
    to: str | None = None


class Percentiles(Struct, frozen=True, kw_only=True):
    """Durations in milliseconds: half of the requests took at most `p50`, 99 of 100 at most `p99`."""

    p50: float | None
    p99: float | None


class DurationReport(Struct, frozen=True, kw_only=True):
    """How long the newest requests of a period took: to the first byte, to the first token of a stream, and in all."""

    object: Literal["durations"] = "durations"
    requests: int
    first_byte: Percentiles
    first_token: Percentiles
    total: Percentiles


class UsageRoutes(Struct, frozen=True):
    """Routes for reports of usage."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/usage",
                handler=self.usage,
                summary="Sum usage and cost by tenant, key, model, upstream, dialect, hour, day or tag.",
                query=UsageQuery,
                returns=UsageReport,
                media_types=(CSV,),
            ),
            AdminRoute(
                method="GET",
                path="/durations",
                handler=self.durations,
                summary="Return how long the newest requests of a period took: median and 99th percentile.",
                query=DurationQuery,
                returns=DurationReport,
            ),
        )

    async def durations(self, request: AdminRequest) -> AdminResult:
        """Return how long the newest requests of a period took.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query, services = request.query(DurationQuery), self.services
        await services.recorded()
        rows = await services.read(queries.durations(*period(query.from_, query.to, services.now())))
        byte, token, total = ([row[at] for row in rows] for at in range(3))
        return DurationReport(
            requests=len(rows),
            first_byte=_percentiles(byte),
            first_token=_percentiles(token),
            total=_percentiles(total),
        )

    async def usage(self, request: AdminRequest) -> AdminResult:
        """Return the sums of a period.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query, services = request.query(UsageQuery), self.services
        await services.recorded()
        by = [name for name in query.by.split(",") if name]
        if unknown := [name for name in by if not queries.is_group(name)]:
            raise WireError("$.by", f"`{unknown[0][:50]}`: expected some of {queries.EXPECTED}")
        begin, end = period(query.from_, query.to, services.now())
        which = queries.UsageFilter(
            since=begin // HOUR * HOUR,
            until=end,
            tenant=query.tenant,
            key=query.key,
            model=query.model,
            upstream=query.upstream,
            dialect=query.dialect,
        )
        place = decode_cursor(query.after, float)
        first = 0 if place is None else int(place[0])
        sums = await services.read(queries.usage(by, which, limit=query.limit + 1, offset=first))
        more = len(sums) > query.limit
        sums = sums[: query.limit]
        if query.format == "csv":
            return RawBody(_csv((*by, "currency", *SUMS), sums), CSV)
        following = encode_cursor((float(first + query.limit),)) if more else None
        tags = [name for name in by if name.startswith(TAG)]
        named = [{**row, "tags": {name.removeprefix(TAG): row[name] for name in tags}} for row in sums]
        data = msgspec.convert(named, list[UsageSum])
        return UsageReport(from_=which.since, to=end, by=by, data=data, has_more=more, next=following)


def _percentiles(values: Sequence[float | None]) -> Percentiles:
    """Return the nearest ranks (https://en.wikipedia.org/wiki/Percentile#The_nearest-rank_method)."""
    ordered = sorted(value for value in values if value is not None)
    found = [ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None for share in (0.5, 0.99)]
    return Percentiles(p50=found[0], p99=found[1])


def period(begin: str, end: str | None, now: float) -> tuple[float, float]:
    """Return the Unix times from which and until which a report is; the latter is excluded.

    Raises:
        WireError: one is not a time.
    """
    return moment("$.from", begin, now), now + 1 if end is None else moment("$.to", end, now)


def moment(path: str, text: str, now: float) -> float:
    """Return the Unix time that a parameter means.

    Raises:
        WireError: it is not a time.
    """
    try:
        return since(text, now)
    except ValueError as error:
        raise WireError(path, str(error)) from None


def _csv(columns: Sequence[str], rows: Sequence[dict[str, JSON]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()
