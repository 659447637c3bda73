"""One batch being answered: its input read, its requests asked, its end written; see `batches_runner`."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.codec.features.batch import FILE_PREFIX, PARTS, StoredFile
from xenoglot.errors import FailureError, whereabouts
from xenoglot.gateway.batches.delayed import DelayedRequests
from xenoglot.gateway.batches.execute import ask, left, model_of
from xenoglot.gateway.batches.input_file import read_input
from xenoglot.gateway.stored.background import AGAIN_SECONDS
from xenoglot.policy.target_health import Retry, delay
from xenoglot.store.batches import BatchResult
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from xenoglot.backends.batch_lines import Unanswered
    from xenoglot.codec.features.batch import Batch, Ending, Phase
    from xenoglot.gateway.batches.execute import BatchServices, LineResult
    from xenoglot.model.failure import FailureKind
    from xenoglot.store.batches import BatchRow

Halt: TypeAlias = Literal["cancelled", "expired", "stopped", "lost"]
"""Why no more is sent: the batch is to be over, the gateway stops, or another gateway has the batch."""

PAGE: Final = 200
"""Requests whose places are read at once."""

BACKOFF: Final = Retry(base=1.0, cap=60.0, wait_limit=300.0)
"""The delay before a request is retried."""

TRIES: Final[Mapping[FailureKind, int]] = {"rate_limit": 8, "overloaded": 8, "upstream": 3, "timeout": 3}
"""Attempts per request by kind of failure. That the gateway has retried by itself, and a client need not, is no
reason: time is not short. Where no model was called, because of a limit or since all back off, the request waits until
that is over."""

USUAL_WAIT: Final = 5.0
_logger = logging.getLogger("xenoglot.gateway")


class LeaseError(Exception):
    """Another gateway has the batch, or it is gone."""


class BatchWorker:
    """One batch in progress for `process`, each request in a slot of the semaphore; `task` ends with its work."""

    def __init__(self, services: BatchServices, batch: Batch, process: str, room: asyncio.Semaphore) -> None:
        self.batch = batch
        self._services = services
        self._process = process
        self._room = room
        self._dispatcher = services.dispatcher
        self._keeper = services.keeper
        self._store = services.keeper.store.batches
        self._halted: Halt | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._waiting = DelayedRequests()
        self._tries: dict[int, int] = {}
        self._reading: asyncio.Task[None] | None = None
        self._feeding: asyncio.Task[None] | None = None
        self.task = asyncio.get_running_loop().create_task(self._run())

    def see(self, now: float, *, lost: bool, cancelled: bool) -> None:
        """Learn what has become of the batch in the store, and how late it is."""
        if lost:
            self.halt("lost")
        elif cancelled:
            self.halt("cancelled")
        elif self.batch.deadline <= now:
            self.halt("expired")

    def halt(self, why: Halt) -> None:
        """Send nothing more; requests in progress continue only where the gateway stops."""
        if self._halted is None or (self._halted == "stopped" and why == "lost"):
            self._halted = why
        if self._feeding is not None:
            self._feeding.cancel()
        if self._reading is not None and why in ("stopped", "lost"):  # the next reads from the beginning
            self._reading.cancel()
        if why != "stopped":
            self.break_off()

    def break_off(self) -> None:
        """Wait for no request in progress."""
        for task in self._asking:
            task.cancel()

    async def _run(self) -> None:
        try:
            await self._through()
        except LeaseError:
            _logger.info("batch %s: another gateway has it, or it was deleted", self.batch.id)
        except (StoreError, FailureError) as error:  # its lease ends, and somebody takes it over
            _logger.error("batch %s waits: the store fails: %s", self.batch.id, error)  # noqa: TRY400  no texts
        except Exception as error:  # noqa: BLE001  the outermost shell of a task: nobody else would own up to a bug
            _logger.error("batch %s waits: %s", self.batch.id, whereabouts(error))  # noqa: TRY400  no texts

    async def _through(self) -> None:
        """Bring the batch from where it is to its end, or as far as it goes here."""
        self.see(self._keeper.now(), lost=False, cancelled=self.batch.cancelled is not None)
        if self.batch.phase == "validating" and self._halted is None:
            await self._read_all()
        if self.batch.ending is None and self._halted is None:
            await self._ask_all()
        if self._halted == "lost":
            raise LeaseError
        if self._halted == "stopped":
            await self._keeper.within(self._store.release(self._process, self.batch))
            return
        await self._end()

    async def _read_all(self) -> None:
        """Read the requests, unless there is a reason to leave that to another gateway."""
        self._reading = asyncio.get_running_loop().create_task(self._read())
        await asyncio.wait((self._reading,))
        if not self._reading.cancelled():
            self._reading.result()

    async def _read(self) -> None:
        """Read the requests of the batch out of its file."""
        most, longest = self._services.settings.max_requests, self._services.bodies.limit
        batch = await read_input(self._keeper, self.batch, most, longest)
        if batch.mistakes:
            await self._keeper.within(self._store.clear(batch.owner, batch.id))
            batch = replace(batch, total=0, ending="failed")
            await self._save(batch, "validating")
        else:
            await self._save(batch, "in_progress")

    async def _ask_all(self) -> None:
        """Ask all that has no result, until there is nothing left or a reason to stop."""
        self._feeding = asyncio.get_running_loop().create_task(self._feed())
        await asyncio.wait((self._feeding,))
        while self._asking:
            await asyncio.wait(self._asking)
        if not self._feeding.cancelled() and (error := self._feeding.exception()) is not None:
            raise error

    async def _feed(self) -> None:
        """Send one request after another, as slots become free."""
        async with aclosing(self._places()) as places:
            while True:
                number = self._waiting.take(self._dispatcher.clock())
                if number is None:
                    number = await anext(places, None)
                if number is not None:
                    await self._room.acquire()
                    self._begin(number)
                elif self._asking or self._waiting:
                    await self._change()
                else:
                    return

    def _begin(self, number: int) -> None:
        task = asyncio.get_running_loop().create_task(self._one(number))
        self._asking.add(task)
        task.add_done_callback(self._asked)

    async def _places(self) -> AsyncGenerator[int]:
        number = 0
        while found := await self._keeper.within(self._store.unanswered(self.batch.owner, self.batch.id, number, PAGE)):
            for number, _ in found:
                yield number

    async def _change(self) -> None:
        """Wait until a model's back-off ends, or a request in progress is over."""
        tasks: set[asyncio.Task[None]] = set(self._asking)
        seconds = self._waiting.seconds(self._dispatcher.clock())
        if seconds is None:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return
        rest = asyncio.ensure_future(self._dispatcher.sleep(seconds))
        try:
            await asyncio.wait({*tasks, rest}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rest.cancel()

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("batch %s: %s", self.batch.id, whereabouts(error))
            self.halt("lost")

    async def _one(self, number: int) -> None:
        """Ask one request, and keep what it came to."""
        request = await self._keeper.within(self._store.request(self.batch.owner, self.batch.id, number))
        if request is None:
            return
        model = model_of(request)
        if not self._waiting.rests(model, self._dispatcher.clock()):
            told = await ask(self._services, self.batch, request)
            wait = self._wait(number, told)
            if wait is None:
                await self._keep(request, told)
                return
            self._waiting.rest(model, self._dispatcher.clock() + wait)
        self._waiting.put(number, model)

    async def _keep(self, request: BatchRow, told: LineResult) -> None:
        result = BatchResult("ok" if told.failure is None else "error", told.line, told.usage)
        if not await self._patiently(lambda: self._store.settle(self._process, self.batch, request, result)):
            self.halt("lost")

    def _wait(self, number: int, told: LineResult) -> float | None:
        """Return the seconds after which a request is retried, `None` where its result is kept."""
        failure, chance = told.failure, self._dispatcher.chance()
        if failure is None or failure.kind not in TRIES:
            return None
        asked = None if failure.retry_after is None else min(failure.retry_after, BACKOFF.wait_limit)
        if not told.asked:
            return delay(BACKOFF, 1, USUAL_WAIT if asked is None else asked, chance)
        attempt = self._tries[number] = self._tries.get(number, 0) + 1
        return None if attempt >= TRIES[failure.kind] else delay(BACKOFF, attempt, asked, chance)

    async def _patiently(self, write: Callable[[], Awaitable[bool]]) -> bool:
        """Have the store keep something, once it can: it was paid for.

        Raises:
            StoreError: it cannot.
        """
        for seconds in AGAIN_SECONDS:
            try:
                return await self._keeper.within(write())
            except StoreError:
                await asyncio.sleep(seconds)
        return await self._keeper.within(write())

    async def _end(self) -> None:
        """Write the end of the batch: requests that were not sent, the files, and that it is over."""
        batch = self.batch
        ending = batch.ending or ("completed" if self._halted is None else _ENDINGS[self._halted])
        if batch.ending is None:
            batch = replace(batch, ending=ending)
            await self._save(batch, "finalizing" if batch.phase == "in_progress" else batch.phase)
        if ending in ("cancelled", "expired"):
            await self._leave("cancelled" if ending == "cancelled" else "expired")
        now = self._keeper.now()
        made = await self._files(now) if ending != "failed" else ()
        over = replace(
            self.batch,
            phase=ending,
            moments=self.batch.moments | {ending: now},
            files={file.part: file.id for file in made if file.part is not None},
        )
        if not await self._keeper.within(self._store.finish(self._process, over, made, now)):
            raise LeaseError

    async def _leave(self, why: Unanswered) -> None:
        """Write a line for each request that was not sent."""
        number = 0
        batch = self.batch
        while found := await self._keeper.within(self._store.unanswered(batch.owner, batch.id, number, PAGE)):
            results = [(number, left(batch, number, name, why)) for number, name in found]
            if not await self._keeper.within(self._store.record_abandoned(self._process, batch, results)):
                raise LeaseError

    async def _files(self, now: float) -> list[StoredFile]:
        """Return the files that came of the batch: the answers, and the rest, where there are any."""
        batching = dialects.get(self.batch.kind).batching
        if batching is None or batching.file_words is None:
            return []
        words, batch = batching.file_words(), self.batch
        parts = await self._keeper.within(self._store.part_ids(batch.owner, batch.id))
        seconds = batch.asked.get("output_seconds")
        made = []
        for part, outcomes in PARTS.items():
            size = sum(parts.get(outcome, 0) for outcome in outcomes)
            if size:
                made.append(
                    StoredFile(
                        id=f"{FILE_PREFIX}{batch.id.rpartition('_')[2]}-{part}",
                        owner=batch.owner,
                        created=now,
                        name=f"{batch.id}_{part}.jsonl",
                        purpose=words.output_purpose,
                        size=size,
                        expires=now + seconds if isinstance(seconds, float) else None,
                        batch=batch.id,
                        part=part,
                    )
                )
        return made

    async def _save(self, batch: Batch, phase: Phase) -> None:
        """Keep what is known of the batch now.

        Raises:
            LeaseError: it is not ours any more.
        """
        moments = batch.moments if phase == batch.phase else batch.moments | {phase: self._keeper.now()}
        self.batch = replace(batch, phase=phase, moments=moments)
        if not await self._keeper.within(self._store.save(self._process, self.batch)):
            raise LeaseError


_ENDINGS: dict[Halt, Ending] = {"cancelled": "cancelled", "expired": "expired"}
