"""`GET /v1/key`: what the key of a client may do, and what it has spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from msgspec import Struct

from xenoglot.gateway.auth.file_keys import NO_MODEL
from xenoglot.gateway.config.limits import limits_json
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.observability.request_log import RequestSink
from xenoglot.gateway.store_service import StoreService
from xenoglot.policy.limits.money_budget import remaining
from xenoglot.store.ledger import api_keys, queries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from xenoglot.gateway.auth.keys import Principal
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.policy.limits.money_budget import Budget, BudgetUse
    from xenoglot.store.queries import Database

KEY: Final = "/v1/key"
SPENT: Final = ("currency", "cost", "requests", "unpriced", "input", "output")


class ClientBudgets(Protocol):
    """Knows the budgets of clients."""

    @property
    def active(self) -> bool:
        """Whether there is any budget."""
        ...

    def of_client(self, tenant: str | None, key: str | None) -> list[Budget]:
        """Return the budgets of a key and of its tenant."""
        ...

    def show(self, wanted: Sequence[Budget]) -> Awaitable[dict[str, BudgetUse]]:
        """Return what is used of budgets now, of all gateways."""
        ...


class KeyEndpoint(Struct, frozen=True):
    """Reports their own key to clients. What it has spent needs a `ledger`; `stored` accepts keys of the store.

    `budgets` are those of all clients.
    """

    keeper: StoreService | None
    ledger: RequestSink | None
    stored: bool
    budgets: ClientBudgets | None = None

    async def serve(self, ctx: RequestContext) -> None:
        """Answer with the rights of the key that the request shows.

        Raises:
            FailureError: the store is needed, and cannot be used.
        """
        client = ctx.client
        body: JSONObject = {
            "object": "key",
            "id": client.key,
            "name": client.name,
            "tenant": client.tenant,
            "roles": _roles(client),
            "models": _models(client),
            "limits": limits_json(client.limits),
            **await self._times(client),
            "spent": await self._spent(client),
            "budgets": await self._budgets(client),
        }
        await send_json(ctx, body)

    async def _times(self, client: Principal) -> JSONObject:
        """Return when the key was created and when it expires; a key of the file has neither."""
        key = None
        if self.stored and self.keeper is not None and client.key is not None:
            database = cast("Database", self.keeper.store)
            key = await self.keeper.need(database.read(api_keys.get(client.key)))
        return {
            "created": None if key is None else key.created,
            "expires": None if key is None else key.expires,
        }

    async def _spent(self, client: Principal) -> JSON:
        """Return what the key has spent by currency, in micro-units; `None` without a ledger, or without a key."""
        if self.ledger is None or self.keeper is None or client.key is None:
            return None
        await self.ledger.flush()
        which = queries.UsageFilter(key=client.key)
        sums = await self.keeper.need(cast("Database", self.keeper.store).read(queries.usage((), which)))
        return [{name: row[name] for name in SPENT} for row in sums]

    async def _budgets(self, client: Principal) -> JSON:
        """Return what is spent and reserved of the budgets of the key and its tenant, in micro-units, and remains."""
        if self.budgets is None or self.keeper is None or not self.budgets.active:
            return []
        from xenoglot.store.ledger.budgets import bounds_of  # noqa: PLC0415  most gateways have no budgets

        own = self.budgets.of_client(client.tenant, client.key)
        uses, now = await self.keeper.need(self.budgets.show(own)) if own else {}, self.keeper.now()
        return [
            {
                "scope": budget.kind,
                "period": budget.period,
                "currency": budget.currency,
                "amount": budget.amount,
                "spent": uses[budget.id].spent,
                "reserved": uses[budget.id].reserved,
                "remaining": remaining(budget, uses[budget.id]),
                "resets_at": bounds_of(budget, now).ends,
            }
            for budget in own
        ]


def _roles(client: Principal) -> list[str]:
    roles = (("client", client.uses), ("viewer", client.viewer), ("admin", client.admin))
    return [name for name, has in roles if has]


def _models(client: Principal) -> list[str]:
    """Return the allowed models: `*` if all are, none if no model is."""
    if client.models == NO_MODEL:
        return []
    return list(client.models) or ["*"]
