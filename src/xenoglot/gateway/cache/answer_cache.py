"""Cache of complete answers: looked up by requests, filled from answers as they pass.

What is cached is the canonical answer of the target, before hooks of the operator. So a whole answer can be returned as
a stream, and a stream as a whole answer, by the encoders that translate every answer. Only answers that ended as they
should are cached: no failures, nothing broken off, nothing that a filter stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer, Piece
from xenoglot.backends.offload import offload, weight_of
from xenoglot.codec.glob import matches
from xenoglot.codec.loss import Loss
from xenoglot.gateway.cache.cache_key import AnswerSource, CacheKeys, is_cacheable
from xenoglot.model.fold import Folder, unfold
from xenoglot.model.response import FinishReason, Response
from xenoglot.policy.cache_control import CacheControl, cache_control

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.gateway.cache.memory_store import CacheStore
    from xenoglot.gateway.config.settings import CacheSettings, UpstreamSettings
    from xenoglot.model.events import Event

WHOLE: Final[frozenset[FinishReason]] = frozenset({"stop", "stop_sequence", "length", "tool_calls"})
"""Reasons of an end after which an answer is cached."""

Item = TypeVar("Item", "Piece", "Sequence[Event]")


class CachedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, when it was `stored` (Unix seconds), the target that gave it, and what the request lost on its way."""

    response: Response
    stored: float
    upstream: str
    target: str
    losses: tuple[Loss, ...] = ()


class CacheRequest(NamedTuple):
    """The place of an answer in the cache, and what the client demands."""

    key: str
    control: CacheControl


class AnswerCache:
    """The cache of a gateway; `clock` gives Unix seconds."""

    def __init__(
        self,
        store: CacheStore,
        settings: CacheSettings,
        upstreams: Mapping[str, UpstreamSettings],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._settings = settings
        self._keys = CacheKeys(upstreams)
        self._clock = clock
        self.hits = 0
        self.misses = 0

    def concerns(self, model: str) -> bool:
        """Return whether answers of `model`, as clients name it, are cached."""
        patterns = self._settings.models
        return not patterns or any(matches(pattern, model) for pattern in patterns)

    async def place(self, asked: AnswerSource, headers: Sequence[tuple[str, str]], size: int) -> CacheRequest | None:
        """Return the place of the answer that comes of `asked`; `None` if it is not to be cached.

        `headers` are those of the client, `size` is that of the body in bytes.
        """
        if not self.concerns(asked.request.model) or not is_cacheable(asked.request):
            return None
        control = cache_control(headers)
        if not control.reads and not control.writes:
            return None
        key = await offload(size, lambda: self._keys.key(asked))
        return CacheRequest(key, control)

    async def find(self, place: CacheRequest) -> CachedAnswer | None:
        """Return the cached answer at `place` if the client accepts its age."""
        data = await self._store.get(place.key) if place.control.reads else None
        if data is not None:
            try:
                found = await offload(len(data), lambda: msgspec.msgpack.decode(data, type=CachedAnswer))
            except msgspec.MsgspecError:  # of another version
                found = None
            if found is not None and place.control.accepts(self.age(found)):
                self.hits += 1
                return found
        self.misses += 1
        return None

    def age(self, cached: CachedAnswer) -> float:
        """Return how many seconds ago an answer was stored."""
        return max(0.0, self._clock() - cached.stored)

    def recorded(self, answer: Answer, place: CacheRequest, target: Callable[[], CachedAnswer]) -> Answer:
        """Return `answer`, which is cached at `place` when it has passed; `target` gives what is cached with it."""
        if not place.control.writes:
            return answer
        if isinstance(answer, ByteAnswer):
            return replace(answer, pieces=self._watched(answer.pieces, place.key, target))
        return replace(answer, batches=self._watched(answer.batches, place.key, target))

    async def _watched(
        self, items: AsyncIterator[Item], key: str, target: Callable[[], CachedAnswer]
    ) -> AsyncGenerator[Item]:
        folder: Folder | None = Folder()
        size = 0
        async for item in items:
            events = _events(item)
            size += weight_of(events)
            if size > self._settings.max_answer_bytes:
                folder = None
            if folder is not None:
                for event in events:
                    folder.feed(event)
            yield item
        if folder is not None and folder.failure is None:
            await self._keep(key, folder.response(), target())

    async def _keep(self, key: str, response: Response, target: CachedAnswer) -> None:
        finishes = [candidate.finish for candidate in response.candidates]
        if not finishes or any(one is None or one.assumed or one.reason not in WHOLE for one in finishes):
            return
        cached = replace(target, response=response, stored=self._clock())
        data = msgspec.msgpack.encode(cached)
        if len(data) <= self._settings.max_answer_bytes:
            await self._store.put(key, data, self._settings.ttl_seconds)

    async def aclose(self) -> None:
        """Release the store."""
        await self._store.aclose()


def _events(item: Piece | Sequence[Event]) -> Sequence[Event]:
    return item.events if isinstance(item, Piece) else item


def cached_from(upstream: str, target: str, losses: Iterable[Loss]) -> CachedAnswer:
    """Return what is cached together with an answer."""
    return CachedAnswer(response=Response(), stored=0.0, upstream=upstream, target=target, losses=tuple(losses))


def replayed(cached: CachedAnswer) -> EventAnswer:
    """Return a cached answer as events."""
    batches = _one_batch(list(unfold(cached.response)))
    return EventAnswer(batches=batches, aclose=batches.aclose)


async def _one_batch(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event]]:
    yield events
