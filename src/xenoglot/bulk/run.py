"""One run of `xenoglot batch`: remaining lines, backend, progress display and summary."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec import Struct

from xenoglot.backends.batch_lines import LineMark, mark_of
from xenoglot.bulk.input_scan import numbered
from xenoglot.bulk.journal import DONE
from xenoglot.bulk.line_request import answer_line
from xenoglot.bulk.progress_counts import ProgressCounts
from xenoglot.bulk.runner import Runner, Task
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
    from typing import BinaryIO

    from xenoglot.backends.batch_lines import BatchLine
    from xenoglot.bulk.input_scan import InputScan
    from xenoglot.bulk.journal import Journal
    from xenoglot.bulk.line_request import LineReport
    from xenoglot.bulk.runner import RunnerSettings
    from xenoglot.model.response import Usage
    from xenoglot.model_selection import ModelSelection
    from xenoglot.providers.costs import Prices

INTERRUPTED: Final = "stopped"

NOTED_SECONDS = 0.5
"""Seconds between updates of the text next to the bar."""


class ProgressBar(Protocol):
    """Progress display of a run."""

    def started(self, what: str, total: int | None = None, unit: str = "") -> None:
        """Start, with `total` steps."""

    def advance(self, count: int = 1) -> None:
        """Show that so many more steps are done."""

    def note(self, text: str) -> None:
        """Show a text next to it."""

    def done(self) -> None:
        """Remove the display."""


class BatchPlan(NamedTuple):
    """What to do: the lines of `source`, as `scan` found them, that `journal` does not have yet.

    With `ordered`, the answers are sorted at the end. `prices` default to the packaged ones.
    """

    chosen: ModelSelection
    rules: RunnerSettings
    source: BinaryIO
    scan: InputScan
    journal: Journal
    read: Callable[[bytes, int], BatchLine]
    ray: str | None = None
    actors: int | None = None
    ordered: bool = False
    prices: Prices | None = None


class RunSummary(Struct, frozen=True, kw_only=True):
    """How a run ended: a summary line, the number of failed lines, and why lines are left, if any are."""

    summary: str
    failed: int
    stopped: str | None = None
    interrupted: bool = False


def run_batch(plan: BatchPlan, bar: ProgressBar | None) -> RunSummary:
    """Answer the remaining lines.

    Raises:
        XenoglotError: no backend, or the input has changed.
    """
    now, done = time.monotonic(), plan.journal.done
    tally = ProgressCounts(total=plan.scan.count, started_at=now, before=done, done=done, failed=plan.journal.failed)
    shown = _Shown(tally, bar, _price(plan.prices))
    stopped = asyncio.run(_work(plan, shown)) if done < tally.total else None
    shown.end()
    if plan.ordered and plan.journal.done == tally.total:
        plan.journal.put_in_order()
    return RunSummary(
        summary=tally.summary(time.monotonic()),
        failed=tally.failed,
        stopped=stopped,
        interrupted=stopped == INTERRUPTED,
    )


def dry_run(plan: BatchPlan) -> Iterator[Task]:
    """Yield the lines that are not answered.

    Raises:
        ConfigurationError: the input has changed since it was looked through.
    """
    states, digests = plan.journal.states, plan.scan.digests
    for number, text in numbered(plan.source):
        if number >= len(states) or mark_of(text, number).digest != digests[number]:
            raise ConfigurationError(f"the input was changed while it was read: line {number} is another now")
        if states[number] != DONE:
            yield Task(plan.read(text, number), LineMark(number, digests[number]))


async def _work(plan: BatchPlan, shown: _Shown) -> str | None:
    async with _answerer(plan) as ask:
        runner = Runner(ask, plan.journal, plan.rules, heard=shown.on_answer)
        _heed_signals(runner)
        shown.begin()
        await runner.run(dry_run(plan))
        return runner.stopped


@asynccontextmanager
async def _answerer(plan: BatchPlan) -> AsyncGenerator[Callable[[BatchLine], Awaitable[LineReport]]]:
    """Yield the function that answers a line: in this process, or on a cluster."""
    if plan.ray is not None:
        from xenoglot.bulk.cluster import cluster  # noqa: PLC0415  an extra

        async with cluster(plan.chosen.config, plan.ray, plan.actors, plan.rules.concurrency) as ask:
            yield ask
        return
    async with plan.chosen.open() as backend:
        yield partial(answer_line, backend=backend)


def _heed_signals(runner: Runner) -> None:
    """Let the first signal end the run gracefully, and the second at once."""
    if sys.platform == "win32":
        return
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if runner.stopped is not None:
            runner.abandon()
        runner.stop(INTERRUPTED)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


class _Shown:
    """Progress display of a run, with its counters."""

    def __init__(
        self, tally: ProgressCounts, bar: ProgressBar | None, price: Callable[[Usage | None, str | None], float | None]
    ) -> None:
        self._tally = tally
        self._bar = bar
        self._noted = tally.started_at
        self._price = price

    def begin(self) -> None:
        """Show the number of lines."""
        tally = self._tally
        tally.started_at = time.monotonic()
        if self._bar is not None:
            self._bar.started("batch", tally.total, "lines")
            self._bar.advance(tally.done)

    def on_answer(self, one: LineReport) -> None:
        """Show that a line was answered."""
        self._tally.count(one, self._price(one.usage, one.model))
        if self._bar is None:
            return
        self._bar.advance()
        now = time.monotonic()
        if now - self._noted >= NOTED_SECONDS:
            self._noted = now
            self._bar.note(self._tally.text(now))

    def end(self) -> None:
        """Remove the display."""
        if self._bar is not None:
            self._bar.note(self._tally.text(time.monotonic()))
            self._bar.done()


def _price(given: Prices | None) -> Callable[[Usage | None, str | None], float | None]:
    """Return the price function of an answer, in US dollars."""
    from xenoglot.providers.costs import Prices  # noqa: PLC0415  prices are loaded where something is counted

    prices = given or Prices()

    def price(usage: Usage | None, model: str | None) -> float | None:
        cost = prices.cost(usage, model)
        return None if cost is None else cost.total

    return price
