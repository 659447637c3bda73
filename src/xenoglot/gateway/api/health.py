"""Health of the gateway: liveness, and readiness with the state of the store and of the embedded models.

`/livez` and `/readyz` follow Kubernetes (https://kubernetes.io/docs/reference/using-api/health-checks/), `?verbose` and
`?exclude=CHECK` included. They need no key: a response names checks and states, never a host or an error. The store is
checked once a second at most, however often the endpoint is called.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from xenoglot.engine.metrics import AvailabilitySource
from xenoglot.gateway.endpoint.responses import send_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.model.json import JSONObject

LIVE: Final = "/livez"
READY: Final = "/readyz"
STORE: Final = "store"
FRESH_SECONDS: Final = 1.0
"""How long the state of the store is taken for current."""
SERVICE_UNAVAILABLE: Final = 503


class HealthEndpoint:
    """Reports health. `draining` is whether no new requests are accepted; the store is checked if it is in use."""

    def __init__(
        self, draining: Callable[[], bool], backends: Mapping[str, Backend], store: StoreService | None, *, ledger: bool
    ) -> None:
        self._draining = draining
        self._backends = backends
        self._store = store
        self._ledger = ledger
        self._checking: asyncio.Task[bool] | None = None
        self._checked = float("-inf")
        self.now: Callable[[], float] = time.monotonic
        """Gives seconds."""

    async def live(self, ctx: RequestContext) -> None:
        """Report that the process answers."""
        await send_json(ctx, {"status": "ok"})

    async def accepting(self, ctx: RequestContext) -> None:
        """Report whether new requests are accepted."""
        draining = self._draining()
        status: JSONObject = {"status": "draining" if draining else "ready"}
        await send_json(ctx, status, SERVICE_UNAVAILABLE if draining else 200)

    async def ready(self, ctx: RequestContext) -> None:
        """Report whether new requests are accepted, and the store and the embedded models can be used."""
        query = parse_qsl(ctx.exchange.query, keep_blank_values=True)
        excluded = {value for name, value in query if name == "exclude"}
        checks: JSONObject = {"accepting": "draining" if self._draining() else "ok"}
        for name, backend in self._backends.items():
            if isinstance(backend, AvailabilitySource) and name not in excluded:
                checks[name] = "ok" if backend.is_available() else "failed"
        if STORE not in excluded and (store := self._store) is not None and (self._ledger or store.store.has_history()):
            checks[STORE] = "ok" if await self._store_works(store) else "failed"
        ready = all(state == "ok" for state in checks.values())
        status: JSONObject = {"status": "ready" if ready else "draining" if self._draining() else "unready"}
        if any(name == "verbose" for name, _ in query):
            status["checks"] = checks
        await send_json(ctx, status, 200 if ready else SERVICE_UNAVAILABLE)

    async def _store_works(self, store: StoreService) -> bool:
        """Return whether the store works; several requests share one check."""
        now = self.now()
        if self._checking is None or (self._checking.done() and now - self._checked > FRESH_SECONDS):
            self._checked = now
            self._checking = asyncio.create_task(store.works())
        return await asyncio.shield(self._checking)
