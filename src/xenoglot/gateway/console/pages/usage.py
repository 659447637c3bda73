"""The page Usage: sums of requests, tokens and cost, by tenant, key, model and so on, over time and as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import astuple, fields

from xenoglot.errors import WireError
from xenoglot.gateway.admin.route import RawBody
from xenoglot.gateway.admin.usage import UsageReport, UsageSum
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.requests import CSV, FORMULA
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSONObject

FILTERS: Final = ("from", "to", "tenant", "key", "model", "upstream", "dialect")
GROUPS: Final = ("model", "tenant", "key", "upstream", "dialect", "day")
MEASURES: Final = ("requests", "tokens", "cost")
HOUR, DAY = 3600, 86400
MOST_HOURS: Final = 72
"""A longer period is drawn by days."""
MOST_STEPS: Final = 400
MOST_SERIES: Final = 5
MOST_SUMS: Final = "10000"
MICRO: Final = 1_000_000


class UsagePages(Struct, frozen=True):
    """Shows sums of usage and cost."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/usage", handler=self.usage),
            ConsoleRoute(method="GET", path="/usage.csv", handler=self.export),
        )

    async def usage(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a filter is invalid.
        """
        wanted, by = _filters(request), _choice(request, "by", GROUPS)
        measure = _choice(request, "measure", MEASURES)
        report = await self.calls.object(UsageReport, request, "/usage", {**wanted, "by": by})
        step: Literal["hour", "day"] = "hour" if report.to - report.from_ <= MOST_HOURS * HOUR else "day"
        groups = step if by == "day" else f"{step},{by}"
        over_time = {**wanted, "by": groups, "limit": MOST_SUMS}
        drawn = await self.calls.object(UsageReport, request, "/usage", over_time)
        query = {name: value for name, value in {**wanted, "by": by}.items() if value is not None}
        values = {
            "title": "Usage",
            "rows": sorted(report.data, key=lambda row: -row.requests) if by != "day" else report.data,
            "more": report.has_more,
            "by": by,
            "measure": measure,
            "filters": wanted,
            "groups": GROUPS,
            "measures": MEASURES,
            "query": urlencode(query),
            "chart": chart(drawn, step, by, measure),
        }
        return Page(template="usage.html", values=values)

    async def export(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the sums as CSV, some 10,000 at most.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a filter is invalid.
        """
        by = request.parameter("by") or GROUPS[0]
        wanted = {**_filters(request), "by": by, "limit": MOST_SUMS}
        report = await self.calls.object(UsageReport, request, "/usage", wanted)
        names = [one.name for one in fields(UsageSum)]
        kept = [name in report.by or name not in (*GROUPS, "hour") for name in names]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([name for name, keep in zip(names, kept, strict=True) if keep])
        for row in report.data:
            writer.writerow([_cell(value) for value, keep in zip(astuple(row), kept, strict=True) if keep])
        return RawBody(out.getvalue().encode(), CSV)


def chart(report: UsageReport, step: Literal["hour", "day"], by: str, measure: str) -> JSONObject:
    """Return the sums of each hour or day, of the largest groups one by one and of the others together."""
    length = HOUR if step == "hour" else DAY
    last = int(report.to - 1) // length * length
    first = max(int(report.from_) // length * length, last - (MOST_STEPS - 1) * length)
    times = range(first, last + length, length)
    totals: Counter[str] = Counter()
    for row in report.data:
        totals[_group(row, by, measure)] += _measured(row, measure)
    named = [name for name, _ in totals.most_common(MOST_SERIES)]
    series = {name: dict.fromkeys(times, 0) for name in named}
    for row in report.data:
        name, time = _group(row, by, measure), getattr(row, step)
        values = series.setdefault(name if name in named else "others", dict.fromkeys(times, 0))
        if time in values:
            values[time] += _measured(row, measure)
    scale = MICRO if measure == "cost" else 1
    return {
        "x": list(times),
        "lines": len(series) > 1,
        "series": [
            {"label": name, "values": [value / scale for value in one.values()]}
            for name, one in (series or {measure: dict.fromkeys(times, 0)}).items()
        ],
    }


def _group(row: UsageSum, by: str, measure: str) -> str:
    name = measure if by == "day" else str(getattr(row, by) or "none")
    return f"{name} ({row.currency})" if measure == "cost" else name


def _measured(row: UsageSum, measure: str) -> int:
    return {"requests": row.requests, "tokens": row.input + row.output, "cost": row.cost}[measure]


def _filters(request: ConsoleRequest) -> dict[str, str | None]:
    return {name: request.parameter(name) for name in FILTERS}


def _choice(request: ConsoleRequest, name: str, known: tuple[str, ...]) -> str:
    """Return the value of a parameter that has few.

    Raises:
        WireError: it has another.
    """
    found = request.parameter(name) or known[0]
    if found not in known:
        raise WireError(f"$.{name}", f"expected one of {', '.join(known)}")
    return found


def _cell(value: object) -> object:
    """Return a value of the file; a text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
