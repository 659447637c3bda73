"""A backend around another, which keeps what clients strip of its answers and puts it back into their requests."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.gateway.reading import reading
from xenoglot.gateway.vault import kept, keys, pack, places, restored, unpack
from xenoglot.model.events import Finished
from xenoglot.model.fold import Folder
from xenoglot.store.store import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.keeper import Keeper
    from xenoglot.gateway.routing import Route
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.request import Message

_logger = logging.getLogger("xenoglot.gateway")


def preserves(gateway: Gateway, route: Route, dialect: str) -> bool:
    """Whether what clients of `dialect` strip of the answers on `route` is kept."""
    if gateway.keeper is None or not route.preserve:
        return False
    upstream = gateway.config.upstreams.get(route.backend)
    return route.preserve is True or upstream is None or not upstream.speaks(dialect, route.model)


def preserving(gateway: Gateway, route: Route, dialect: str, owner: str) -> Backend:
    """Return who answers clients of `dialect` on `route`; where the route preserves, with a memory for `owner`."""
    backend = reading(gateway.backend(route.backend), route)
    if gateway.keeper is None or not preserves(gateway, route, dialect):
        return backend
    return Preserving(backend, gateway.keeper, owner, route.backend)


class Preserving:
    """A backend with a memory for one owner. `place` is what it is called in the store: no other gets what it made.

    Nothing passes untouched through it. Where the store fails, clients get and give what they would without it.
    """

    def __init__(self, backend: Backend, keeper: Keeper, owner: str, place: str) -> None:
        self.name = backend.name
        self._backend = backend
        self._keeper = keeper
        self._owner = owner
        self._place = place

    async def answer(self, call: Call) -> Answer:
        """Answer with all that was said before.

        Raises:
            FailureError: as the backend does.
        """
        completed = await self._completed(call)
        answer = await self._backend.answer(completed)
        if isinstance(answer, ByteAnswer):
            raise TypeError("a call without a body of its own is answered in events")
        asked = completed.request.messages
        batches = self._watched(answer.batches, asked[-1] if asked else None)
        return EventAnswer(batches=batches, aclose=answer.aclose, limits=answer.limits, request_id=answer.request_id)

    async def count(self, call: Call) -> int | None:
        """Count all that was said before."""
        return await self._backend.count(await self._completed(call))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the backend's models."""
        return await self._backend.models()

    async def aclose(self) -> None:
        """Nothing is held: the backend belongs to whoever made it."""

    async def _completed(self, call: Call) -> Call:
        """Return the call with all that was said before; what was put back into it is nothing that it can lose."""
        said = call.request.messages
        turns = [*zip((None, *said), said, strict=False)]
        messages = await asyncio.gather(*(self._restored(turn, before) for before, turn in turns))
        moved = {
            place: stood
            for index, (turn, message) in enumerate(zip(said, messages, strict=True))
            if turn is not message
            for place, stood in places(f"$.messages[{index}]", turn, message)
        }
        losses = call.losses.moved(moved) if moved else call.losses
        return replace(call, request=replace(call.request, messages=tuple(messages)), losses=losses, body=None)

    async def _restored(self, message: Message, before: Message | None) -> Message:
        for key in keys(message.content, before) if message.role == "assistant" else ():
            found = await self._recall(key)
            if found is not None and (known := unpack(found)) is not None:
                return restored(message, known)
        return message

    async def _recall(self, key: str) -> bytes | None:
        try:
            return await self._keeper.within(self._keeper.store.recall(self._owner, key, self._place))
        except StoreError as error:
            _logger.error("what an answer lacks cannot be looked up: %s", error)  # noqa: TRY400  no texts
            return None

    async def _watched(
        self, batches: AsyncIterator[Sequence[Event]], before: Message | None
    ) -> AsyncGenerator[Sequence[Event]]:
        """Yield the batches; before the client can know that the answer is over, it is in the store."""
        folder = Folder()
        async for batch in batches:
            for event in batch:
                folder.feed(event)
            if any(type(event) is Finished for event in batch):
                await self._keep(folder, before)
            yield batch

    async def _keep(self, folder: Folder, before: Message | None) -> None:
        for candidate in folder.response().candidates:
            found = None if candidate.finish is None else kept(candidate.content)
            if found is not None:
                for key in keys(candidate.content, before):
                    await self._put(key, pack(found))

    async def _put(self, key: str, payload: bytes) -> None:
        try:
            await self._keeper.within(
                self._keeper.store.keep(self._owner, key, self._place, payload, self._keeper.now())
            )
        except StoreError as error:
            _logger.error("an answer is not kept: %s", error)  # noqa: TRY400  no texts
        else:
            self._keeper.sweep()
