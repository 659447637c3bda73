"""From the configuration to what runs: backends made, and let go again."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import ExtraDialect, Remote
from xenoglot.backends.remote.operator_messages import UNSET_KEY
from xenoglot.backends.remote.sign_in.settings import is_sign_in
from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.gateway.app import Gateway, keeper_of
from xenoglot.gateway.auth.file_keys import build_keyring
from xenoglot.gateway.cache.memory_store import CacheStore, MemoryStore
from xenoglot.gateway.config.from_flags import FLAGS_UPSTREAM
from xenoglot.gateway.config.local_models import EMBEDDED, Embedded
from xenoglot.gateway.config.provider_defaults import dialect_of, targets_of, upstream_of_endpoint
from xenoglot.gateway.config.proxies import proxy_of
from xenoglot.gateway.limits.limiter import MemoryLimiter
from xenoglot.gateway.media.inline_images import fetching, inlined
from xenoglot.gateway.process.shared_resources import SharedResources
from xenoglot.gateway.routing.load_reports import LoadReader, reading
from xenoglot.gateway.upstream.interceptors import interceptors_of
from xenoglot.providers.provider import authorizer
from xenoglot.store.location import OFF, open_store
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.backends.backend import Backend
    from xenoglot.backends.http.timeouts import Deadlines
    from xenoglot.backends.redaction import Redactor
    from xenoglot.backends.remote.sign_in.strategy import SignIn
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.ledger.budget_service import BudgetService
    from xenoglot.gateway.ledger.recorder import RequestRecorder
    from xenoglot.gateway.limits.limiter import Limiter
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.gateway.telemetry.exporters import Telemetry
    from xenoglot.gateway.tool_execution.service import ToolExecution


class OpenedUpstreams(NamedTuple):
    """What upstreams have open: the transport of each by name, and what signs the requests of some in."""

    transports: list[tuple[str, Transport]]
    sign_ins: list[SignIn[Any]]

    def redacted_by(self, redactor: Redactor) -> None:
        """Have the credentials of the sign-ins removed from texts by `redactor`."""
        for sign_in in self.sign_ins:
            sign_in.redacted_by(redactor)


@asynccontextmanager
async def build_gateway(
    config: Config,
    *,
    ready: bool = True,
    download: bool = True,
    limiter: Limiter | None = None,
    shelf: SharedResources | None = None,
) -> AsyncGenerator[Gateway]:
    """Give a gateway with all its backends, and let go of them at the end.

    Each upstream has connections of its own: one that is slow holds up no other. The embedded model is loaded now if
    it has to be `ready`, else when it is first asked. Without `download` missing weights are not fetched, which
    is enough for a list of models. A given `limiter` is closed by its owner. What
    gateways that are configured alike can share is on the `shelf`.

    Raises:
        ConfigurationError: a backend cannot be made.
        EngineError: the embedded model cannot be had; the message has what to do.
    """
    config = with_private_caches(config)
    shelf = shelf or SharedResources()
    async with AsyncExitStack() as stack:
        opened = OpenedUpstreams([], [])
        backends = await _remote_backends(config, stack, opened)
        model = None
        if config.has_embedded:
            from xenoglot.gateway.process.engines import open_engines  # noqa: PLC0415  most gateways have none, and it is a lot

            backends |= await stack.enter_async_context(
                open_engines(config.embedded or Embedded(), shelf, ready=ready, download=download)
            )
            model = backends[EMBEDDED].name
        if limiter is None:
            counted = ("limiter", config.limits.store, config.limits_url)  # by whom; how many is said with each request
            limiter = await stack.enter_async_context(shelf.hold(counted, lambda: aclosing(build_limiter(config))))
        key = ("store", msgspec.json.encode(config.store), config.store_url)
        keeper = await stack.enter_async_context(shelf.hold(key, lambda: open_keeper(config)))
        if isinstance(limiter, MemoryLimiter) and keeper is not None and has_limits(config):
            name = gateway_name(config)
            kept = ("limit history", name, key)
            await stack.enter_async_context(shelf.hold(kept, lambda: limit_history(limiter, keeper, name)))
        recorder = await stack.enter_async_context(
            shelf.hold(("ledger", config.ledger, key), lambda: _recorder(config, keeper))
        )
        telemetry = await stack.enter_async_context(
            shelf.hold(("telemetry", config.telemetry, config.telemetry_headers), lambda: _telemetry(config))
        )
        counted_by = ("budgets", config.ledger, config.budgets, key)
        budgets = await stack.enter_async_context(shelf.hold(counted_by, lambda: _budgets(config, keeper)))
        cache = await stack.enter_async_context(
            shelf.hold(("answers", config.cache, config.cache_url), lambda: _cache_store(config))
        )
        interceptors = await asyncio.to_thread(interceptors_of, config, cache)
        if interceptors is not None:
            stack.push_async_callback(interceptors.aclose)
        execution = await stack.enter_async_context(_tool_execution(config))
        gateway = Gateway(
            config,
            backends,
            embedded_model=model,
            keeper=keeper,
            limiter=limiter,
            recorder=recorder,
            telemetry=telemetry,
            budgets=budgets,
            interceptors=interceptors,
            tool_execution=execution,
        )
        opened.redacted_by(gateway.redact)
        await _read_stored(gateway, stack)
        await stack.enter_async_context(reading(_load_readers(gateway, opened.transports)))
        stack.push_async_callback(gateway.let_go_of_keys)
        stack.push_async_callback(gateway.let_go_of_batches)
        yield gateway


async def _read_stored(gateway: Gateway, stack: AsyncExitStack) -> None:
    """Read what the store has of tenants and prices, and prices again from time to time."""
    if gateway.auth.stored is not None:
        await gateway.auth.stored.start()
    if gateway.prices is not None:
        await asyncio.to_thread(gateway.prices.load)
        if gateway.keeper is not None:
            from xenoglot.gateway.ledger.stored_prices import refreshing  # noqa: PLC0415  most gateways have no prices

            await stack.enter_async_context(refreshing(gateway.prices, gateway.keeper))


def _load_readers(gateway: Gateway, transports: list[tuple[str, Transport]]) -> list[LoadReader]:
    """Return what reads the load of the upstreams for which that is configured."""
    readers = []
    for name, transport in transports:
        upstream = gateway.config.upstreams[name]
        if upstream.load_metrics is not None:
            report = partial(gateway.dispatcher.ward.report, name)
            readers.append(LoadReader(name, upstream.base_url, upstream.load_metrics, transport, report))
    return readers


async def _remote_backends(config: Config, stack: AsyncExitStack, opened: OpenedUpstreams) -> dict[str, Backend]:
    """Return the backends of the upstreams by name; `stack` closes what is added to `opened`."""
    backends: dict[str, Backend] = {}
    fetcher = await stack.enter_async_context(fetching(config.fetch))
    for name, upstream in config.upstreams.items():
        proxy = proxy_of(upstream, config.secrets, os.environ)
        transport = Transport(deadlines=without_deadline(upstream.deadlines), proxy=proxy)
        stack.push_async_callback(transport.aclose)
        opened.transports.append((name, transport))
        sign_in = await _sign_in(name, upstream, config, stack)
        opened.sign_ins.extend(() if sign_in is None else (sign_in,))
        backends[name] = inlined(build_remote(name, upstream, transport, config, sign_in), fetcher)
    return backends


async def _sign_in(name: str, upstream: UpstreamSettings, config: Config, stack: AsyncExitStack) -> SignIn[Any] | None:
    """Return what signs the requests of an upstream in, begun; `None` if they have a key. `stack` closes it."""
    if not is_sign_in(upstream.auth):
        return None
    from xenoglot.backends.remote.sign_in.open_sign_in import SignInRequest, open_sign_in  # noqa: PLC0415  most upstreams have a key

    asked = SignInRequest(
        name,
        upstream.auth or "",
        upstream.sign_in,
        base_url=upstream.base_url,
        secret=lambda variable: config.secrets[variable],
        environ=os.environ,
    )
    sign_in = await asyncio.to_thread(open_sign_in, asked)  # it may import a large library
    if sign_in is not None:
        stack.push_async_callback(sign_in.aclose)
        sign_in.start()
    return sign_in


def has_limits(config: Config) -> bool:
    """Whether anything is limited by the configuration, or may be by keys of the store."""
    settings = (
        config.keys.limits,
        *(one.limits for one in config.keys.named.values()),
        *(one.limits for one in config.tenants.values()),
        *(one.limits for one in config.upstreams.values()),
        *(one.limits for one in config.models),
    )
    return config.keys.store or any(limits is not None for limits in settings)


def gateway_name(config: Config) -> str:
    """Return what a gateway is called in a store that it may share with others: the same after a restart."""
    return f"{socket.gethostname()} {config.server.host}:{config.server.port}"


@asynccontextmanager
async def limit_history(limiter: MemoryLimiter, keeper: StoreService, name: str) -> AsyncGenerator[None]:
    """Have the windows of a limiter survive a restart of the gateway with this name."""
    from xenoglot.gateway.limits.limit_history import LimitHistory  # noqa: PLC0415  most gateways limit nothing

    async with aclosing(LimitHistory(keeper, limiter, name)) as history:
        await history.start()
        yield


@asynccontextmanager
async def _cache_store(config: Config) -> AsyncGenerator[CacheStore | None]:
    settings = config.cache_settings
    if settings is None:
        yield None
        return
    if settings.store == "memory":
        async with aclosing(MemoryStore(settings.max_bytes, time.monotonic)) as memory:
            yield memory
        return
    from xenoglot.gateway.cache.redis_store import RedisStore  # noqa: PLC0415  an extra

    async with aclosing(RedisStore(config.cache_url, time.monotonic)) as server:
        yield server


@asynccontextmanager
async def open_keeper(config: Config) -> AsyncGenerator[StoreService | None]:
    """Give the store of a configuration; `None` if it is off."""
    store = open_store(config.store_url, os.environ)
    if config.store.url == OFF:
        yield None
        return
    async with aclosing(keeper_of(config, store or Memory())) as keeper:
        yield keeper


@asynccontextmanager
async def _recorder(config: Config, keeper: StoreService | None) -> AsyncGenerator[RequestRecorder | None]:
    settings = config.ledger_settings
    if settings is None or keeper is None:
        yield None
        return
    from xenoglot.gateway.ledger.recorder import RequestRecorder  # noqa: PLC0415  most gateways have no ledger

    async with aclosing(RequestRecorder(keeper, settings)) as recorder:
        yield recorder


@asynccontextmanager
async def _telemetry(config: Config) -> AsyncGenerator[Telemetry | None]:
    settings = config.telemetry_settings
    if settings is None:
        yield None
        return
    try:
        from xenoglot.gateway.telemetry.exporters import open_telemetry  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise ConfigurationError(missing_extra("opentelemetry_sdk")) from None
    async with open_telemetry(settings, config.telemetry_headers, os.environ) as telemetry:
        yield telemetry


@asynccontextmanager
async def _tool_execution(config: Config) -> AsyncGenerator[ToolExecution | None]:
    if config.tools is None:
        yield None
        return
    from xenoglot.gateway.tool_execution.service import open_tool_execution  # noqa: PLC0415  most gateways run no tools

    async with open_tool_execution(config.tools, config.secrets) as execution:
        yield execution


@asynccontextmanager
async def _budgets(config: Config, keeper: StoreService | None) -> AsyncGenerator[BudgetService | None]:
    settings = config.ledger_settings
    if settings is None or keeper is None:
        yield None
        return
    from xenoglot.gateway.ledger.budget_service import BudgetService  # noqa: PLC0415  as above

    service = BudgetService(keeper, settings, [one.budget() for one in config.budgets])
    async with aclosing(service):
        await service.start()
        yield service


def with_private_caches(config: Config) -> Config:
    """Return the configuration with the embedded models' memory parted where there are several clients (S10).

    A prompt that begins as another client's did is answered sooner, which reveals what others send.
    """
    if not config.keys.store and not build_keyring(config).several:
        return config
    told = config.embedded or Embedded()
    models = {name: replace(one, share_cache=one.share_cache or False) for name, one in told.models.items()}
    enabled = config.has_embedded
    return replace(
        config, embedded=replace(told, share_cache=told.share_cache or False, models=models, enabled=enabled)
    )


def build_limiter(config: Config) -> Limiter:
    """Return what counts the requests that are limited.

    Raises:
        ConfigurationError: what it needs is not installed.
    """
    if config.limits.store == "memory":
        return MemoryLimiter()
    from xenoglot.gateway.limits.redis import RedisLimiter  # noqa: PLC0415  an extra

    return RedisLimiter(config.limits_url)


def build_remote(
    name: str,
    upstream: UpstreamSettings,
    transport: Transport,
    config: Config,
    sign_in: SignIn[Any] | None = None,
) -> Remote:
    """Return the backend of one upstream."""
    dialect = dialect_of(upstream)
    also: list[ExtraDialect] = []
    for one in upstream.also:
        other = upstream_of_endpoint(upstream, one)
        remote = build_remote(name, other, transport, config, sign_in)
        also.append(ExtraDialect(dialect_of(other), remote, one.models))
    return Remote(
        name,
        dialect,
        upstream.base_url,
        transport=transport,
        keys=config.upstream_keys(upstream),
        headers=upstream.headers,
        target=targets_of(upstream),
        authorize=authorizer(upstream.auth, dialect),
        most_values=config.server.body_values,
        also=also,
        marks_prompts=upstream.cache_marks == "auto",
        trace=upstream.trace_headers,
        key_source=" or ".join(f"${variable}" for variable in upstream.key_names),
        no_key=_no_key(name, upstream),
        sign_in=sign_in,
        client_sign_in=upstream.auth == "client",
    )


def _no_key(name: str, upstream: UpstreamSettings) -> str:
    """Return what to do about a refusal of requests without a key."""
    if is_sign_in(upstream.auth):
        return f'the credential of `auth = "{upstream.auth}"` was refused; may it use the model?'
    return UNSET_KEY if name == FLAGS_UPSTREAM else f"no key was sent; set `key_env` under [upstreams.{name}]"


def without_deadline(deadlines: Deadlines) -> Deadlines:
    """Return the deadlines, those that TOML writes as `inf` being none at all."""
    return replace(deadlines, **{name: None for name, value in asdict(deadlines).items() if value and isinf(value)})
