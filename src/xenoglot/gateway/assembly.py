"""From the configuration to what runs: backends made, and let go again."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from xenoglot.backends.remote import Remote
from xenoglot.backends.transport import Transport
from xenoglot.codec import dialect as dialects
from xenoglot.engine import weights
from xenoglot.engine.backend import Engine
from xenoglot.engine.child import Settings
from xenoglot.engine.embedding import EmbeddingEngine
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.embedded import EMBEDDED, EMBEDDING, MODELS, Embedded, backend_of
from xenoglot.gateway.gateway import Gateway
from xenoglot.gateway.schema import join
from xenoglot.store.place import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.backends.backend import Backend
    from xenoglot.backends.transport_bounds import Deadlines
    from xenoglot.gateway.config import Config
    from xenoglot.gateway.embedded import EmbeddedModel
    from xenoglot.gateway.settings import Upstream


@asynccontextmanager
async def assembled(config: Config, *, ready: bool = True) -> AsyncGenerator[Gateway]:
    """Give a gateway with all its backends, and let go of them at the end.

    Each upstream has connections of its own: one that is slow holds up no other. The embedded model is loaded now if
    it has to be `ready`, else when it is first asked.

    Raises:
        ConfigurationError: a backend cannot be made.
        EngineError: the embedded model cannot be had; the message says what to do.
    """
    store = open_store(config.store_url, os.environ)
    async with AsyncExitStack() as stack:
        backends: dict[str, Backend] = {}
        for name, upstream in config.upstreams.items():
            transport = Transport(deadlines=endless(upstream.deadlines))
            stack.push_async_callback(transport.aclose)
            backends[name] = remote(name, upstream, transport, config)
        model = None
        if config.has_embedded:
            transport = Transport()
            stack.push_async_callback(transport.aclose)
            engine = await embedded(config.embedded or Embedded(), transport)
            stack.push_async_callback(engine.aclose)
            if ready:
                await engine.start()
            backends[EMBEDDED], model = engine, engine.name
            maker = embedding(config.embedded or Embedded(), transport)
            stack.push_async_callback(maker.aclose)
            for name, settings in config.embedded.models.items() if config.embedded else ():
                if name in {engine.name, maker.name}:
                    raise ConfigurationError(f"{join(MODELS, name)}: found the name of another embedded model")
                own = Transport()
                stack.push_async_callback(own.aclose)
                backends[backend_of(name)] = other = beside(name, settings, own)
                stack.push_async_callback(other.aclose)
                if ready and settings.ready:
                    await other.start()
            backends[EMBEDDING] = maker
        gateway = Gateway(config, backends, embedded_model=model, store=store)
        if gateway.keeper is not None:
            stack.push_async_callback(gateway.keeper.aclose)
        yield gateway


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
    return Remote(
        name,
        dialects.get(upstream.dialect),
        upstream.base_url,
        transport=transport,
        key=None if upstream.key_env is None else config.secrets[upstream.key_env],
        headers=upstream.headers,
        target=upstream.target,
    )


def endless(deadlines: Deadlines) -> Deadlines:
    """Return the deadlines, those that TOML writes as `inf` being none at all."""
    return replace(deadlines, **{name: None for name, value in asdict(deadlines).items() if value and isinf(value)})
