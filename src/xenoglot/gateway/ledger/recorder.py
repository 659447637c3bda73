"""Recorder: writes requests to models, and refused ones, into the ledger; one writer in each process.

Theory of operation. A request that is over is put into a queue, which costs it next to nothing. After a quarter of a
second, or when 500 wait, they are written in one transaction together with the sums of their hours. Rows that cannot be
written stay in the queue and are retried; while the queue is full, further rows are dropped, and counted. A write
that failed may have been committed all the same, so retried rows that exist are left out; if a
batch fails while the store is well, each of its rows is written alone, and what cannot be written is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from xenoglot.errors import FailureError, whereabouts
from xenoglot.gateway.ledger.capture_rows import BodyRedactor, capture_rows
from xenoglot.gateway.ledger.request_row import request_row
from xenoglot.model.failure import Failure
from xenoglot.store.ledger import bodies, queries
from xenoglot.store.ledger.rows import FIRST_FAILED_STATUS
from xenoglot.store.ledger.usage_sums import summed
from xenoglot.store.queries import ThreadStatement
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xenoglot.gateway.config.ledger import CaptureSettings, LedgerSettings
    from xenoglot.gateway.ledger.capture import Capture
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.store.ledger.bodies import CaptureRow
    from xenoglot.store.ledger.usage_sums import RowValues, SumKey
    from xenoglot.store.queries import Database, Steps
    from xenoglot.store.store import TimedStore

DELAY: Final = 0.25
"""Seconds that a row waits for others."""
MOST_ROWS: Final = 500
"""Rows that are written at once."""
RETRY_SECONDS: Final = 1.0
PRUNE_SECONDS: Final = 600.0
PRUNE_BATCH: Final = 1000
HOUR: Final = 3_600.0
DAY: Final = 86_400.0

OUTAGE: Final = Failure(
    kind="overloaded",
    message="service unavailable: requests cannot be recorded now, and the gateway answers none that are not",
    retry_after=5.0,
)

_logger = logging.getLogger("xenoglot.gateway")


class RequestRecorder:
    """Writes rows into the ledger of a store. `dialects` are those of the upstreams, by name."""

    def __init__(self, store: TimedStore, settings: LedgerSettings) -> None:
        self.dialects: dict[str, str] = {}
        self.used: Callable[[Iterable[str], float], None] | None = None
        """Notes which keys have been used, by their ids, and when."""
        self.redact: BodyRedactor | None = None
        """Redacts captured bodies; `None` if there are none."""
        self.capture_seconds = 0.0
        """How long captured bodies are kept."""
        self.written = 0
        self.dropped = 0
        self.failing = False
        """Whether the last write failed."""
        self._store = store
        self._database = cast("Database", store.store)
        self._settings = settings
        self._queue: deque[tuple[RequestLog, float, float]] = deque()
        """Requests, when each ended by its own clock, and by that of the world."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._pruned = 0.0
        self._closed = False

    def keep_captures(self, settings: CaptureSettings, redact: Callable[[str], str]) -> None:
        """Write captured bodies as `settings` describe, without the secrets that `redact` knows."""
        self.redact = BodyRedactor(settings.fields, redact)
        self.capture_seconds = settings.max_age_hours * HOUR

    @property
    def waiting(self) -> int:
        """How many rows wait to be written."""
        return len(self._queue)

    def add(self, record: RequestLog, ended: float) -> None:
        """Queue a request that is over."""
        queue = self._queue
        if record.model is None and ((record.status or 0) < FIRST_FAILED_STATUS or _administers(record)):
            return  # health checks, metrics, lists of models, the administration
        if len(queue) >= self._settings.queue:
            self.dropped += 1
            return
        queue.append((record, ended, self._store.now()))
        if self._task is not None or self._closed:
            return
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self._begin)
        elif len(queue) == MOST_ROWS and not self.failing:
            self._timer.cancel()
            self._begin()

    def check(self) -> None:
        """Refuse a request if none may be answered that cannot be recorded.

        Raises:
            FailureError: so it is.
        """
        if self.failing and self._settings.on_outage == "refuse":
            raise FailureError(OUTAGE)

    async def flush(self) -> None:
        """Write what is queued; what cannot be written stays."""
        if self._task is not None:
            await self._task  # it may have begun before the last rows were queued
        if self._timer is not None:
            self._timer.cancel()
        self._begin()
        if self._task is not None:
            await self._task

    async def aclose(self) -> None:
        """Write what is queued; what cannot be written is lost, and counted."""
        self._closed = True
        await self.flush()
        if self._queue:
            _logger.error("the ledger lost %d requests: the store cannot be written", len(self._queue))
            self.dropped += len(self._queue)
            self._queue.clear()

    def _begin(self) -> None:
        self._timer = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled() or self._closed:
            return
        if self._queue:
            delay = RETRY_SECONDS if self.failing else DELAY
            self._timer = task.get_loop().call_later(delay, self._begin)

    async def _run(self) -> None:
        while self._queue:
            batch = list(islice(self._queue, MOST_ROWS))
            try:
                await self._write(batch)
            except Exception as error:  # noqa: BLE001  whatever it is: rows wait, and are written one by one
                if not self.failing:
                    _logger.error("the ledger cannot be written, rows wait: %s", whereabouts(error))  # noqa: TRY400  no texts
                self.failing = True
                return
            if self.failing:
                _logger.info("the ledger is written again")
            self.failing = False
            if len(self._queue) < MOST_ROWS and not self._closed:
                break
        await self._prune()

    async def _write(self, batch: Sequence[tuple[RequestLog, float, float]]) -> None:
        """Write the first rows of the queue, and take them out of it."""
        captures = await self._captures(batch)
        try:
            writing = self._add(batch, captures, again=self.failing)
            self.written += await self._store.within(self._database.write(writing))
        except Exception:
            if not self.failing:
                raise
            await self._write_each(batch)  # without captured bodies, one of which may be what cannot be written
        else:
            for _ in batch:
                self._queue.popleft()
            if self.used is not None:
                self.used({record.client.key for record, _, _ in batch if record.client.key}, batch[-1][2])

    async def _write_each(self, batch: Sequence[tuple[RequestLog, float, float]]) -> None:
        """Write rows of which one may be what cannot be written.

        Raises:
            StoreError: the store itself fails; the rows that are not written yet stay.
        """
        for one in batch:
            try:
                self.written += await self._store.within(self._database.write(self._add((one,), (), again=True)))
            except Exception as error:  # noqa: BLE001  the next line finds out whether it is the store or the row
                await self._store.within(self._database.read(_nothing()))
                self.dropped += 1
                _logger.error("the ledger lost request %s: %s", one[0].request_id, whereabouts(error))  # noqa: TRY400  as above
            self._queue.popleft()

    async def _captures(self, batch: Sequence[tuple[RequestLog, float, float]]) -> Sequence[CaptureRow]:
        """Return the rows of captured bodies, which are made in a thread."""
        redact, captured = self.redact, [one for one in batch if one[0].capture is not None]
        if redact is None or not captured:
            return ()
        return await asyncio.to_thread(
            lambda: [
                row
                for record, ended, now in captured
                for row in capture_rows(
                    record, cast("Capture", record.capture), ended, redact, now + self.capture_seconds
                )
            ]
        )

    def _add(
        self,
        batch: Sequence[tuple[RequestLog, float, float]],
        captures: Sequence[CaptureRow],
        *,
        again: bool,
    ) -> Steps[int]:
        rows: list[RowValues] = []
        sums: dict[SumKey, list[int]] = {}
        known: set[str] = set()
        if again:
            known = yield from queries.known([record.request_id for record, _, _ in batch])

        def prepare() -> None:
            new = [one for one in batch if one[0].request_id not in known]
            rows.extend(request_row(record, ended, now, self.dialects) for record, ended, now in new)
            sums.update(summed(rows))

        yield ThreadStatement.by(prepare)
        if rows:
            yield from queries.add_summed(rows, sums)
        if captures:
            yield from bodies.add_captures(captures)
        return len(rows)

    async def _prune(self) -> None:
        now = self._store.now()
        if now - self._pruned < PRUNE_SECONDS or self._closed:
            return
        self._pruned = now
        before = now - self._settings.max_age_days * DAY
        sums_before = now - self._settings.usage_max_age_days * DAY
        try:
            while await self._store.within(self._database.write(queries.prune(before, sums_before, PRUNE_BATCH))):
                pass
            while await self._store.within(self._database.write(bodies.prune_captures(now, PRUNE_BATCH))):
                pass
        except StoreError as error:
            _logger.error("old rows of the ledger are not deleted: %s", error)  # noqa: TRY400  no texts


def _administers(record: RequestLog) -> bool:
    return record.route is not None and record.route.startswith(("/admin/", "/console"))


def _nothing() -> Steps[int]:
    yield queries.CHECK
    return 0
