"""Budgets: what is spent and reserved of each, new ones, changes and deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec import Struct

from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.services import NO_LEDGER
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.management.forms import FormProblem, number, texts
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page, Redirect

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSONObject

FIELDS: Final = ("scope", "amount", "currency", "period", "zone", "warn_at", "on_exceeded")
"""Fields of the form for a new budget."""
CHANGED: Final = ("amount", "zone", "warn_at", "on_exceeded")
"""Those that can be changed."""


class BudgetPages(Struct, frozen=True):
    """Shows and changes budgets."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/budgets", handler=self.budgets),
            ConsoleRoute(method="POST", path="/budgets", handler=self.create, changes=True),
            ConsoleRoute(method="POST", path="/budgets/{id}/change", handler=self.change, changes=True),
            ConsoleRoute(method="POST", path="/budgets/{id}/delete", handler=self.delete, changes=True),
        )

    async def budgets(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the list.

        Raises:
            FailureError: the store cannot be used.
            WireError: a parameter is invalid.
        """
        return await self._page(request)

    async def create(self, request: ConsoleRequest) -> ConsoleResult:
        """Set a new budget; or show the form again, with the problem.

        Raises:
            FailureError: the store cannot be used.
        """
        try:
            await self.calls.call(request, "POST", "/budgets", body=_fields(request, *FIELDS))
        except (FailureError, WireError) as error:
            return await self._page(request, FormProblem(error, request.form, FIELDS))
        return Redirect(to="/budgets")

    async def change(self, request: ConsoleRequest) -> ConsoleResult:
        """Change a budget; or show the list with the problem.

        Raises:
            FailureError: the store cannot be used.
        """
        name = request.variables["id"]
        try:
            body = {"warn_at": None, **_fields(request, *CHANGED)}  # a warning that is left empty is removed
            await self.calls.call(request, "PATCH", _path(name), body=body)
        except (FailureError, WireError) as error:
            return await self._page(request, FormProblem(error, request.form, CHANGED), changed=name)
        return Redirect(to="/budgets")

    async def delete(self, request: ConsoleRequest) -> ConsoleResult:
        """Delete a budget.

        Raises:
            FailureError: it does not exist, is one of the file, or the store cannot be used.
        """
        await self.calls.call(request, "DELETE", _path(request.variables["id"]))
        return Redirect(to="/budgets")

    async def _page(
        self, request: ConsoleRequest, problem: FormProblem | None = None, *, changed: str = ""
    ) -> ConsoleResult:
        values: dict[str, object] = {"title": "Budgets", "rows": [], "next": None, "off": ""}
        try:
            parameters = {"scope": request.parameter("scope"), "after": request.parameter("after")}
            found = await self.calls.page(request, "/budgets", parameters)
            values |= {"rows": list(found.data), "next": found.next}
        except FailureError as error:
            if error.failure != NO_LEDGER:
                raise
            values["off"] = NO_LEDGER.message
        values |= {
            "problem": problem,
            "changed": changed,
            "scope": request.parameter("scope"),
            "changes": request.session.administers,
        }
        return Page(template="budgets.html", values=values, status=200 if problem is None else problem.status)


def _path(name: str) -> str:
    return f"/budgets/{quote(name, safe='')}"


def _fields(request: ConsoleRequest, *names: str) -> JSONObject:
    """Return the fields of a form that are set.

    Raises:
        WireError: the percentage is no number.
    """
    body = texts(request.form, *names)
    if "warn_at" in body:
        body["warn_at"] = number("$.warn_at", str(body["warn_at"]))
    return body
