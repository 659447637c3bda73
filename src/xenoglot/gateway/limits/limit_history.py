"""Keeps the windows of limits over a restart: written to the store while they change, and read at the start.

Theory of operation. Every two seconds, and at the end, scopes whose use has changed are written, with the ages of what
counts turned into times of the world, and joined to some dozens for each window. So a gateway that is killed forgets at
most what was used in the last seconds. What is joined counts from the latest: it comes free late, never early. If the
clock of the machine was set back meanwhile, uses count as if they had just happened.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from xenoglot.policy.limits.usage_ledger import ScopeHistory
from xenoglot.store.ledger import limit_windows
from xenoglot.store.ledger.limit_windows import LimitWindow
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from xenoglot.gateway.limits.limiter import MemoryLimiter
    from xenoglot.policy.limits.usage_ledger import WindowHistory
    from xenoglot.store.queries import Database
    from xenoglot.store.store import TimedStore

SAVE_SECONDS: Final = 2.0
MOST_USES: Final = 64
"""Uses that are kept of each window."""
AT_ONCE: Final = 50
"""Scopes that are looked at before others get a turn."""
SHORTEST: Final = 5.0
"""Seconds: shorter windows are over by the time a gateway is back."""

_logger = logging.getLogger("xenoglot.gateway")
_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(ScopeHistory).decode


class LimitHistory:
    """The windows of `limiter` in a store, under the name of the `gateway`."""

    def __init__(self, store: TimedStore, limiter: MemoryLimiter, gateway: str) -> None:
        self._store = store
        self._database = cast("Database", store.store)
        self._limiter = limiter
        self._gateway = gateway
        self._marks: dict[str, Hashable] = {}
        """What changes with every use, by scope, as it was last written."""
        self._failing = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read what was used before, and write what is used from now on."""
        await self._restore()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def save(self) -> None:
        """Write the scopes whose use has changed."""
        now, time = self._limiter.clock(), self._store.now()
        rows: list[LimitWindow] = []
        marks: dict[str, Hashable] = {}
        for number, (name, room) in enumerate(tuple(self._limiter.usage.scopes.items())):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            mark = room.mark()
            if mark == self._marks.get(name, ()) or not mark:
                continue
            marks[name] = mark
            history = room.history(now, MOST_USES)
            if history.seconds >= SHORTEST:
                data = _encode(_turned(history, time))
                rows.append(LimitWindow(name, time + history.seconds, data))
        if not rows:
            return
        try:
            await self._store.within(self._database.write(limit_windows.save(self._gateway, rows)))
        except StoreError as error:
            if not self._failing:
                _logger.error("windows of limits are not stored: %s", error)  # noqa: TRY400  no texts
            self._failing = True
            return
        self._failing = False
        self._marks |= marks
        if len(self._marks) > len(self._limiter.usage.scopes):
            self._marks = {name: mark for name, mark in self._marks.items() if name in self._limiter.usage.scopes}

    async def aclose(self) -> None:
        """Write the rest."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.save()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.save()

    async def _restore(self) -> None:
        if not self._store.store.has_history():
            return
        time = self._store.now()
        try:
            await self._store.within(self._database.write(limit_windows.prune(time)))
            rows = await self._store.within(self._database.read(limit_windows.load(self._gateway, time)))
        except StoreError as error:
            _logger.error("windows of limits are not restored: %s", error)  # noqa: TRY400  as above
            return
        now = self._limiter.clock()
        for row in rows:
            with suppress(MsgspecError):  # of another version
                self._limiter.usage.restore(row.scope, _turned(_decode(row.data), time), now)


def _turned(history: ScopeHistory, time: float) -> ScopeHistory:
    """Return a history with ages in place of times, or the other way round."""

    def turned(window: WindowHistory | None) -> WindowHistory | None:
        return None if window is None else replace(window, uses=[(time - at, amount) for at, amount in window.uses])

    return ScopeHistory(turned(history.requests), turned(history.tokens))
