"""Has batches answered, one request after another, beside everything else that the gateway does.

Theory of operation. Whoever runs a batch has it in the store for as long as it vouches for it; a batch for which nobody
does is taken over by whichever gateway looks next, which it does every few seconds once it has heard of batches. What
a request came to is kept in the transaction that makes sure that the batch is still ours and the request open, so
each has one result however often somebody is killed; only what was under way at that moment is asked again. Of all
batches so many requests are under way at once as the configuration says, and they take turns.

A batch comes to its end when all its requests have a result, when it is cancelled, or at its deadline; what was not
asked by then gets a line that says so. A gateway that stops begins nothing more, waits for what is under way as long
as it does for its clients, and lets go of its batches.
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
"""How often one vouches for the batches that are run, and learns what others said of them; shorter than a lease."""

IDLE_SECONDS: Final = 15.0
"""How often one looks for batches that nobody runs, where none is run here."""

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
        """What requests under way take a place of."""
        self.works: dict[Key, BatchWorker] = {}
        self.stopped: float | None = None
        """When it was told to stop, by the loop's clock."""
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
        """Wait no longer for what is under way."""
        self.stop()
        for work in self.works.values():
            work.break_off()

    async def over(self) -> None:
        """Wait until nothing is under way, it having been told to stop."""
        while self.works:
            await asyncio.wait([work.task for work in self.works.values()])

    async def aclose(self) -> None:
        """Stop; what is under way has as long as the drain takes."""
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
        """Vouch for the batches that are run here, and take over what nobody runs.

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
