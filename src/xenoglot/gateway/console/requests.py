"""The requests of the ledger: filtered, page by page, as they end, and as a file."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import astuple, fields

from xenoglot.gateway.admin.route import RawBody
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.store.ledger.rows import RequestRow

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult

FILTERS: Final = (
    "from", "to", "tenant", "key", "model", "upstream", "dialect", "session", "status", "failed", "losses",
)  # fmt: skip
"""Parameters of `/admin/v1/requests` that the form has."""
MOST_PAGES: Final = 20
"""Pages of 999 rows in a file."""
CSV: Final = "text/csv; charset=utf-8"
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of cells that a spreadsheet would run (https://owasp.org/www-community/attacks/CSV_Injection)."""


class RequestPages(Struct, frozen=True):
    """Lists requests."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/requests", handler=self.requests),
            ConsoleRoute(method="GET", path="/requests.csv", handler=self.export),
            ConsoleRoute(method="GET", path="/requests/live", handler=self.live),
        )

    async def requests(self, request: ConsoleRequest) -> ConsoleResult:
        """Return a page of requests, or its rows alone for a script.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a filter is invalid.
        """
        wanted = _filters(request)
        found = await self.calls.page(request, "/requests", wanted | {"after": request.parameter("after")})
        query = urlencode({name: value for name, value in wanted.items() if value is not None})
        values = {"title": "Requests", "rows": list(found.data), "next": found.next, "filters": wanted, "query": query}
        return Page(template="request_rows.html" if request.is_fragment else "requests.html", values=values)

    async def live(self, request: ConsoleRequest) -> ConsoleResult:
        """Return a stream of the requests as they end.

        Raises:
            FailureError: the ledger is off, or too many follow already.
            WireError: a filter is invalid.
        """
        return await self.calls.events(request, "/requests", _filters(request) | {"follow": "true", "from": None})

    async def export(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the requests as CSV, the newest first, some 20,000 at most.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a filter is invalid.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([one.name for one in fields(RequestRow)])
        parameters = _filters(request) | {"limit": "999"}
        for _ in range(MOST_PAGES):
            found = await self.calls.page(request, "/requests", parameters)
            for row in found.data:
                if isinstance(row, RequestRow):
                    writer.writerow([_cell(value) for value in astuple(row)])
            if found.next is None:
                break
            parameters["after"] = found.next
        return RawBody(out.getvalue().encode(), CSV)


def _filters(request: ConsoleRequest) -> dict[str, str | None]:
    return {name: request.parameter(name) for name in FILTERS}


def _cell(value: object) -> object:
    """Return a value of the file; a text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
