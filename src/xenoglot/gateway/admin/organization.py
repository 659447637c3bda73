"""`/v1/organization/usage/completions` and `/v1/organization/costs`, in the form of OpenAI's administration API.

https://platform.openai.com/docs/api-reference/usage. A project is a tenant. Sums are of hours, so a bucket has no less.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, TypeVar

from msgspec import Meta, Struct

from xenoglot.errors import WireError
from xenoglot.gateway.admin.route import AdminRequest, AdminRoute, decode_cursor, encode_cursor
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.usage_sums import SUMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.model.json import JSON

Result = TypeVar("Result", bound=Struct)

BASE: Final = "/v1"
MICRO: Final = 1_000_000
DAY: Final = 86_400
WIDTHS: Final = {"1h": 3600, "1d": DAY}
"""Seconds of a bucket."""
USUAL_BUCKETS: Final = {"1h": 24, "1d": 7}
MOST_BUCKETS: Final = {"1h": 168, "1d": 31}
GROUPS: Final = {"project_id": "tenant", "api_key_id": "key", "model": "model", "line_item": "model"}
"""Names of groups, and the columns of the ledger."""


class CompletionsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which usage is meant. Times are Unix seconds; `end_time` is excluded, and now if not set."""

    start_time: Annotated[int, Meta(ge=0)]
    end_time: int | None = None
    bucket_width: Literal["1h", "1d"] = "1d"
    group_by: tuple[Literal["project_id", "api_key_id", "model"], ...] = ()
    project_ids: tuple[str, ...] = ()
    api_key_ids: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    limit: Annotated[int, Meta(ge=1, le=168)] | None = None
    page: str | None = None


class CostsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which costs are meant. A line item is a model."""

    start_time: Annotated[int, Meta(ge=0)]
    end_time: int | None = None
    bucket_width: Literal["1d"] = "1d"
    group_by: tuple[Literal["project_id", "api_key_id", "line_item"], ...] = ()
    project_ids: tuple[str, ...] = ()
    api_key_ids: tuple[str, ...] = ()
    line_items: tuple[str, ...] = ()
    limit: Annotated[int, Meta(ge=1, le=180)] = 7
    page: str | None = None


class CompletionsResult(Struct, frozen=True, kw_only=True):
    """The usage of one group in one bucket. Names that are not grouped by are null."""

    object: Literal["organization.usage.completions.result"] = "organization.usage.completions.result"
    input_tokens: int
    output_tokens: int
    input_cached_tokens: int
    input_cache_write_tokens: int
    input_audio_tokens: int
    output_audio_tokens: int
    num_model_requests: int
    project_id: str | None = None
    user_id: None = None
    api_key_id: str | None = None
    model: str | None = None
    batch: None = None
    service_tier: None = None


class CostAmount(Struct, frozen=True, kw_only=True):
    """An amount of money; the currency in lower case."""

    value: float
    currency: str


class CostsResult(Struct, frozen=True, kw_only=True):
    """The costs of one group in one bucket, in one currency. Requests whose price is unknown are not in it."""

    object: Literal["organization.costs.result"] = "organization.costs.result"
    amount: CostAmount
    line_item: str | None = None
    project_id: str | None = None
    api_key_id: str | None = None


class UsageBucket(Struct, Generic[Result], frozen=True, kw_only=True):
    """A period of time, `end_time` excluded."""

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[Result]


class UsagePage(Struct, Generic[Result], frozen=True, kw_only=True):
    """A page of buckets; `next_page` is the parameter `page` of the following one."""

    object: Literal["page"] = "page"
    data: list[UsageBucket[Result]]
    has_more: bool
    next_page: str | None


class BucketRange(Struct, frozen=True, kw_only=True):
    """The buckets of a page: their starts, and whether there are more."""

    starts: range
    end: int
    more: bool

    @property
    def page(self) -> str | None:
        """The parameter for the following page."""
        return f"page_{encode_cursor((float(self.starts.stop),))}" if self.more else None


class OrganizationRoutes(Struct, frozen=True):
    """Routes in the form of OpenAI's administration API."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                base=BASE,
                path="/organization/usage/completions",
                handler=self.completions,
                summary="Sum the usage of models in buckets of time, in the form of OpenAI's API.",
                query=CompletionsQuery,
                returns=UsagePage[CompletionsResult],
            ),
            AdminRoute(
                method="GET",
                base=BASE,
                path="/organization/costs",
                handler=self.costs,
                summary="Sum costs in buckets of a day, in the form of OpenAI's API.",
                query=CostsQuery,
                returns=UsagePage[CostsResult],
            ),
        )

    async def completions(self, request: AdminRequest) -> AdminResult:
        """Return the usage of models.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query = request.query(CompletionsQuery)
        width = query.bucket_width
        limit = query.limit or USUAL_BUCKETS[width]
        if limit > MOST_BUCKETS[width]:
            raise WireError("$.limit", f"expected at most {MOST_BUCKETS[width]} buckets of {width}")
        now = self.services.now()
        buckets = bucket_range(query.start_time, query.end_time or int(now) + 1, WIDTHS[width], limit, query.page)
        wanted = {"tenant": query.project_ids, "key": query.api_key_ids, "model": query.models}
        rows = await self._rows(buckets, wanted)
        return _page(buckets, rows, query.group_by, _completions)

    async def costs(self, request: AdminRequest) -> AdminResult:
        """Return what requests cost.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query, now = request.query(CostsQuery), self.services.now()
        buckets = bucket_range(query.start_time, query.end_time or int(now) + 1, DAY, query.limit, query.page)
        wanted = {"tenant": query.project_ids, "key": query.api_key_ids, "model": query.line_items}
        rows = [row for row in await self._rows(buckets, wanted) if row["currency"]]
        return _page(buckets, rows, (*query.group_by, "currency"), _costs)

    async def _rows(self, buckets: BucketRange, wanted: dict[str, tuple[str, ...]]) -> list[dict[str, JSON]]:
        """Return the sums of the hours in the buckets, of requests to models."""
        await self.services.recorded()
        which = queries.UsageFilter(since=buckets.starts.start, until=min(buckets.end, buckets.starts.stop))
        rows = await self.services.read(queries.usage(("hour", *wanted), which))
        return [
            row for row in rows if row["model"] and all(row[name] in asked for name, asked in wanted.items() if asked)
        ]


def bucket_range(start: int, end: int, width: int, limit: int, page: str | None) -> BucketRange:
    """Return the buckets of a page: at most `limit` from `start`, or from the page, until `end`.

    Raises:
        WireError: the page is not one, or the end is not after the start.
    """
    first = start // width * width
    if end <= start:
        raise WireError("$.end_time", "expected a time after `start_time`")
    if page is not None:
        try:
            found = decode_cursor(page.removeprefix("page_"), float)
        except WireError:
            raise WireError("$.page", "expected the value `next_page` of the page before") from None
        first = max(first, int(found[0]) // width * width) if found is not None else first
    stop = first + limit * width
    whole = -(-end // width) * width
    return BucketRange(starts=range(first, min(stop, whole), width), end=end, more=stop < whole)


def _page(
    buckets: BucketRange,
    rows: Iterable[dict[str, JSON]],
    groups: Sequence[str],
    result: Callable[[dict[str, str | None], Counter[str]], Result],
) -> UsagePage[Result]:
    """Return the buckets with the sums of each group."""
    width = buckets.starts.step
    sums: dict[int, dict[tuple[str, ...], Counter[str]]] = {start: {} for start in buckets.starts}
    for row in rows:
        names = tuple(str(row[GROUPS.get(group, group)]) for group in groups)
        total = sums[int(row["hour"]) // width * width].setdefault(names, Counter())
        total.update({name: int(row[name]) for name in SUMS})
    data = [
        UsageBucket[Result](
            start_time=start,
            end_time=start + width,
            results=[
                result(dict(zip(groups, (name or None for name in names), strict=True)), total)
                for names, total in sorted(found.items())
            ],
        )
        for start, found in sums.items()
    ]
    return UsagePage[Result](data=data, has_more=buckets.more, next_page=buckets.page)


def _completions(names: dict[str, str | None], total: Counter[str]) -> CompletionsResult:
    return CompletionsResult(
        input_tokens=total["input"] + total["extra_input"],
        output_tokens=total["output"] + total["extra_output"],
        input_cached_tokens=total["cache_read"],
        input_cache_write_tokens=total["cache_write"],
        input_audio_tokens=total["audio_in"],
        output_audio_tokens=total["audio_out"],
        num_model_requests=total["requests"],
        project_id=names.get("project_id"),
        api_key_id=names.get("api_key_id"),
        model=names.get("model"),
    )


def _costs(names: dict[str, str | None], total: Counter[str]) -> CostsResult:
    return CostsResult(
        amount=CostAmount(value=total["cost"] / MICRO, currency=(names["currency"] or "").lower()),
        line_item=names.get("line_item"),
        project_id=names.get("project_id"),
        api_key_id=names.get("api_key_id"),
    )
