"""A backend around another, which keeps what clients strip of its answers and puts it back into their requests."""

from __future__ import annotations

import asyncio
import logging
from io import StringIO
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer
from xenoglot.gateway.upstream.reasoning_cache import kept, keys, may_strip, pack, places, restored, unpack
from xenoglot.gateway.upstream.services import reading
from xenoglot.model.events import BlockEnded, BlockStarted, Finished, SignatureDelta, TextDelta
from xenoglot.model.fold import Folder
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.gateway.routing.router import Route
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.gateway.upstream.services import UpstreamServices
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.request import Message, Request
    from xenoglot.model.response import Response

_logger = logging.getLogger("xenoglot.gateway")


def preserves(services: UpstreamServices, route: Route, dialect: str) -> bool:
    """Whether what clients of `dialect` strip of the answers on `route` is kept.

    Not set, it is on loopback, for clients of other dialects than that of the upstream.
    """
    upstream = services.models.upstream(route)
    wish = route.preserve
    if wish is None:
        wish = "translated" if upstream is not None and services.loopback else False
    if services.keeper is None or not wish:
        return False
    return wish is True or upstream is None or not upstream.speaks(dialect, route.model)


def preserving(services: UpstreamServices, route: Route, dialect: str, owner: str) -> Backend:
    """Return who answers clients of `dialect` on `route`; where the route preserves, with a memory for `owner`."""
    backend = reading(services.models.backend(route), route)
    if services.keeper is None or not preserves(services, route, dialect):
        return backend
    return ReasoningCacheBackend(backend, services.keeper, owner, route.backend)


def may_lack(keeper: StoreService, request: Request, place: str) -> bool:
    """Whether `request` may lack something that is stored: an answer of `place`, which the client brings back."""
    for message in request.messages:
        if message.role == "assistant":
            return not keeper.holds_nothing(place)
    return False


class Recorder:
    """Stores what clients strip of the answers of `place` to a request of `owner`; `before` is its last turn.

    Where the store fails, clients get what they would without it.
    """

    __slots__ = ("_before", "_keeper", "_owner", "_place")

    def __init__(self, keeper: StoreService, owner: str, place: str, request: Request) -> None:
        self._keeper = keeper
        self._owner = owner
        self._place = place
        self._before = request.messages[-1] if request.messages else None

    def watched(self, answer: Answer) -> Answer:
        """Return `answer`; before its reader can know that it is over, it is stored. Bytes are left as they are."""
        if isinstance(answer, ByteAnswer):
            return answer
        batches = self._watched(answer.batches)
        return replace(answer, batches=batches)

    async def _watched(self, batches: AsyncIterator[Sequence[Event]]) -> AsyncGenerator[Sequence[Event]]:
        folder = Folder()
        async for batch in batches:
            for event in batch:
                folder.feed(event)
            if any(type(event) is Finished for event in batch):
                await self._store(self._found(folder.response()))
            yield batch

    def note(self, response: Response) -> None:
        """Store, in a task of its own, what clients strip of `response`; requests that may lack it wait for that."""
        found = self._found(response)
        if found:
            self._keeper.stored.add(self._place)
            storing = asyncio.get_running_loop().create_task(self._store(found))
            self._keeper.storing.add(storing)
            storing.add_done_callback(self._keeper.storing.discard)

    def _found(self, response: Response) -> list[tuple[list[str], bytes]]:
        """Return the keys of each candidate that is finished, and what is stored under them."""
        found = []
        for candidate in response.candidates:
            if candidate.finish is None or not any(map(may_strip, candidate.content)):
                continue
            stripped = kept(candidate.content)
            if stripped is not None:
                found.append((keys(candidate.content, self._before), pack(stripped)))
        return found

    async def _store(self, found: Sequence[tuple[Sequence[str], bytes]]) -> None:
        for names, payload in found:
            for key in names:
                await self._put(key, payload)

    async def _put(self, key: str, payload: bytes) -> None:
        self._keeper.stored.add(self._place)
        try:
            await self._keeper.within(
                self._keeper.store.put_cached(self._owner, key, self._place, payload, self._keeper.now())
            )
        except StoreError as error:
            _logger.error("an answer is not kept: %s", error)  # noqa: TRY400  no texts
        else:
            self._keeper.sweep()


_BLOCKS = (BlockStarted, BlockEnded)


class Recording:
    """A streamed answer of one candidate as it grows, for a `recorder`; folded only if clients strip something of it.

    `words` takes the text of a read that holds nothing else, at the cost of one call; `look` takes all other events.
    """

    __slots__ = ("_batches", "_folder", "_recorder", "_text", "words")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._batches: list[Sequence[Event]] = []
        """What is not folded."""
        self._folder: Folder | None = None
        self._text = StringIO()
        self.words = self._text.write

    def look(self, events: Sequence[Event]) -> None:
        """See what is in `events`; what clients strip of the finished candidate is stored."""
        if text := self._text.getvalue():
            self._batches.append((TextDelta(text),))
            self._text.seek(0)
            self._text.truncate()
        self._batches.append(events)
        folder = self._folder
        if folder is None:
            if not _is_stripped(events):
                return
            folder = self._folder = Folder()
        for batch in self._batches:
            for event in batch:
                folder.feed(event)
        self._batches.clear()
        if any(type(event) is Finished for event in events):
            self._recorder.note(folder.response())


def _is_stripped(events: Sequence[Event]) -> bool:
    """Whether clients may strip something that `events` bring."""
    for event in [event for event in events if type(event) is not TextDelta]:  # few
        kind = type(event)
        if kind is SignatureDelta or (isinstance(event, _BLOCKS) and may_strip(event.part)):
            return True
    return False


class ReasoningCacheBackend:
    """A backend with a memory for one owner. `place` is what it is called in the store: no other gets what it made.

    Nothing passes untouched through it. Where the store fails, clients get and give what they would without it.
    """

    def __init__(self, backend: Backend, keeper: StoreService, owner: str, place: str) -> None:
        self.name = backend.name
        self._backend = backend
        self._keeper = keeper
        self._owner = owner
        self._place = place

    async def answer(self, call: Call) -> Answer:
        """Answer with the stored reasoning restored.

        Raises:
            FailureError: as the backend does.
        """
        completed = await self._completed(call)
        answer = await self._backend.answer(completed)
        return Recorder(self._keeper, self._owner, self._place, completed.request).watched(answer)

    async def count(self, call: Call) -> int | None:
        """Count with the stored reasoning restored."""
        return await self._backend.count(await self._completed(call))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the backend's models."""
        return await self._backend.models()

    async def aclose(self) -> None:
        """Nothing is held: the backend belongs to its maker."""

    async def _completed(self, call: Call) -> Call:
        """Return the call with the stored reasoning restored; what was restored is never reported as lost."""
        if not may_lack(self._keeper, call.request, self._place):
            return replace(call, body=None)
        said = call.request.messages
        messages = await self._restored(said)
        if messages is said:
            return replace(call, body=None)
        moved = {
            place: stood
            for index, (turn, message) in enumerate(zip(said, messages, strict=True))
            if turn is not message
            for place, stood in places(f"$.messages[{index}]", turn, message)
        }
        request = replace(call.request, messages=tuple(messages))
        return replace(call, request=request, losses=call.losses.moved(moved), body=None)

    async def _restored(self, said: Sequence[Message]) -> Sequence[Message]:
        """Return the turns with what they lack. All are looked up at once: a request of an agent has hundreds."""
        wanted = {
            index: keys(turn.content, said[index - 1] if index else None)
            for index, turn in enumerate(said)
            if turn.role == "assistant"
        }
        found = await self._recall([key for names in wanted.values() for key in names])
        if not found:
            return said
        messages = list(said)
        for index, names in wanted.items():
            known = next((known for key in names if key in found and (known := unpack(found[key])) is not None), None)
            if known is not None:
                messages[index] = restored(said[index], known)
        return messages

    async def _recall(self, names: Sequence[str]) -> dict[str, bytes]:
        if not names:
            return {}
        try:
            if self._keeper.storing:  # what an answer of a moment ago brought
                await self._keeper.within(asyncio.wait(tuple(self._keeper.storing)))
            await self._keeper.look()
            return await self._keeper.within(self._keeper.store.get_cached_of(self._owner, names, self._place))
        except StoreError as error:
            _logger.error("what an answer lacks cannot be looked up: %s", error)  # noqa: TRY400  no texts
            return {}
