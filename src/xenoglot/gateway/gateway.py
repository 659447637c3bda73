"""The gateway: what answers, who may ask, and the outermost shell around each request."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.redaction import Redactor
from xenoglot.codec.invalid_request import invalid
from xenoglot.errors import FailureError, WireError, whereabouts
from xenoglot.gateway import endpoint
from xenoglot.gateway.admit import is_let_in_again
from xenoglot.gateway.application import Seen
from xenoglot.gateway.embedded import EMBEDDING
from xenoglot.gateway.entry import Entry
from xenoglot.gateway.exchange import BodyBrokenError, BodyTooLargeError, ClientGoneError
from xenoglot.gateway.health import Ward
from xenoglot.gateway.hold import Dispatcher
from xenoglot.gateway.keeper import OFF as OFF_HERE
from xenoglot.gateway.keeper import Keeper
from xenoglot.gateway.keys import EVERYBODY, keyring
from xenoglot.gateway.lag import Lag
from xenoglot.gateway.limits import MemoryLimiter
from xenoglot.gateway.limits_scopes import Scopes
from xenoglot.gateway.metrics import Tally, exposition, told_of_lag
from xenoglot.gateway.native_refusal import refuse
from xenoglot.gateway.observe import Observer
from xenoglot.gateway.passing import is_worth_waiting, passage
from xenoglot.gateway.printable import for_log
from xenoglot.gateway.respond import break_off, fail
from xenoglot.gateway.routes import Routes
from xenoglot.gateway.routing import Router, plans, single
from xenoglot.gateway.ways import Ways
from xenoglot.model.failure import Failure
from xenoglot.policy.throttle import Throttle
from xenoglot.store.memory import Memory
from xenoglot.store.place import OFF
from xenoglot.store.records import Retention

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.application import PushExchange
    from xenoglot.gateway.batches_runner import Runner
    from xenoglot.gateway.config import Config
    from xenoglot.gateway.connection_settings import Connections
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.keys import Client
    from xenoglot.gateway.limits import Limiter
    from xenoglot.gateway.native_head import Head, Refused
    from xenoglot.gateway.observe import Record
    from xenoglot.gateway.passage import Passage
    from xenoglot.gateway.routing import Plan, Route
    from xenoglot.model.limits import RateLimits
    from xenoglot.store.store import Store

INTERNAL = Failure(
    kind="internal", message="internal error: the gateway failed; its log tells more under the request's id"
)
STOPPING = Failure(kind="overloaded", message="service unavailable: the gateway is being stopped", retry_after=5.0)
CANCELLED = Failure(kind="cancelled", message="the client left")

TAKE_UP_SECONDS = 1.0
"""After a start, before the store is asked for batches: clients come first."""

DAY = 86_400.0
OK = 200
UNAVAILABLE = 503
LAST_WORD_SECONDS = 1.0
"""How long a client that does not read may keep the news that we stop waiting."""

_logger = logging.getLogger("xenoglot.gateway")


class Gateway:
    """Answers exchanges. `backends` are by the names that `config` has for them; `clock` gives seconds.

    What clients want kept goes into `store`, without one into memory, unless the configuration says that nothing is.
    """

    def __init__(  # noqa: PLR0913  what it is made of
        self,
        config: Config,
        backends: Mapping[str, Backend],
        *,
        embedded_model: str | None = None,
        store: Store | None = None,
        limiter: Limiter | None = None,
        keeper: Keeper | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.config = config
        self.backends = backends
        self.router = Router((*plans(config, embedded_model), *_embedding_plans(config, backends)))
        self.keyring = keyring(config)
        self.throttle = Throttle()
        self.leave = object()
        """What tells entries that this gateway found from those of others."""
        self.routes = Routes(endpoint.endpoints(), endpoint.mirrors())
        self.redact = Redactor(piece for secret in config.secrets for piece in (secret, *secret.split()))
        self.keeper = None if config.store.url == OFF else keeper or keeper_of(config, store or Memory())
        self.limiter = limiter or MemoryLimiter()
        self.scopes = Scopes(config)
        self.dispatcher = Dispatcher(ward=Ward(config), limiter=self.limiter, scopes=self.scopes)
        self.ways = Ways(self)
        self.tally = Tally()
        self.lag = Lag()
        self.observer = Observer(clock, all_losses=config.server.log_losses == "all", count=self.tally.add)
        self._runner: Runner | None = None
        """What has batches answered, once there are any."""
        self._tasks: set[asyncio.Task[object] | None] = set()
        self.passages: set[Passage] = set()
        """The requests that are served without a task."""
        self._all_passed = asyncio.Event()
        self.draining = False
        """Whether no new clients are let in; what is being answered still is."""
        self._stopping = False
        self._closed = False
        self.merge: Callable[[bytes], bytes] | None = None
        """What puts our numbers together with those of other workers, where there are any."""

    def runner(self) -> Runner:
        """Return what has batches answered.

        Raises:
            FailureError: nothing is kept here.
        """
        if self._runner is None:
            from xenoglot.gateway.batches_runner import Runner  # noqa: PLC0415  most gateways never have a batch

            if self.keeper is None:
                raise FailureError(OFF_HERE)
            self._runner = Runner(self, self.keeper)
        return self._runner

    def take_up(self) -> None:
        """Go on with batches that were begun before, if there may be any; a store that was never made stays so."""
        if self.keeper is not None and self.config.batches.enabled and self.keeper.store.has_past():
            asyncio.get_running_loop().call_later(TAKE_UP_SECONDS, self._take_up)

    def _take_up(self) -> None:
        if not self.draining and not self._closed:
            self.runner().begin()

    def begin_nothing(self) -> None:
        """Leave batches to the next gateway."""
        if self._runner is not None:
            self._runner.stop()

    def plan(self, model: str, tag: str = "", *, client: Client = EVERYBODY) -> Plan:
        """Return who may answer to `model`; with and without `tag` behind it the name means the same to the client.

        Raises:
            FailureError: nobody does, or not to this `client`, which learns no difference.
        """
        plan = self.router.plan(model)
        bare = model.removesuffix(tag)
        if not client.allows(model) and not client.allows(bare):
            raise FailureError(self.unknown_model(model))
        if bare != model and model not in self.router.names:
            untagged = self.router.plan(bare)
            if untagged is not None and (bare in self.router.names or not self._knows(tag, untagged.route)):
                plan = untagged
        if plan is None:
            raise FailureError(self.unknown_model(model))
        return plan

    def route(self, model: str, tag: str = "", *, client: Client = EVERYBODY) -> Route:
        """Return who answers to `model` first.

        Raises:
            FailureError: as above.
        """
        return self.plan(model, tag, client=client).route

    def embedding_plan(self, model: str, tag: str = "", *, client: Client = EVERYBODY) -> Plan:
        """Return who may make embeddings for `model`; where any name will do, the model whose trade that is.

        Raises:
            FailureError: nobody answers to the name.
        """
        plan = self.plan(model, tag, client=client)
        if not plan.route.substituted or EMBEDDING not in self.backends:
            return plan
        route = replace(plan.route, backend=EMBEDDING, model=self.backends[EMBEDDING].name)
        return replace(plan, routes=(route,))

    def _knows(self, tag: str, route: Route) -> bool:
        upstream = self.config.upstreams.get(route.backend)
        return upstream is not None and dialects.get(upstream.dialect).default_tag == tag

    def backend(self, name: str) -> Backend:
        """Return the backend that the configuration calls `name`."""
        return self.backends[name]

    @staticmethod
    def unknown_model(model: str) -> Failure:
        """Return the failure of a request for a model that is not here."""
        message = f"the model `{for_log(model)}` does not exist here; GET /v1/models says which do"
        return Failure(kind="not_found", message=message, code="model_not_found", param="$.model")

    @property
    def connections(self) -> Connections:
        """Limits and timeouts of the connections of clients."""
        return self.config.server.connections

    def awaits_body(self, exchange: PushExchange, head: Head) -> bool:
        """Return whether a request is looked at when all of it is here: it may need no task then."""
        return is_worth_waiting(exchange, head, self)

    def start(self, exchange: PushExchange) -> bool:
        """Serve a request without a task, if it may enter and its target can be called at once."""
        entry = endpoint.let_in(exchange, self, exchange.seen)
        found = None if entry is None else passage(exchange, entry, self)
        if found is None:
            return False
        found.start()
        return True

    def refuse(self, exchange: Exchange, refused: Refused) -> Awaitable[None]:
        """Answer bytes that are no valid request, or a request for which there is no room."""
        return refuse(exchange, refused, self.routes, self.observer)

    def abandon(self) -> None:
        """Abort what is served without a task, as if its clients had disconnected."""
        for served in tuple(self.passages):
            served.left()

    async def handle(self, exchange: Exchange, seen: Seen | None = None, since: float | None = None) -> None:
        """Answer one request, whatever happens, and write its line to the log; `seen` is what is known of its head.

        It came at the time `since`, or now.
        """
        record = self.observer.record(exchange.method, since)
        entry = None if seen is None else seen.entry
        if isinstance(entry, Entry) and is_let_in_again(entry, self):
            await self.serve(exchange, entry.dialect, record, endpoint.enter(entry, exchange, self, record))
            return
        found, dialect = endpoint.find(exchange.path, exchange.headers, self)
        exchange.variables = found.variables
        work = endpoint.serve(exchange, found.rows, dialect, self, record, seen or Seen())
        await self.serve(exchange, dialect, record, work)

    async def serve(self, exchange: Exchange, dialect: Dialect, record: Record, work: Awaitable[None]) -> None:
        """Do what answers a request, own up to whatever comes of it, and write the request's line to the log."""
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  told below
            await self._fail(error, exchange, dialect, record)
        finally:
            self._tasks.discard(task)
            self.observer.write(record)

    def passed(self, passage: Passage) -> None:
        """Note that a request is served without a task no longer."""
        self.passages.discard(passage)
        if not self.passages:
            self._all_passed.set()

    def metrics(self) -> bytes:
        """Return what Prometheus is told."""
        own = self.own_metrics()
        return own if self.merge is None else self.merge(own)

    def own_metrics(self) -> bytes:
        """Return what this process has to tell of itself."""
        targets = self.dispatcher.ward.measures(self.dispatcher.clock())
        told = exposition(
            self.tally, len(self._tasks) + len(self.passages), self.backends, self.limiter.measures(), targets
        )
        return told + told_of_lag(self.lag)

    def stop_now(self) -> None:
        """Break off what is being served: streams with an error event, everything else with a status."""
        self._stopping = True
        for task in self._tasks:
            if task is not None:
                task.cancel()
        for one in tuple(self.passages):
            one.stop()
        if self._runner is not None:
            self._runner.break_off()

    def inherit(self, other: Gateway) -> None:
        """Go on counting, and remembering who answers and who guesses keys, where `other` was."""
        self.tally, self.lag = other.tally, other.lag
        self.observer.inherit(other.observer)
        self.throttle = other.throttle
        self.dispatcher.ward.inherit(other.dispatcher.ward)

    async def over(self) -> None:
        """Wait until nothing is under way, work in the background included."""
        while self._tasks or self.passages:
            if tasks := [task for task in self._tasks if task is not None]:
                await asyncio.wait(tasks)
            if self.passages:
                self._all_passed.clear()
                await self._all_passed.wait()
        if self._runner is not None:
            await self._runner.over()
        for job in () if self.keeper is None else tuple(self.keeper.jobs.values()):  # the last request's included
            await job.wait()

    async def let_go_of_batches(self) -> None:
        """Have nothing more of a batch answered; what is under way has as long as the drain takes."""
        self._closed = True
        if self._runner is not None:
            await self._runner.aclose()

    async def aclose(self) -> None:
        """Let go of all backends, and of the store."""
        await self.let_go_of_batches()
        if self.keeper is not None:
            await self.keeper.aclose()
        for backend in self.backends.values():
            await backend.aclose()

    async def _fail(self, error: BaseException, exchange: Exchange, dialect: Dialect, record: Record) -> None:
        """Answer a request that `error` has ended; be broken off; own up to a bug."""
        try:
            await self._tell(error, exchange, dialect, record)
        except asyncio.CancelledError:
            await self._leave(exchange, dialect, record)
        except Exception as bug:  # noqa: BLE001  the outermost shell: nothing gets past it, and nobody learns more than its id
            _logger.error("request %s failed: %s", record.request_id, whereabouts(bug))  # noqa: TRY400  no texts
            await self._give_up(exchange, dialect, INTERNAL, record)

    async def _tell(self, error: BaseException, exchange: Exchange, dialect: Dialect, record: Record) -> None:
        """Turn what was raised into an answer; what is none is raised again."""
        match error:
            case FailureError():
                await self._give_up(exchange, dialect, error.failure, record, error.limits)
            case WireError():
                await self._give_up(exchange, dialect, invalid(error), record)
            case BodyTooLargeError():
                await self._give_up(exchange, dialect, Failure(kind="too_large", message=str(error)), record)
            case BodyBrokenError():
                broken = Failure(kind="invalid_request", message=str(error))
                failure = STOPPING if error.status == UNAVAILABLE else broken
                await self._give_up(exchange, dialect, failure, record, status=error.status)
            case ClientGoneError():
                record.failed(CANCELLED)
            case _:
                raise error

    async def _give_up(  # noqa: PLR0913, PLR0917  the parts of a failure
        self,
        exchange: Exchange,
        dialect: Dialect,
        failure: Failure,
        record: Record,
        limits: RateLimits | None = None,
        status: int | None = None,
    ) -> None:
        """Write the failure, or end what was begun as nothing whole ends."""
        if record.status is None:
            more = () if limits is None else dialect.encode_limits(limits, time.time())
            await fail(exchange, dialect, failure, record, status=status, more=more)
        else:
            record.failed(failure)
            exchange.abort()

    async def _leave(self, exchange: Exchange, dialect: Dialect, record: Record) -> None:
        """Be cancelled: by the client, who hears nothing any more, or because we stop, which it is told."""
        if not self._stopping:
            record.failed(CANCELLED)
            raise asyncio.CancelledError
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                if record.stream and record.status == OK:
                    await break_off(exchange, dialect, STOPPING, record)
                else:
                    await self._give_up(exchange, dialect, STOPPING, record)
        except TimeoutError:
            exchange.abort()


def keeper_of(config: Config, store: Store) -> Keeper:
    """Return what keeps things in `store` for as long, and as many, as the configuration says."""
    return Keeper(store, Retention(max_age=config.store.max_age_days * DAY, max_bytes=config.store.max_bytes))


def _embedding_plans(config: Config, backends: Mapping[str, Backend]) -> tuple[Plan, ...]:
    """Return the plan for the embedded model that makes embeddings, where it is there: its name leads to it."""
    found = backends.get(EMBEDDING)
    return () if found is None else (single(found.name, EMBEDDING, on_loss=config.on_loss),)
