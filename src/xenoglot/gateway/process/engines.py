"""The embedded models: created from the configuration, and closed again."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from xenoglot.backends.http.client import Transport
from xenoglot.engine.backend import Engine
from xenoglot.engine.embedding import EmbeddingEngine
from xenoglot.engine.server import weights
from xenoglot.engine.server.server_process import Settings, require_runtime
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.local_models import EMBEDDED, EMBEDDING, MODELS, Embedded, backend_of
from xenoglot.gateway.config.schema import join

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.local_models import EmbeddedModel
    from xenoglot.gateway.process.shared_resources import SharedResources

USUAL_NAME = weights.SMOLLM2.name
"""The name of the embedded model."""

M = TypeVar("M", Engine, EmbeddingEngine)


@asynccontextmanager
async def open_engines(
    settings: Embedded, shelf: SharedResources, *, ready: bool, download: bool = True
) -> AsyncGenerator[dict[str, Backend]]:
    """Give the embedded models by the names of their backends; without `download`, missing weights are not fetched.

    Raises:
        ConfigurationError: two of them would have one name, or a template cannot be read.
        EngineError: a model cannot be had; the message has what to do.
    """
    usual = replace(settings, models={}, embedding=None)
    maker = Embedded(embedding=settings.embedding, queue=settings.queue, queue_seconds=settings.queue_seconds)
    async with AsyncExitStack() as stack:
        make_usual = partial(_engine, usual, download=download)
        engine = await stack.enter_async_context(shelf.hold((EMBEDDED, _encoded(usual)), make_usual))
        if ready:
            await engine.start()
        backends: dict[str, Backend] = {EMBEDDED: engine}
        embeds = await stack.enter_async_context(
            shelf.hold((EMBEDDING, _encoded(maker)), lambda: _made(partial(build_embedding_engine, settings)))
        )
        for name, one in settings.models.items():
            if name in {engine.name, embeds.name}:
                raise ConfigurationError(f"{join(MODELS, name)}: found the name of another embedded model")
            make = partial(_made, partial(build_extra_engine, name, one))
            other: Engine = await stack.enter_async_context(shelf.hold((name, _encoded(one)), make))
            backends[backend_of(name)] = other
            if ready and one.ready:
                await other.start()
        backends[EMBEDDING] = embeds
        yield backends


@asynccontextmanager
async def _engine(settings: Embedded, *, download: bool) -> AsyncGenerator[Engine]:
    async with (
        aclosing(Transport()) as transport,
        aclosing(await build_engine(settings, transport, download=download)) as engine,
    ):
        yield engine


@asynccontextmanager
async def _made(make: Callable[[Transport], M]) -> AsyncGenerator[M]:
    async with aclosing(Transport()) as transport, aclosing(make(transport)) as made:
        yield made


def _encoded(settings: Embedded | EmbeddedModel) -> bytes:
    """Return what is the same where the settings are."""
    return msgspec.json.encode(settings)


async def build_engine(settings: Embedded, transport: Transport, *, download: bool = True) -> Engine:
    """Return the backend of the embedded model.

    Missing weights are fetched; without `download` the backend cannot answer, it only has the model's name.
    """
    found = weights.locate() if settings.gguf is None else weights.from_path(settings.gguf)
    if found is None and not download:
        found = weights.expected()
    if found is None:
        require_runtime()
        found = await asyncio.to_thread(weights.fetch, progress=_tell)
    return Engine(found, engine_settings(settings, "embedded"), transport=transport, name=settings.name)


def build_extra_engine(name: str, settings: EmbeddedModel, transport: Transport) -> Engine:
    """Return the backend of another embedded model.

    Raises:
        EngineError: the file that is named is none.
    """
    place = f"embedded.models.{name}"
    found = weights.from_path(settings.gguf, f"{place}.gguf")
    return Engine(found, engine_settings(settings, place), transport=transport, name=name)


def engine_settings(settings: Embedded | EmbeddedModel, place: str) -> Settings:
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


def build_embedding_engine(settings: Embedded, transport: Transport) -> EmbeddingEngine:
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
