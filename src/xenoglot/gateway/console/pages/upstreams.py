"""The page Upstreams: circuit breakers, API keys and times of the servers behind the gateway, and a check of each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct

from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.console.route import ConsoleResult


class UpstreamPages(Struct, frozen=True):
    """Shows the upstreams; an administrator checks whether they can be reached."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/upstreams", handler=self.upstreams),
            ConsoleRoute(method="POST", path="/upstreams/{name}/check", handler=self.check, changes=True),
        )

    async def upstreams(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page, or its table alone for the script."""
        return await self._page(request, None)

    async def check(self, request: ConsoleRequest) -> ConsoleResult:
        """Check an upstream, and return the result, for a browser without scripts in the page.

        Raises:
            FailureError: there is no such upstream.
        """
        path = f"/upstreams/{quote(request.variables['name'], safe='')}/check"
        checked = await self.calls.call(request, "POST", path)
        if request.is_fragment:
            return Page(template="upstream_check.html", values={"checked": checked})
        return await self._page(request, checked)

    async def _page(self, request: ConsoleRequest, checked: AdminResult | None) -> Page:
        found = await self.calls.page(request, "/upstreams")
        template = "upstream_rows.html" if request.is_fragment else "upstreams.html"
        return Page(template=template, values={"title": "Upstreams", "upstreams": found.data, "checked": checked})
