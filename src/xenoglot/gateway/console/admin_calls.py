"""Calls of the administration by pages of the console: the routes of `/admin/v1`, in this process and without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.admin.endpoint import AdminEndpoint
from xenoglot.gateway.admin.route import ADMIN, AdminRequest, EventStream, Page
from xenoglot.gateway.auth.keys import NO_MANAGER

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.console.route import ConsoleRequest
    from xenoglot.model.json import JSON

T = TypeVar("T")


class AdminCalls(Struct, frozen=True):
    """Calls routes of `admin` for the client of a session, with its roles and its name in the audit log."""

    admin: AdminEndpoint

    async def call(  # noqa: PLR0913  the parts of a request
        self,
        request: ConsoleRequest,
        method: str,
        path: str,
        parameters: Mapping[str, str | None] | None = None,
        body: JSON = None,
        *,
        reads: bool = False,
    ) -> AdminResult:
        """Return the result of a route; parameters that are `None` are not set.

        A POST that only `reads` needs no more than a GET does.

        Raises:
            FailureError: the session may not change the gateway, or there is no result.
            WireError: a parameter or a field is invalid.
        """
        if method != "GET" and not reads and not request.session.administers:
            raise FailureError(NO_MANAGER)
        found, variables = self.admin.find(ADMIN + path)
        given = {name: [value] for name, value in (parameters or {}).items() if value is not None}
        call = AdminRequest(
            ctx=request.ctx,
            admitted=request.admitted,
            route=found[method],
            variables=variables,
            parameters=given,
            value=body,
        )
        call.query(call.route.query)
        return await call.route.handler(call)

    async def object(
        self, kind: type[T], request: ConsoleRequest, path: str, parameters: Mapping[str, str | None] | None = None
    ) -> T:
        """Return the result of a GET, which is of this `kind`.

        Raises:
            FailureError: there is no result.
            WireError: a parameter is invalid.
            TypeError: it is of another kind.
        """
        found = await self.call(request, "GET", path, parameters)
        if not isinstance(found, kind):
            problem = f"{path} returns {type(found).__name__}"
            raise TypeError(problem)
        return found

    async def page(
        self, request: ConsoleRequest, path: str, parameters: Mapping[str, str | None] | None = None
    ) -> Page:
        """Return a page of a list; raises what `object` does."""
        return await self.object(Page, request, path, parameters)

    async def events(
        self, request: ConsoleRequest, path: str, parameters: Mapping[str, str | None] | None = None
    ) -> EventStream:
        """Return a stream of events; raises what `object` does."""
        return await self.object(EventStream, request, path, parameters)
