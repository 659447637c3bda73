"""Runs batches, one request after another, next to the gateway's other work.

Theory of operation. A gateway that runs a batch holds a lease on it in the store and renews it; a batch whose lease
has expired is taken over by the gateway that looks next, every few seconds once it knows of batches. What
a request came to is stored in the transaction that checks that the batch is still ours and the request open, so
each has one result even if gateways are killed; only requests that were in progress at that moment are sent again.
The configuration limits how many requests of all batches are in progress at once, and batches take turns.

A batch comes to its end when all its requests have a result, when it is cancelled, or at its deadline; a request
that was not sent by then gets a line that reports it. A gateway that stops begins nothing more, waits for requests in
progress as long as it does for its clients, and releases its batches.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextvars import Context
from typing import TYPE_CHECKING, Final

from xenoglot.errors import FailureError
from xenoglot.gateway.batches.worker import BatchWorker
from xenoglot.gateway.store_service import LEASE
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import Batch
    from xenoglot.gateway.batches.execute import BatchServices
    from xenoglot.store.batches import Key

LOOK_SECONDS: Final = 5.0
"""How often leases are renewed and changes by other gateways are read; shorter than a lease."""

IDLE_SECONDS: Final = 15.0
"""How often the store is searched for batches without a lease, where none runs here."""

MOST: Final = 16
SHARE: Final = 4
"""Batches that are run at once, and those of one client among them: others' have their turn, too."""

_logger = logging.getLogger("xenoglot.gateway")


class BatchRunner:
    """Runs batches for one gateway, from `begin` on."""

    def __init__(self, services: BatchServices) -> None:
        self.process = secrets.token_hex(12)
        self.keeper = services.keeper
        self._services = services
        self._room = asyncio.Semaphore(services.settings.concurrency)
        """Slots for requests in progress."""
        self.works: dict[Key, BatchWorker] = {}
        self.stopped: float | None = None
        """When `stop` was called, by the loop's clock."""
        self._told = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look after batches, from now on."""
        if self._task is None and self.stopped is None:
            # Nothing of the request that may have led here is a batch's, such as how many gateways it came through.
            self._task = asyncio.get_running_loop().create_task(self._watch(), context=Context())

    def tell(self) -> None:
        """Have it look now: there is a new batch, or one is to be cancelled."""
        self._told.set()
        self.begin()

    def stop(self) -> None:
        """Begin nothing more."""
        if self.stopped is None:
            self.stopped = asyncio.get_running_loop().time()
            for work in self.works.values():
                work.halt("stopped")

    def break_off(self) -> None:
        """Wait no longer for requests in progress."""
        self.stop()
        for work in self.works.values():
            work.break_off()

    async def over(self) -> None:
        """Wait, after `stop`, until no request is in progress."""
        while self.works:
            await asyncio.wait([work.task for work in self.works.values()])

    async def aclose(self) -> None:
        """Stop; requests in progress may take as long as the drain."""
        self.stop()
        drain = self._services.drain_seconds
        left = (self.stopped or 0.0) + drain - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self.over()
        except TimeoutError:
            self.break_off()
            await self.over()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def look(self) -> None:
        """Renew the leases of the batches that run here, and take over batches without a lease.

        Raises:
            StoreError: the store fails.
        """
        now, store = self.keeper.now(), self.keeper.store.batches
        works = dict(self.works)
        mine = await self.keeper.within(store.renew(self.process, works, now + LEASE)) if works else {}
        for key, work in works.items():
            work.see(now, lost=key not in mine, cancelled=mine.get(key) is not None)
        room = MOST - len(self.works)
        if self.stopped is None and room > 0:
            for batch in await self.keeper.within(store.claim(self.process, now, now + LEASE, room, SHARE)):
                self._start(batch)

    def _start(self, batch: Batch) -> None:
        key = (batch.owner, batch.id)
        self.works[key] = work = BatchWorker(self._services, batch, self.process, self._room)
        work.task.add_done_callback(lambda _: self._forget(key))
        if self.stopped is not None:
            work.halt("stopped")

    def _forget(self, key: Key) -> None:
        self.works.pop(key, None)
        self._told.set()  # there is room for another

    async def _watch(self) -> None:
        while self.stopped is None or self.works:
            self._told.clear()
            try:
                await self.look()
            except (StoreError, FailureError) as error:
                _logger.error("the store fails, and batches wait: %s", error)  # noqa: TRY400  no texts
                await asyncio.sleep(LOOK_SECONDS)
            try:
                async with asyncio.timeout(LOOK_SECONDS if self.works else IDLE_SECONDS):
                    await self._told.wait()
            except TimeoutError:
                continue
