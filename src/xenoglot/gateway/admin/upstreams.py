"""`/admin/v1/upstreams` and `/admin/v1/tenants`: the servers behind the gateway, and groups of clients."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.admin.route import AdminRequest, AdminRoute, Page, not_found
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.policy.target_health import State
from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.routing.reservation import TargetMetrics
    from xenoglot.store.queries import Steps

CHECK_SECONDS: Final = 10.0
"""How long a check waits for an upstream."""
MOST_MODELS: Final = 1000
"""Names of models in the result of a check."""


class UpstreamTarget(Struct, frozen=True, kw_only=True):
    """A model of an upstream that was requested since the start; `model` is empty if any name is passed on.

    `first_byte_ms` is a moving average. `keys_resting` are API keys that are not used for a while, after a 429 or 401.
    """

    model: str
    breaker: State
    running: int
    first_byte_ms: float | None
    attempts: dict[str, int]
    """Attempts by outcome: `answered`, or the kind of the failure."""
    keys: int
    keys_resting: int


class UpstreamState(Struct, frozen=True, kw_only=True):
    """An upstream of the configuration, or an embedded model, which has no URL."""

    name: str
    dialect: str | None
    provider: str | None
    base_url: str | None
    keys: int
    targets: list[UpstreamTarget]


class UpstreamCheck(Struct, frozen=True, kw_only=True):
    """Whether an upstream lists its models, which needs a connection, and in most cases a valid key."""

    object: Literal["upstream.check"] = "upstream.check"
    name: str
    ok: bool
    ms: float
    models: list[str]
    problem: str | None


class TenantState(Struct, frozen=True, kw_only=True):
    """A tenant of the configuration, or one that has keys in the store. Without `models` it may use all."""

    name: str
    configured: bool
    models: list[str]
    file_keys: int
    stored_keys: int


class UpstreamRoutes(Struct, frozen=True):
    """Routes for upstreams and tenants."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/upstreams",
                handler=self.upstreams,
                summary="List the upstreams with their circuit breakers, API keys and times to the first byte.",
                returns=UpstreamState,
                paged=True,
            ),
            AdminRoute(
                method="POST",
                path="/upstreams/{name}/check",
                handler=self.check,
                summary="Request an upstream's list of models, to see whether it can be reached.",
                returns=UpstreamCheck,
            ),
            AdminRoute(
                method="GET",
                path="/tenants",
                handler=self.tenants,
                summary="List the tenants with their models and the numbers of their keys.",
                returns=TenantState,
                paged=True,
            ),
        )

    async def upstreams(self, request: AdminRequest) -> AdminResult:  # noqa: ARG002  the form of a handler
        """Return the state of each upstream, as this process sees it."""
        dispatcher, config = self.services.dispatcher, self.services.config
        targets: dict[str, list[UpstreamTarget]] = {}
        for measured in dispatcher.ward.measures(dispatcher.clock()):
            targets.setdefault(measured.backend, []).append(_target(measured))
        rows = []
        for name in self.services.backends:
            upstream = config.upstreams.get(name)
            rows.append(
                UpstreamState(
                    name=name,
                    dialect=None if upstream is None else upstream.dialect,
                    provider=None if upstream is None else upstream.provider,
                    base_url=None if upstream is None else upstream.base_url.partition("?")[0],
                    keys=0 if upstream is None else len(config.upstream_keys(upstream)),
                    targets=sorted(targets.get(name, []), key=lambda target: target.model),
                )
            )
        return Page(data=rows, has_more=False, next=None)

    async def check(self, request: AdminRequest) -> AdminResult:
        """Request the list of models of an upstream.

        Raises:
            FailureError: there is no such upstream.
        """
        name = request.variables["name"]
        backend = self.services.backends.get(name)
        if backend is None:
            raise not_found("upstream", name)
        began, models, problem = time.monotonic(), list[str](), None
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                models = [model.id for model in await backend.models()]
        except TimeoutError:
            problem = f"it did not answer within {CHECK_SECONDS:g} seconds"
        except FailureError as error:
            problem = self.services.redact(error.failure.operator_message or error.failure.message)
        elapsed = round((time.monotonic() - began) * 1000, 1)
        return UpstreamCheck(name=name, ok=problem is None, ms=elapsed, models=models[:MOST_MODELS], problem=problem)

    async def tenants(self, request: AdminRequest) -> AdminResult:  # noqa: ARG002  the form of a handler
        """Return the tenants of the configuration and of the store.

        Raises:
            FailureError: the store cannot be used.
        """
        services = self.services
        stored = {} if services.keeper is None else await services.read(_stored_keys())
        configured = services.config.tenants
        rows = []
        for name in sorted({*configured, *stored}):
            tenant = configured.get(name)
            held = "" if tenant is None or tenant.key_env is None else services.config.secrets[tenant.key_env]
            rows.append(
                TenantState(
                    name=name,
                    configured=tenant is not None,
                    models=[] if tenant is None else list(tenant.models),
                    file_keys=len(held.split()) + (0 if tenant is None else len(tenant.key_sha256)),
                    stored_keys=stored.get(name, 0),
                )
            )
        return Page(data=rows, has_more=False, next=None)


def _target(measured: TargetMetrics) -> UpstreamTarget:
    return UpstreamTarget(
        model=measured.model,
        breaker=measured.state,
        running=measured.running,
        first_byte_ms=None if measured.latency is None else round(measured.latency * 1000, 1),
        attempts=dict(measured.tries),
        keys=measured.keys,
        keys_resting=measured.keys_resting,
    )


def _stored_keys() -> Steps[dict[str, int]]:
    """Return how many keys that are not disabled each tenant has in the store."""
    rows = yield Statement(
        "SELECT tenant, COUNT(*) FROM api_key WHERE tenant IS NOT NULL AND disabled IS NULL GROUP BY tenant"
    )
    return {str(row[0]): int(row[1]) for row in rows}
