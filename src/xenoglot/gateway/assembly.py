"""From the configuration to what runs: backends made, and let go again."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from xenoglot.backends.remote import Remote
from xenoglot.backends.transport import Transport
from xenoglot.engine import weights
from xenoglot.engine.backend import Engine
from xenoglot.engine.child import Settings
from xenoglot.engine.embedding import EmbeddingEngine
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.embedded import EMBEDDED, EMBEDDING, MODELS, Embedded, backend_of
from xenoglot.gateway.gateway import Gateway, keeper_of
from xenoglot.gateway.inlining import fetching, inlined
from xenoglot.gateway.keys import keyring
from xenoglot.gateway.limits import MemoryLimiter
from xenoglot.gateway.provided import dialect_of, targets_of
from xenoglot.gateway.schema import join
from xenoglot.gateway.shelf import Shelf
from xenoglot.providers.auth import authorizer
from xenoglot.store.memory import Memory
from xenoglot.store.place import OFF, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from xenoglot.backends.backend import Backend
    from xenoglot.backends.transport_bounds import Deadlines
    from xenoglot.gateway.config import Config
    from xenoglot.gateway.embedded import EmbeddedModel
    from xenoglot.gateway.keeper import Keeper
    from xenoglot.gateway.limits import Limiter
    from xenoglot.gateway.settings import Upstream

M = TypeVar("M", Engine, EmbeddingEngine)


@asynccontextmanager
async def assembled(
    config: Config, *, ready: bool = True, limiter: Limiter | None = None, shelf: Shelf | None = None
) -> AsyncGenerator[Gateway]:
    """Give a gateway with all its backends, and let go of them at the end.

    Each upstream has connections of its own: one that is slow holds up no other. The embedded model is loaded now if
    it has to be `ready`, else when it is first asked. A `limiter` that is given is somebody else's to let go of. What
    gateways that are configured alike can share is on the `shelf`.

    Raises:
        ConfigurationError: a backend cannot be made.
        EngineError: the embedded model cannot be had; the message says what to do.
    """
    config = discreet(config)
    shelf = shelf or Shelf()
    async with AsyncExitStack() as stack:
        backends: dict[str, Backend] = {}
        fetcher = await stack.enter_async_context(fetching(config.fetch))
        for name, upstream in config.upstreams.items():
            transport = Transport(deadlines=endless(upstream.deadlines))
            stack.push_async_callback(transport.aclose)
            backends[name] = inlined(remote(name, upstream, transport, config), fetcher)
        model = None
        if config.has_embedded:
            backends |= await stack.enter_async_context(_models(config.embedded or Embedded(), shelf, ready=ready))
            model = backends[EMBEDDED].name
        if limiter is None:
            counted = ("limiter", config.limits.store, config.limits_url)  # by whom; how many is said with each request
            limiter = await stack.enter_async_context(shelf.hold(counted, lambda: aclosing(limiter_of(config))))
        key = ("store", msgspec.json.encode(config.store), config.store_url)
        keeper = await stack.enter_async_context(shelf.hold(key, lambda: _keeper(config)))
        yield Gateway(config, backends, embedded_model=model, keeper=keeper, limiter=limiter)


@asynccontextmanager
async def _models(settings: Embedded, shelf: Shelf, *, ready: bool) -> AsyncGenerator[dict[str, Backend]]:
    """Give the embedded models by the names of their backends."""
    usual = replace(settings, models={}, embedding=None)
    maker = Embedded(embedding=settings.embedding, queue=settings.queue, queue_seconds=settings.queue_seconds)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(shelf.hold((EMBEDDED, _encoded(usual)), lambda: _engine(usual)))
        if ready:
            await engine.start()
        backends: dict[str, Backend] = {EMBEDDED: engine}
        embeds = await stack.enter_async_context(
            shelf.hold((EMBEDDING, _encoded(maker)), lambda: _made(partial(embedding, settings)))
        )
        for name, one in settings.models.items():
            if name in {engine.name, embeds.name}:
                raise ConfigurationError(f"{join(MODELS, name)}: found the name of another embedded model")
            make = partial(_made, partial(beside, name, one))
            other: Engine = await stack.enter_async_context(shelf.hold((name, _encoded(one)), make))
            backends[backend_of(name)] = other
            if ready and one.ready:
                await other.start()
        backends[EMBEDDING] = embeds
        yield backends


@asynccontextmanager
async def _engine(settings: Embedded) -> AsyncGenerator[Engine]:
    async with aclosing(Transport()) as transport, aclosing(await embedded(settings, transport)) as engine:
        yield engine


@asynccontextmanager
async def _made(make: Callable[[Transport], M]) -> AsyncGenerator[M]:
    async with aclosing(Transport()) as transport, aclosing(make(transport)) as made:
        yield made


@asynccontextmanager
async def _keeper(config: Config) -> AsyncGenerator[Keeper | None]:
    store = open_store(config.store_url, os.environ)
    if config.store.url == OFF:
        yield None
        return
    async with aclosing(keeper_of(config, store or Memory())) as keeper:
        yield keeper


def _encoded(settings: Embedded | EmbeddedModel) -> bytes:
    """Return what is the same where the settings are."""
    return msgspec.json.encode(settings)


def discreet(config: Config) -> Config:
    """Return the configuration with the embedded models' memory parted where there are several clients (S10).

    A prompt that begins as another client's did is answered sooner, which tells what others ask.
    """
    if not keyring(config).several:
        return config
    told = config.embedded or Embedded()
    models = {name: replace(one, share_cache=one.share_cache or False) for name, one in told.models.items()}
    enabled = config.has_embedded
    return replace(
        config, embedded=replace(told, share_cache=told.share_cache or False, models=models, enabled=enabled)
    )


def limiter_of(config: Config) -> Limiter:
    """Return what counts the requests that are limited.

    Raises:
        ConfigurationError: what it needs is not installed.
    """
    if config.limits.store == "memory":
        return MemoryLimiter()
    from xenoglot.gateway.limits_redis import RedisLimiter  # noqa: PLC0415  an extra

    return RedisLimiter(config.limits_url)


async def embedded(settings: Embedded, transport: Transport) -> Engine:
    """Return the backend of the embedded model, its weights fetched where this machine has none yet."""
    found = weights.locate() if settings.gguf is None else weights.from_path(settings.gguf)
    if found is None:
        found = await asyncio.to_thread(weights.fetch, progress=_tell)
    return Engine(found, shape_of(settings, "embedded"), transport=transport, name=settings.name)


def beside(name: str, settings: EmbeddedModel, transport: Transport) -> Engine:
    """Return the backend of another embedded model.

    Raises:
        EngineError: the file that is named is none.
    """
    place = f"embedded.models.{name}"
    found = weights.from_path(settings.gguf, f"{place}.gguf")
    return Engine(found, shape_of(settings, place), transport=transport, name=name)


def shape_of(settings: Embedded | EmbeddedModel, place: str) -> Settings:
    """Return the shape of an engine.

    Raises:
        ConfigurationError: its chat template cannot be read; `place` is the table that names it.
    """
    template = ""
    if settings.chat_template is not None:
        try:
            template = Path(settings.chat_template).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            message = f"{place}.chat_template: found `{settings.chat_template}`; expected a file of UTF-8 text"
            raise ConfigurationError(message) from None
    return Settings(
        slots=settings.slots,
        context=settings.context,
        queue=settings.queue,
        queue_seconds=settings.queue_seconds,
        template=template,
        syntax=settings.text_syntax,
        remembers=settings.share_cache is not False,
    )


def embedding(settings: Embedded, transport: Transport) -> EmbeddingEngine:
    """Return the backend of the model for embeddings; its weights are fetched when it is first asked.

    Raises:
        EngineError: the file that is named is none.
    """
    shape = Settings(queue=settings.queue, queue_seconds=settings.queue_seconds, pooling="model")
    if settings.embedding is None:
        return EmbeddingEngine(weights.MINILM.name, lambda: weights.fetch(weights.MINILM), shape, transport=transport)
    found = weights.from_path(settings.embedding, "embedded.embedding")
    return EmbeddingEngine(found.name, lambda: found, shape, transport=transport)


def _tell(progress: str) -> None:
    sys.stderr.write(f"{progress}\n")


def remote(name: str, upstream: Upstream, transport: Transport, config: Config) -> Remote:
    """Return the backend of one upstream."""
    dialect = dialect_of(upstream)
    return Remote(
        name,
        dialect,
        upstream.base_url,
        transport=transport,
        keys=config.upstream_keys(upstream),
        headers=upstream.headers,
        target=targets_of(upstream),
        authorize=authorizer(upstream.auth, dialect),
    )


def endless(deadlines: Deadlines) -> Deadlines:
    """Return the deadlines, those that TOML writes as `inf` being none at all."""
    return replace(deadlines, **{name: None for name, value in asdict(deadlines).items() if value and isinf(value)})
