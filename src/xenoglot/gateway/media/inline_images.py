"""Backend wrapper that replaces image URLs by the fetched data, for upstreams that accept only data."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.gateway.media.fetch_image import ImageFetcher
from xenoglot.model.content import File, Image, Nested, Remote, ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.backends.operation import OperationHandler
    from xenoglot.backends.remote.backend import Remote as Server
    from xenoglot.codec.features.operation import AnyOperation
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.config.settings import FetchSettings
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.content import Inline, Part
    from xenoglot.model.request import Message


@asynccontextmanager
async def fetching(settings: FetchSettings) -> AsyncGenerator[ImageFetcher | None]:
    """Give what fetches, and let go of it at the end; `None` where nothing is to be fetched."""
    if not settings.enabled:
        yield None
        return
    fetcher = ImageFetcher(settings)
    try:
        yield fetcher
    finally:
        await fetcher.aclose()


def inlined(server: Server, fetcher: ImageFetcher | None) -> Backend:
    """Return the server with images fetched for it; itself where nothing is fetched."""
    return server if fetcher is None else InlineImageBackend(server, fetcher)


class InlineImageBackend:
    """Answers as the server does, and lets it see what it would not fetch."""

    def __init__(self, server: Server, fetcher: ImageFetcher) -> None:
        self.name = server.name
        self._server = server
        self._fetcher = fetcher

    async def answer(self, call: Call) -> Answer:
        """Answer, with the images fetched.

        Raises:
            FailureError: as the server does, and where an image cannot be fetched.
        """
        return await self._server.answer(await self._inlined(call))

    async def count(self, call: Call) -> int | None:
        """Count, with the images fetched."""
        return await self._server.count(await self._inlined(call))

    def handler(self, operation: AnyOperation) -> OperationHandler | None:
        """Return the server's handler: operations have no images to fetch."""
        return self._server.handler(operation)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the server's list of models."""
        return await self._server.models()

    async def aclose(self) -> None:
        """Let go of nothing: the fetcher belongs to its maker."""
        await self._server.aclose()

    async def _inlined(self, call: Call) -> Call:
        urls = [] if self._server.opens_urls(call.request.model) else list(_urls(call.request.messages))
        if not urls:
            return call
        images = await self._fetcher.images(urls)
        messages = tuple(
            replace(message, content=_with(message.content, images, f"$.messages[{index}].content", call.losses))
            for index, message in enumerate(call.request.messages)
        )
        return replace(call, request=replace(call.request, messages=messages), body=None)


def _urls(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        yield from _urls_of(message.content)


def _urls_of(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Image(source=Remote(url=url)) if not url.startswith("data:"):
                yield url
            case ToolResult(content=inner) | File(source=Nested(parts=inner)):
                yield from _urls_of(inner)
            case _:
                pass


def _with(parts: Sequence[Part], images: Mapping[str, Inline], where: str, losses: Losses) -> tuple[Part, ...]:
    return tuple(_shown(part, images, f"{where}[{index}]", losses) for index, part in enumerate(parts))


def _shown(part: Part, images: Mapping[str, Inline], where: str, losses: Losses) -> Part:
    match part:
        case Image(source=Remote(url=url)) if url in images:
            losses.emulated(where, "image", "the server fetches none: its data was fetched for it")
            return replace(part, source=images[url])
        case ToolResult(content=inner):
            return replace(part, content=_with(inner, images, f"{where}.content", losses))
        case File(source=Nested(parts=inner) as source):
            return replace(part, source=replace(source, parts=_with(inner, images, f"{where}.source.parts", losses)))
        case _:
            return part
