"""The gateway: owns the services and the endpoints, answers exchanges, and drains."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from xenoglot.backends.redaction import Redactor
from xenoglot.errors import FailureError, missing_extra
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.api.forward import ForwardEndpoint
from xenoglot.gateway.api.health import HealthEndpoint
from xenoglot.gateway.api.idempotency import Idempotency
from xenoglot.gateway.api.key_report import KeyEndpoint
from xenoglot.gateway.api.metrics import (
    RequestCounters,
    budget_exposition,
    execution_exposition,
    lag_exposition,
    ledger_exposition,
    render_metrics,
)
from xenoglot.gateway.api.model_facts import ModelFacts
from xenoglot.gateway.api.models import ModelsEndpoint
from xenoglot.gateway.api.operations import CountEndpoint, OperationEndpoint
from xenoglot.gateway.api.parse import ParseEndpoint
from xenoglot.gateway.api.request_admission import RequestAdmission, admitted_context
from xenoglot.gateway.api.table import Endpoints, StatusEndpoint, mirrors
from xenoglot.gateway.api.usage_report import UsageEndpoint
from xenoglot.gateway.auth.file_keys import build_keyring
from xenoglot.gateway.batches.routes import BatchEndpoints
from xenoglot.gateway.config.local_models import EMBEDDING
from xenoglot.gateway.endpoint.request_context import AuthService, BodyReader, RequestContext
from xenoglot.gateway.endpoint.request_runner import RequestRunner
from xenoglot.gateway.endpoint.responses import refuse
from xenoglot.gateway.endpoint.routes import Routes
from xenoglot.gateway.limits.limiter import MemoryLimiter, Scopes
from xenoglot.gateway.media.inline_files import InlineFiles
from xenoglot.gateway.observability.loop_lag import LoopLag
from xenoglot.gateway.observability.request_log import RequestLogger
from xenoglot.gateway.relay.task_driver import RelayEndpoint
from xenoglot.gateway.routing.model_router import ModelRouter
from xenoglot.gateway.routing.reservation import Dispatcher, TargetRegistry
from xenoglot.gateway.routing.router import Router, plans, single
from xenoglot.gateway.store_service import OFF as OFF_HERE
from xenoglot.gateway.store_service import StoreService
from xenoglot.gateway.stored.background import BackgroundJobs
from xenoglot.gateway.stored.compact import CompactEndpoint
from xenoglot.gateway.stored.endpoints import StoredEndpoints
from xenoglot.gateway.stored.intake import Intake
from xenoglot.gateway.upstream.interceptors import Interceptors, interceptors_of
from xenoglot.gateway.upstream.services import HostedToolExecution, UpstreamServices
from xenoglot.gateway.web_socket.endpoint import WebSocketEndpoint
from xenoglot.model.failure import Failure
from xenoglot.store.location import OFF
from xenoglot.store.records import Retention
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.admin.endpoint import AdminEndpoint
    from xenoglot.gateway.admin.route import AdminRoute
    from xenoglot.gateway.admin.services import AdminServices
    from xenoglot.gateway.batches.runner import BatchRunner
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.settings import ConnectionSettings
    from xenoglot.gateway.console.endpoint import ConsoleEndpoint
    from xenoglot.gateway.http.application import Exchange, HeadState, PushExchange
    from xenoglot.gateway.ledger.budget_service import BudgetService
    from xenoglot.gateway.ledger.recorder import RequestRecorder
    from xenoglot.gateway.ledger.request_cost import PriceList
    from xenoglot.gateway.limits.limiter import Limiter
    from xenoglot.gateway.observability.request_log import RequestBudgets
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.gateway.telemetry.exporters import Telemetry
    from xenoglot.gateway.telemetry.request_spans import RequestTracing
    from xenoglot.http1.request_head import InvalidHeadError, RequestHead
    from xenoglot.store.store import Store

TAKE_UP_SECONDS = 1.0
"""After a start, before the store is searched for batches: clients come first."""

DAY = 86_400.0


class Gateway:
    """Answers exchanges. `backends` are by the names that `config` has for them; `clock` gives seconds.

    What clients want kept goes into `store`, without one into memory, unless the configuration disables that.
    """

    _admin: AdminEndpoint | None = None
    """The administration, once there was a request for it."""
    _console: ConsoleEndpoint | None = None
    """The console, after its first visit."""

    def __init__(  # noqa: PLR0913  what it is made of
        self,
        config: Config,
        backends: Mapping[str, Backend],
        *,
        embedded_model: str | None = None,
        store: Store | None = None,
        limiter: Limiter | None = None,
        keeper: StoreService | None = None,
        recorder: RequestRecorder | None = None,
        telemetry: Telemetry | None = None,
        budgets: BudgetService | None = None,
        interceptors: Interceptors | None = None,
        tool_execution: HostedToolExecution | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.config, self.backends = config, backends
        self.router = Router((*plans(config, embedded_model), *_embedding_plans(config, backends)))
        self.models = ModelRouter(self.router, backends, config.upstreams)
        self.redact = Redactor(piece for secret in config.secrets for piece in (secret, *secret.split()))
        self.keeper = None if config.store.url == OFF else keeper or keeper_of(config, store or Memory())
        self.limiter = limiter or MemoryLimiter()
        self.dispatcher = Dispatcher(ward=TargetRegistry(config), limiter=self.limiter, scopes=Scopes(config))
        self.auth = _auth_service(config, self.keeper, clock)
        self.tally, self.lag = RequestCounters(config), LoopLag()
        self.observer = RequestLogger(
            clock,
            all_losses=config.server.log_losses == "all",
            count=self.tally.add,
            tracing=None if telemetry is None else _tracing(config, telemetry, self.redact),
        )
        self.recorder = self.observer.ledger = recorder
        self.prices = self.observer.prices = _price_list(config)
        if recorder is not None:
            _attach(recorder, config, self.auth, self.redact)
        self.requests = RequestRunner(self.observer)
        self.services = UpstreamServices(
            models=self.models,
            dispatcher=self.dispatcher,
            keeper=self.keeper,
            clients=config.clients,
            loopback=config.server.loopback,
            ledger=recorder,
            prices=self.prices,
            budgets=None if budgets is None else _admission(budgets),
            interceptors=interceptors or interceptors_of(config),
            tool_execution=tool_execution,
            files=_inline_files(config, self.keeper),
        )
        self.budgets = budgets
        self.bodies = BodyReader(config.server.body_limit, config.server.body_values)
        self.idempotency = Idempotency(self.keeper, self.bodies)
        self.reload: Callable[[], Awaitable[str | None]] | None = None
        """Reloads the configuration, and returns the problem if there is one."""
        self.replaced = False
        """Whether another gateway has taken over."""
        self.health = HealthEndpoint(lambda: self.draining, backends, self.keeper, ledger=recorder is not None)
        endpoints = self._endpoints()
        rows = endpoints.rows()
        self.routes = Routes(rows, mirrors(rows))
        self.admission = RequestAdmission(self.routes, config.server, self.auth, self.idempotency)
        fast_path = FastPath(self.admission, endpoints.relay, self.requests)
        self.awaits_body: Callable[[PushExchange, RequestHead], bool] = fast_path.awaits_body
        self.start: Callable[[PushExchange], bool] = fast_path.start
        self._runner: BatchRunner | None = None
        """What has batches answered, once there are any."""
        self.draining = False
        """Whether no new clients are let in; what is being answered still is."""
        self._closed = False
        self.merge: Callable[[bytes], bytes] | None = None
        """What puts our numbers together with those of other workers, where there are any."""

    def _endpoints(self) -> Endpoints:
        config, keeper, bodies = self.config, self.keeper, self.bodies
        relay = RelayEndpoint(self.services, bodies, config.server.ping_interval)
        jobs = BackgroundJobs(keeper, relay, self.observer)
        intake = Intake(relay, jobs, keeper)
        metrics = self.metrics if config.server.tells_metrics else None
        return Endpoints(
            relay=relay,
            intake=intake,
            stored=StoredEndpoints(keeper, bodies, self.auth, jobs),
            batches=BatchEndpoints(keeper, bodies, config.batches, lambda: self.runner().tell()),
            compact=CompactEndpoint(relay, intake),
            web_socket=WebSocketEndpoint(bodies),
            count=CountEndpoint(self.services, bodies, intake),
            operation=OperationEndpoint(self.services, bodies),
            forwarding=ForwardEndpoint(self.services, bodies),
            parse=ParseEndpoint(bodies),
            models=ModelsEndpoint(self.models, bodies, ModelFacts(config.upstreams, self.prices)),
            status=StatusEndpoint(metrics),
            health=self.health,
            usage=UsageEndpoint(keeper, self.recorder),
            key=KeyEndpoint(keeper, self.recorder, self.auth.stored is not None, self.budgets),
            admin=self._serve_admin,
            openapi=self._serve_openapi,
            console=self._serve_console,
        )

    async def _serve_admin(self, ctx: RequestContext) -> None:
        """Answer a request for the administration."""
        await (await self._administration()).serve(ctx)

    async def _serve_openapi(self, ctx: RequestContext) -> None:
        """Send the OpenAPI document."""
        await (await self._administration()).serve_document(ctx)

    async def _serve_console(self, ctx: RequestContext) -> None:
        """Answer a request of a browser."""
        if self._console is None:
            admin = await self._administration()
            self._console = await asyncio.to_thread(self._open_console, admin)
        await self._console.serve(ctx)

    def _open_console(self, admin: AdminEndpoint) -> ConsoleEndpoint:
        try:
            from xenoglot.gateway.console.table import console_endpoint  # noqa: PLC0415  most gateways have no visitor
        except ModuleNotFoundError as error:
            if error.name != "jinja2":
                raise
            raise FailureError(Failure(kind="not_found", message=missing_extra("jinja2"))) from None
        return console_endpoint(self._admin_services(), admin)

    def admin_routes(self) -> tuple[AdminRoute, ...]:
        """Return the table of the administration."""
        return self._open_admin().routes

    async def _administration(self) -> AdminEndpoint:
        if self._admin is None:
            self._admin = await asyncio.to_thread(self._open_admin)
        return self._admin

    def _open_admin(self) -> AdminEndpoint:
        from xenoglot.gateway.admin.table import admin_endpoint  # noqa: PLC0415  most gateways are never administered

        return admin_endpoint(self._admin_services())

    def _admin_services(self) -> AdminServices:
        from xenoglot.gateway.admin.services import AdminServices  # noqa: PLC0415  as above

        return AdminServices(
            config=self.config,
            bodies=self.bodies,
            keeper=self.keeper,
            recorder=self.recorder,
            prices=self.prices,
            budgets=self.budgets,
            dispatcher=self.dispatcher,
            backends=self.backends,
            routes=self.routes,
            auth=self.auth,
            redact=self.redact,
            ended=lambda: self.draining or self.replaced,
            reload=self.reload,
        )

    def runner(self) -> BatchRunner:
        """Return what has batches answered.

        Raises:
            FailureError: nothing is kept here.
        """
        if self._runner is None:
            from xenoglot.gateway.batches.execute import BatchServices  # noqa: PLC0415  most gateways never have a batch
            from xenoglot.gateway.batches.runner import BatchRunner  # noqa: PLC0415  as above

            if self.keeper is None:
                raise FailureError(OFF_HERE)
            services = BatchServices(
                keeper=self.keeper,
                settings=self.config.batches,
                drain_seconds=self.config.server.drain_seconds,
                dispatcher=self.dispatcher,
                bodies=self.bodies,
                routes=self.routes,
                observer=self.observer,
                auth=self.auth,
            )
            self._runner = BatchRunner(services)
        return self._runner

    def take_up(self) -> None:
        """Continue batches that were begun before, if there may be any; a store that was never made stays so."""
        if self.keeper is not None and self.config.batches.enabled and self.keeper.store.has_history():
            asyncio.get_running_loop().call_later(TAKE_UP_SECONDS, self._take_up)

    def _take_up(self) -> None:
        if not self.draining and not self._closed:
            self.runner().begin()

    def begin_nothing(self) -> None:
        """Leave batches to the next gateway."""
        if self._runner is not None:
            self._runner.stop()

    @property
    def connections(self) -> ConnectionSettings:
        """Limits and timeouts of the connections of clients."""
        return self.config.server.connections

    def refuse(self, exchange: Exchange, refused: InvalidHeadError) -> Awaitable[None]:
        """Answer bytes that are no valid request, or a request that exceeds the connection limit."""
        return refuse(exchange, refused, self.routes, self.observer)

    def abandon(self) -> None:
        """Abort what is served without a task, as if its clients had disconnected."""
        self.requests.abandon()

    async def handle(self, exchange: Exchange, seen: HeadState | None = None, since: float | None = None) -> None:
        """Answer one request, whatever happens, and write its line to the log; `seen` is what is known of its head.

        It came at the time `since`, or now.
        """
        record = self.observer.record(exchange.method, since)
        entry = self.admission.known(seen)
        if entry is not None:
            ctx = admitted_context(entry, exchange, record)
            await self.requests.serve(ctx, entry.handler(ctx))
            return
        found, dialect = self.admission.find(exchange.path, exchange.headers)
        exchange.variables = found.variables
        ctx = RequestContext(exchange, dialect, record)
        await self.requests.serve(ctx, self.admission.serve(ctx, found.rows, seen))

    def metrics(self) -> bytes:
        """Return the metrics for Prometheus."""
        own = self.own_metrics()
        return own if self.merge is None else self.merge(own)

    def own_metrics(self) -> bytes:
        """Return this process's own metrics."""
        targets = self.dispatcher.ward.measures(self.dispatcher.clock())
        told = render_metrics(self.tally, len(self.requests), self.backends, self.limiter.measures(), targets)
        told += lag_exposition(self.lag)
        recorder = self.recorder
        if recorder is not None:
            told += ledger_exposition(recorder.written, recorder.dropped, recorder.waiting)
        execution = self.services.tool_execution
        if execution is not None:
            told += execution_exposition(execution.calls)
        if self.budgets is not None and self.budgets.active:
            told += budget_exposition(self.budgets.remaining())
        return told

    def stop_now(self) -> None:
        """Break off what is being served: streams with an error event, everything else with a status."""
        self.requests.stop_now()
        if self._runner is not None:
            self._runner.break_off()

    def inherit(self, other: Gateway) -> None:
        """Take over counters, target health and the record of wrong keys from `other`."""
        other.tally.models.configure(self.config)
        self.tally, self.lag = other.tally, other.lag
        execution, before = self.services.tool_execution, other.services.tool_execution
        if execution is not None and before is not None:
            execution.calls = before.calls
        self.observer.inherit(other.observer)
        self.auth.throttle, self.auth.clock = other.auth.throttle, other.auth.clock
        if self.auth.stored is not None and other.auth.stored is not None and self.keeper is other.keeper:
            self.auth.stored.inherit(other.auth.stored)
        self.dispatcher.ward.inherit(other.dispatcher.ward)
        self.reload, other.replaced = other.reload, True

    async def over(self) -> None:
        """Wait until nothing is in progress, work in the background included."""
        await self.requests.over()
        if self._runner is not None:
            await self._runner.over()
        for job in () if self.keeper is None else tuple(self.keeper.jobs.values()):  # the last request's included
            await job.wait()

    async def let_go_of_batches(self) -> None:
        """Have nothing more of a batch answered; requests in progress may take as long as the drain."""
        self._closed = True
        if self._runner is not None:
            await self._runner.aclose()

    async def let_go_of_keys(self) -> None:
        """Watch the keys of the store no longer."""
        if self.auth.stored is not None:
            await self.auth.stored.aclose()

    async def aclose(self) -> None:
        """Let go of all backends, and of the store."""
        await self.let_go_of_batches()
        await self.let_go_of_keys()
        if self.keeper is not None:
            await self.keeper.aclose()
        for backend in self.backends.values():
            await backend.aclose()


def keeper_of(config: Config, store: Store) -> StoreService:
    """Return the service for `store` with the configured age and size limits."""
    return StoreService(store, Retention(max_age=config.store.max_age_days * DAY, max_bytes=config.store.max_bytes))


def _inline_files(config: Config, keeper: StoreService | None) -> InlineFiles | None:
    """Return what replaces ids of stored files by their content; `None` if no files are stored."""
    if keeper is None or not config.batches.enabled:
        return None
    return InlineFiles(keeper, config.server.body_limit)


def _attach(recorder: RequestRecorder, config: Config, auth: AuthService, redact: Redactor) -> None:
    """Have the ledger know the upstreams' dialects, note when keys of the store are used, and write captured bodies."""
    if config.capture_settings is not None:
        recorder.keep_captures(config.capture_settings, redact)
    recorder.dialects |= {name: upstream.dialect for name, upstream in config.upstreams.items()}
    recorder.used = None if auth.stored is None else auth.stored.used


def _auth_service(config: Config, keeper: StoreService | None, clock: Callable[[], float]) -> AuthService:
    """Return what checks keys: those of the configuration and, if they are accepted, those of the store."""
    own = any(upstream.auth == "client" for upstream in config.upstreams.values())
    if not config.keys.store or keeper is None:
        return AuthService(build_keyring(config), clock, clients_sign_in=own)
    from xenoglot.gateway.auth.stored_keys import StoredKeys  # noqa: PLC0415  most gateways have none

    stored = StoredKeys(keeper, config.tenants)
    return AuthService(build_keyring(config, stored), clock, stored, clients_sign_in=own)


def _price_list(config: Config) -> PriceList | None:
    """Return the price list; `None` if there are neither a ledger nor prices."""
    if config.ledger_settings is None and not config.prices:
        return None
    from xenoglot.gateway.ledger.request_cost import PriceList  # noqa: PLC0415  most gateways have no prices

    return PriceList(config, time.time)


def _tracing(config: Config, telemetry: Telemetry, redact: Callable[[str], str]) -> RequestTracing:
    """Return what traces requests, and knows the upstreams of `config`."""
    from xenoglot.gateway.telemetry.traced_upstreams import tracing  # noqa: PLC0415  an extra

    return tracing(config, telemetry, redact)


def _admission(budgets: BudgetService) -> RequestBudgets:
    """Return what has requests reserve what they may cost."""
    from xenoglot.gateway.ledger.request_budget import BudgetAdmission  # noqa: PLC0415  most gateways have no ledger

    return BudgetAdmission(budgets)


def _embedding_plans(config: Config, backends: Mapping[str, Backend]) -> tuple[RoutePlan, ...]:
    """Return the plan for the embedded model that makes embeddings, where it exists: its name leads to it."""
    found = backends.get(EMBEDDING)
    return () if found is None else (single(found.name, EMBEDDING, on_loss=config.on_loss),)
