"""Cached answers in memory: the least recently used go first when there are too many bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

OVERHEAD: Final = 256
"""Bytes of an entry in addition to its data."""


class CacheStore(Protocol):
    """Where answers are kept, as bytes. A store that fails has nothing, and keeps nothing."""

    async def get(self, key: str) -> bytes | None:
        """Return what was put under `key`; `None` if it expired."""
        ...

    async def put(self, key: str, data: bytes, seconds: float) -> None:
        """Keep `data` for so many seconds."""
        ...

    async def aclose(self) -> None:
        """Release everything."""
        ...


class _Entry(NamedTuple):
    """Data, and when it expires."""

    data: bytes
    until: float


class MemoryStore:
    """At most `most` bytes; `clock` gives seconds."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self.size = 0
        """Bytes of all entries."""

    async def get(self, key: str) -> bytes | None:
        """Return what was put under `key`; `None` if it expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.until <= self._clock():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.data

    async def put(self, key: str, data: bytes, seconds: float) -> None:
        """Keep `data` for so many seconds, and drop others if there are too many bytes."""
        if key in self._entries:
            self._drop(key)
        self._entries[key] = _Entry(data, self._clock() + seconds)
        self.size += len(data) + OVERHEAD
        while self.size > self._most:
            self._drop(next(iter(self._entries)))

    async def aclose(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.size = 0

    def _drop(self, key: str) -> None:
        self.size -= len(self._entries.pop(key).data) + OVERHEAD
