"""Services that a call to an upstream needs, and the emulation of a route around its backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from xenoglot.backends.wrappers.emulate import read_as
from xenoglot.gateway.config.settings import ClientDialect
from xenoglot.gateway.media.inline_files import InlineFiles
from xenoglot.gateway.observability.request_log import RequestBudgets, RequestPrices, RequestSink
from xenoglot.gateway.routing.model_router import ModelRouter
from xenoglot.gateway.routing.reservation import Dispatcher
from xenoglot.gateway.store_service import StoreService
from xenoglot.gateway.upstream.interceptors import Interceptors

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Awaitable, Callable

    from xenoglot.backends.backend import Answer, Backend
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.routing.router import Route
    from xenoglot.model.content import HostedKind
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage


class ExecutedCall(Protocol):
    """A call of which some tools are executed here."""

    request: Request
    losses: Losses

    def change(self, request: Request) -> None:
        """Send `request` in place of the client's."""
        ...

    async def affords(self, request: Request, used: Usage) -> bool:
        """Reserve what the call may cost with `request` as a further part; return whether the budgets allow it.

        `used` is what the parts before have used.
        """
        ...

    async def follow_up(self, request: Request) -> Answer | None:
        """Send `request` after the answer to the one before, and return its answer as it begins.

        `None` if limits do not let it through to a target.
        """
        ...


class HostedToolExecution(Protocol):
    """Executes hosted tools in place of upstreams; `calls` counts them by the kind of tool and their outcome."""

    calls: Counter[tuple[str, str]]

    def kinds(self, request: Request) -> frozenset[HostedKind]:
        """Return the kinds of tools of a request that can be executed here."""
        ...

    async def answer(
        self, call: ExecutedCall, kinds: frozenset[HostedKind], ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Return the answer to a call whose tools of some `kinds` are executed here; `ask` gives the first one.

        Raises:
            FailureError: there is none. `WireError` and `LossError` alike.
        """
        ...


class UpstreamServices(Struct, frozen=True, kw_only=True):
    """Services of calls: model names, targets and limits, and the store for reasoning that clients strip.

    `clients` are the settings of clients by their dialect; `loopback` is whether only this machine reaches the gateway.
    `tool_execution` runs tools that targets do not run. `ledger` stores requests, `prices` knows what they cost and
    `budgets` limits that, if they are on; `interceptors` change or answer requests; `files` replaces ids of stored
    files in requests by their content.
    """

    models: ModelRouter
    dispatcher: Dispatcher
    keeper: StoreService | None
    clients: Mapping[str, ClientDialect]
    loopback: bool
    ledger: RequestSink | None = None
    prices: RequestPrices | None = None
    budgets: RequestBudgets | None = None
    interceptors: Interceptors | None = None
    tool_execution: HostedToolExecution | None = None
    files: InlineFiles | None = None

    @property
    def has_budgets(self) -> bool:
        """Whether a request may have to reserve what it may cost."""
        return self.budgets is not None and self.budgets.active

    def check_ledger(self) -> None:
        """Refuse a request that could not be recorded, if the configuration wants that.

        Raises:
            FailureError: so it is.
        """
        if self.ledger is not None:
            self.ledger.check()


def reading(backend: Backend, route: Route) -> Backend:
    """Return `backend` as `route` reads its answers; itself where they need no reading."""
    return read_as(backend, route.text_syntax, route.emulate)
