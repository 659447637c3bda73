"""`/admin/v1/budgets`: money budgets of the configuration and of the store, with what is spent and reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.route import AdminRequest, AdminRoute, Page, PageQuery, conflict, decode_cursor, not_found
from xenoglot.gateway.admin.services import NO_LEDGER, AdminServices
from xenoglot.gateway.config.ledger import Amount, BudgetSettings
from xenoglot.policy.limits.money_budget import Budget, remaining
from xenoglot.store.ledger import budgets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.ledger.budget_service import BudgetService

FIXED = "the budget is set in the configuration file: change it there, and reload"


class BudgetQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which budgets are listed: all, or those of a scope such as `tenant:ada`, by their ids."""

    scope: str | None = None


class BudgetDefinition(BudgetSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget as in a configuration file. `amount` is in units of the currency."""


class BudgetChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of a budget is changed; what is left out stays. Scope, period and currency cannot be changed."""

    amount: Amount | UnsetType = UNSET
    zone: str | UnsetType = UNSET
    warn_at: int | UnsetType | None = UNSET
    on_exceeded: str | UnsetType = UNSET


class BudgetState(Struct, frozen=True, kw_only=True):
    """A budget and what is used of it in the current period; amounts are micro-units of the currency.

    `remaining` is what is enforced: the amount less `spent` and `reserved`. `unpriced` are requests that were sent
    without a known price. `resets_at` is in Unix seconds, null for a period without end or a rolling one.
    """

    object: Literal["budget"] = "budget"
    id: str
    scope: str
    amount: int
    currency: str
    period: str
    zone: str
    warn_at: int | None
    on_exceeded: str
    spent: int
    reserved: int
    remaining: int
    unpriced: int
    resets_at: int | None
    source: Literal["file", "store"]


class DeletedBudget(Struct, frozen=True, kw_only=True):
    """A budget that was deleted."""

    object: Literal["budget"] = "budget"
    id: str
    deleted: bool = True


class BudgetRoutes(Struct, frozen=True):
    """Routes for budgets."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/budgets",
                handler=self.listed,
                summary="List budgets with what is spent and reserved.",
                query=BudgetQuery,
                returns=BudgetState,
                paged=True,
            ),
            AdminRoute(
                method="POST",
                path="/budgets",
                handler=self.create,
                summary="Set a new budget.",
                takes=BudgetDefinition,
                returns=BudgetState,
                status=201,
                changes=True,
            ),
            AdminRoute(
                method="GET", path="/budgets/{id}", handler=self.show, summary="Show a budget.", returns=BudgetState
            ),
            AdminRoute(
                method="PATCH",
                path="/budgets/{id}",
                handler=self.change,
                summary="Change a budget.",
                takes=BudgetChange,
                returns=BudgetState,
                changes=True,
            ),
            AdminRoute(
                method="DELETE",
                path="/budgets/{id}",
                handler=self.delete,
                summary="Delete a budget and what was counted of it.",
                returns=DeletedBudget,
                changes=True,
            ),
        )

    async def listed(self, request: AdminRequest) -> AdminResult:
        """Return budgets by their ids.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query, service = request.query(BudgetQuery), await self._service()
        after = decode_cursor(query.after, str)
        chosen = [
            budget
            for name, budget in sorted(service.budgets.items())
            if query.scope in (None, budget.scope) and (after is None or name > str(after[0]))
        ]
        states = await self._states(service, chosen[: query.limit + 1])
        return Page.of(states, query.limit, lambda state: (state.id,))

    async def create(self, request: AdminRequest) -> AdminResult:
        """Store a new budget.

        Raises:
            FailureError: it exists, the ledger is off, or the store cannot be used.
            WireError: a field is invalid.
        """
        settings = request.body(BudgetDefinition)
        _check(settings)
        service, budget = await self._service(), settings.budget()
        if budget.id in service.budgets:
            raise conflict(f"the budget `{budget.id}` has this scope, period and currency: change it with PATCH")
        return await self._put(request, service, budget)

    async def show(self, request: AdminRequest) -> AdminResult:
        """Return one budget.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        service = await self._service()
        (state,) = await self._states(service, [_named(service, request)])
        return state

    async def change(self, request: AdminRequest) -> AdminResult:
        """Change a budget of the store.

        Raises:
            FailureError: it does not exist, is set in the file, or the store cannot be used.
            WireError: a field is invalid.
        """
        service, wanted = await self._service(), request.body(BudgetChange)
        before = _stored(service, request)
        values = {name: value for name, value in asdict(wanted).items() if value is not UNSET}
        unchanged = {name: getattr(before, name) for name in BudgetSettings.__struct_fields__}
        settings = BudgetSettings(**{**unchanged, "amount": _decimal(before.amount), **values})
        _check(settings)
        return await self._put(request, service, settings.budget())

    async def delete(self, request: AdminRequest) -> AdminResult:
        """Delete a budget of the store.

        Raises:
            FailureError: it does not exist, is set in the file, or the store cannot be used.
        """
        service = await self._service()
        budget, services = _stored(service, request), self.services
        await services.write(budgets.delete(budget.id, request.change(services.now())))
        await services.need_keeper().need(service.refresh())
        return DeletedBudget(id=budget.id)

    async def _service(self) -> BudgetService:
        """Return the budgets, as the store has them now."""
        service = self.services.budgets
        if service is None:
            raise FailureError(NO_LEDGER)
        await self.services.need_keeper().need(service.refresh())
        return service

    async def _put(self, request: AdminRequest, service: BudgetService, budget: Budget) -> BudgetState:
        services = self.services
        await services.write(budgets.put(budget, request.change(services.now())))
        await services.need_keeper().need(service.refresh())
        (state,) = await self._states(service, [budget])
        return state

    async def _states(self, service: BudgetService, chosen: Sequence[Budget]) -> list[BudgetState]:
        services = self.services
        if services.recorder is not None:
            await services.recorder.flush()  # a new budget counts what the ledger has
        uses, now = await services.need_keeper().need(service.show(chosen)), services.now()
        return [
            BudgetState(
                **asdict(budget),
                spent=uses[budget.id].spent,
                reserved=uses[budget.id].reserved,
                remaining=remaining(budget, uses[budget.id]),
                unpriced=uses[budget.id].unpriced,
                resets_at=budgets.bounds_of(budget, now).ends,
                source="file" if service.is_fixed(budget.id) else "store",
            )
            for budget in chosen
        ]


def _named(service: BudgetService, request: AdminRequest) -> Budget:
    name = request.variables["id"]
    budget = service.budgets.get(name)
    if budget is None:
        raise not_found("budget", name)
    return budget


def _stored(service: BudgetService, request: AdminRequest) -> Budget:
    budget = _named(service, request)
    if service.is_fixed(budget.id):
        raise conflict(FIXED)
    return budget


def _check(settings: BudgetSettings) -> None:
    """Raise `WireError` for the first setting that is invalid."""
    for name, problem in settings.problems():
        raise WireError(f"$.{name}", problem)


def _decimal(amount: int) -> str:
    return f"{amount // 1_000_000}.{amount % 1_000_000:06}"
