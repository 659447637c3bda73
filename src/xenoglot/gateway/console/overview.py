"""The first page: today's requests, failures, times, tokens and cost, and the upstreams that rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.admin.services import NO_LEDGER
from xenoglot.gateway.admin.upstreams import UpstreamState
from xenoglot.gateway.admin.usage import DurationReport, UsageReport
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page

if TYPE_CHECKING:
    from xenoglot.gateway.admin.usage import UsageSum
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSONObject

HOUR: Final = 3600
HOURS: Final = 24


class OverviewPage(Struct, frozen=True):
    """Shows the activity of the gateway; a script asks for its figures again every few seconds."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (ConsoleRoute(method="GET", path="/", handler=self.overview),)

    async def overview(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page, or its figures alone for the script.

        Raises:
            FailureError: the store cannot be used.
        """
        upstreams = await self.calls.page(request, "/upstreams")
        values: dict[str, object] = {
            "title": "Overview",
            "upstreams": [
                (upstream.name, target) for upstream in upstreams.data if isinstance(upstream, UpstreamState)
                for target in upstream.targets
            ],
            "sums": None,
        }  # fmt: skip
        try:
            values |= await self._figures(request)
        except FailureError as error:
            if error.failure != NO_LEDGER:
                raise
        return Page(template="overview_figures.html" if request.is_fragment else "overview.html", values=values)

    async def _figures(self, request: ConsoleRequest) -> dict[str, object]:
        """Return the sums of the last 24 hours: all of them, those of each currency, and those of each hour."""
        hours = await self.calls.object(UsageReport, request, "/usage", {"from": "24h", "by": "hour"})
        durations = await self.calls.object(DurationReport, request, "/durations", {"from": "24h"})
        costs: dict[str, int] = {}
        for row in hours.data:
            if row.cost:
                costs[row.currency or "USD"] = costs.get(row.currency or "USD", 0) + row.cost
        names = ("requests", "failures", "input", "output", "losses", "unpriced")
        sums = {name: sum(getattr(row, name) for row in hours.data) for name in names}
        return {"sums": sums, "costs": sorted(costs.items()), "durations": durations, "chart": _chart(hours.data)}


def _chart(rows: list[UsageSum]) -> JSONObject:
    """Return requests and failures of each of the last hours, those without requests included."""
    last = int(time.time() // HOUR) * HOUR
    hours = [last - HOUR * back for back in reversed(range(HOURS))]
    counted = {hour: [0, 0] for hour in hours}
    for row in rows:
        if row.hour in counted:
            counted[row.hour][0] += row.requests - row.failures
            counted[row.hour][1] += row.failures
    return {
        "x": list(hours),
        "series": [
            {"label": "answered", "values": [counted[hour][0] for hour in hours]},
            {"label": "failed", "values": [counted[hour][1] for hour in hours]},
        ],
    }
