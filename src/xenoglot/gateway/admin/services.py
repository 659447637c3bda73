"""What the handlers of the administration use of a gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct

from xenoglot.backends.backend import Backend
from xenoglot.errors import FailureError
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.endpoint.request_context import AuthService, BodyReader
from xenoglot.gateway.endpoint.routes import Routes
from xenoglot.gateway.ledger.budget_service import BudgetService
from xenoglot.gateway.ledger.recorder import RequestRecorder
from xenoglot.gateway.ledger.request_cost import PriceList
from xenoglot.gateway.routing.reservation import Dispatcher
from xenoglot.gateway.store_service import OFF, StoreService
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.store.queries import Database, Steps

T = TypeVar("T")

NO_LEDGER = Failure(
    kind="not_found", message="the gateway records no requests: its ledger is off; add a table [ledger] to its file"
)


class AdminServices(Struct, frozen=True, kw_only=True):
    """The parts of a gateway. `ended` returns whether streams must end, because the gateway stops or was replaced."""

    config: Config
    bodies: BodyReader
    keeper: StoreService | None
    recorder: RequestRecorder | None
    prices: PriceList | None
    budgets: BudgetService | None
    dispatcher: Dispatcher
    backends: Mapping[str, Backend]
    routes: Routes
    auth: AuthService
    redact: Callable[[str], str]
    ended: Callable[[], bool]
    reload: Callable[[], Awaitable[str | None]] | None
    """Reloads the configuration and returns the problem, if there is one; `None` without a configuration file."""

    def now(self) -> float:
        """Return the Unix time of the store's clock."""
        return self.need_keeper().now()

    def need_keeper(self) -> StoreService:
        """Return the store.

        Raises:
            FailureError: it is off.
        """
        if self.keeper is None:
            raise FailureError(OFF)
        return self.keeper

    async def read(self, steps: Steps[T]) -> T:
        """Return the result of queries that change nothing.

        Raises:
            FailureError: the store is off, or cannot be used.
        """
        keeper = self.need_keeper()
        return await keeper.need(cast("Database", keeper.store).read(steps))

    async def write(self, steps: Steps[T]) -> T:
        """Return the result of queries in one transaction, which is committed then.

        Raises:
            FailureError: the store is off, or cannot be used.
        """
        keeper = self.need_keeper()
        return await keeper.need(cast("Database", keeper.store).write(steps))

    async def recorded(self) -> None:
        """Write requests that are over but wait in the queue of the ledger.

        Raises:
            FailureError: the ledger is off.
        """
        if self.recorder is None:
            raise FailureError(NO_LEDGER)
        await self.recorder.flush()
