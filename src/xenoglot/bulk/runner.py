"""Runner of a batch: sends lines in parallel, retries each, and writes every answer at once.

Theory of operation. As many workers as lines may be in flight take the next line each, send it, and retry if that may
help; `RateControl` decides when. The outcome of a line is one line of the journal. Three things end a run early: an
interrupt, a server that rejects every request (like a wrong key), or a server that has not answered for so long that it
is considered down. Lines in flight are then finished, waiting lines are left for the next run. While the server is
unreachable no line fails, because the line is not at fault.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from math import isinf
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.batch_lines import BatchLine, LineMark, LineOutcome, encode_line
from xenoglot.bulk.line_request import LineReport, failed_line, tokens_of
from xenoglot.bulk.rate_control import RateControl
from xenoglot.errors import whereabouts
from xenoglot.model.failure import Failure
from xenoglot.policy.failure_policy import judge
from xenoglot.policy.target_health import Retry, delay

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from xenoglot.bulk.journal import Journal
    from xenoglot.bulk.rate_control import Ticket

LONG_RETRY: Final = Retry(attempts=6, base=1.0, cap=60.0, wait_limit=3_600.0, timeouts=True)
"""Retry policy of a line: no user waits for it, and a server may be overloaded for a while."""

IN_A_ROW: Final = 5
"""Consecutive failed attempts before the server is considered down ..."""

SILENCE: Final = 300.0
"""... and seconds without an answer."""

SILENCE_AT_FIRST: Final = 60.0
"""The same if nothing was ever answered: the address may be wrong, and the user is waiting."""

SYNC_SECONDS = 1.0

_REFUSED = frozenset({"authentication", "billing"})
"""Kinds of failure that would affect every line."""

_SLOW = Failure(kind="timeout", message="the model did not answer in time", cause="timeout")
_OVERLOAD_KINDS = frozenset({"rate_limit", "overloaded"})
_NO_SERVER = frozenset({None, "connect"})


class RunnerSettings(Struct, frozen=True, kw_only=True):
    """Settings of a run: concurrency, rates, timeout and retries of a line; clock and random source."""

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: float = 600.0
    retry: Retry = LONG_RETRY
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random


class Task(NamedTuple):
    """A line to answer, and its mark."""

    line: BatchLine
    mark: LineMark


class Runner:
    """One run. `ask` attempts a line once; `heard` is called for each answered line, after it is written."""

    def __init__(
        self,
        ask: Callable[[BatchLine], Awaitable[LineReport]],
        journal: Journal,
        rules: RunnerSettings,
        *,
        heard: Callable[[LineReport], None] = lambda _: None,
    ) -> None:
        self.stopped: str | None = None
        """Why the run ends before its last line, if it does."""
        self._answer = ask
        self._journal = journal
        self._rules = rules
        self._on_answer = heard
        self._clock = rules.clock
        self._chance = rules.chance
        self._pace = RateControl(
            rules.concurrency,
            requests_per_minute=rules.requests_per_minute,
            tokens_per_minute=rules.tokens_per_minute,
        )
        self._answered = 0
        self._in_a_row = 0
        self._failing_since = 0.0
        self._why = ""
        self._door = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._finished = asyncio.Event()
        self._working: list[asyncio.Task[None]] = []

    def stop(self, reason: str) -> None:
        """Send no further line; lines in flight are finished."""
        if self.stopped is None:
            self.stopped = reason
        self._stopping.set()
        self._notify()

    def abandon(self) -> None:
        """Cancel lines in flight, too."""
        for task in self._working:
            task.cancel()

    async def run(self, todo: Iterator[Task]) -> None:
        """Answer all lines of `todo`, which is read only as far as lines are sent.

        Raises:
            Any exception of `todo`.
        """
        syncing = asyncio.create_task(self._sync())
        self._working = [asyncio.create_task(self._work(todo)) for _ in range(self._rules.concurrency)]
        try:
            await asyncio.wait(self._working, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self.abandon()
            ended = await asyncio.gather(*self._working, return_exceptions=True)
            self._finished.set()
            await syncing
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _work(self, todo: Iterator[Task]) -> None:
        while self.stopped is None and (task := next(todo, None)) is not None:
            asked = await self._answer_with_retries(task.line)
            if asked is not None:
                self._finish_line(task, asked)

    async def _answer_with_retries(self, line: BatchLine) -> LineReport | None:
        """Attempt a line until it is answered or failed; `None` if the run ends before."""
        attempt, counted, before = 0, 0, self._answered
        tokens = 0 if self._rules.tokens_per_minute is None else tokens_of(line)
        while (ticket := await self._acquire(tokens)) is not None:
            asked = await self._attempt(line, ticket)
            attempt += 1
            failure = None if asked.failure is None else _without_retry_flag(asked.failure)
            self._count(failure)
            if failure is None:
                return asked
            if failure.kind in _REFUSED or failure.cause == "credentials":
                self.stop(f"the model's server refuses all that is asked: {failure.message}")
                return None
            if not _is_unreachable(failure) or self._answered != before:  # others are answered, and this one is not
                counted, before = counted + 1, self._answered
            wait = None if asked.outcome.unanswered else self._wait(failure, attempt, counted)
            if wait is None:
                return asked
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)
        return None

    def _wait(self, failure: Failure, attempt: int, counted: int) -> float | None:
        """Return the seconds until a failed line is retried, `None` for no retry.

        The waits grow with its attempts; `counted` attempts may be the line's own fault.
        """
        retry = self._rules.retry
        forbidden = failure.kind == "permission" or failure.cause == "forbidden"  # by all of our keys
        again = judge(failure, retry).retry_same and not forbidden
        if not again or counted >= retry.attempts:
            return None
        return delay(retry, attempt, failure.retry_after, self._chance())

    def _count(self, failure: Failure | None) -> None:
        """Count consecutive attempts without an answer; an error about the line is an answer."""
        verdict = None if failure is None or failure.non_retryable else judge(failure, self._rules.retry)
        if failure is None or verdict is None or not (verdict.retry_same or verdict.retry_other):
            self._in_a_row = 0
            self._answered += 1
            return
        now = self._clock()
        if not self._in_a_row:
            self._failing_since = now
        if not self._in_a_row or failure.cause is not None or failure.status is not None:
            self._why = failure.message  # of a breaker of ours, why it opened says more
        self._in_a_row += 1
        silence = now - self._failing_since
        if self._in_a_row >= IN_A_ROW and silence >= (SILENCE if self._answered else SILENCE_AT_FIRST):
            self.stop(f"nothing was answered for {silence:.0f} s; the last failure: {self._why}")

    async def _attempt(self, line: BatchLine, ticket: Ticket) -> LineReport:
        """Attempt a line once."""
        used: int | None = None
        try:
            async with asyncio.timeout(self._rules.timeout):
                asked = await self._answer(line)
        except TimeoutError:
            return LineReport(outcome=LineOutcome(unanswered="timeout"), failure=_SLOW)
        except Exception as error:  # noqa: BLE001  one line that hits a bug of ours must not take the others with it
            message = f"this line could not be asked: {whereabouts(error)}"
            return failed_line(line, Failure(kind="internal", message=message, non_retryable=True))
        else:
            if asked.usage is not None:
                used = (asked.usage.input_tokens or 0) + (asked.usage.output_tokens or 0)
            self._learn(asked, ticket)
            return asked
        finally:
            self._pace.end(self._clock(), ticket, used)
            self._notify()

    def _learn(self, asked: LineReport, ticket: Ticket) -> None:
        if asked.failure is None:
            self._pace.on_success()
        elif asked.failure.kind in _OVERLOAD_KINDS:
            after = asked.failure.retry_after or 0.0  # of a longer wait than ours the line ends, and no other waits
            self._pace.on_overload(self._clock(), ticket, after if after <= self._rules.retry.wait_limit else 0.0)

    async def _acquire(self, tokens: int) -> Ticket | None:
        """Wait until one more line may be sent; `None` if the run ends."""
        async with self._door:
            while self.stopped is None:
                seconds = self._pace.wait(self._clock(), tokens)
                if seconds <= 0:
                    return self._pace.begin(self._clock(), tokens)
                await self._change(None if isinf(seconds) else seconds)
        return None

    async def _change(self, seconds: float | None) -> None:
        """Wait until something happens, at most so long."""
        self._changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def _notify(self) -> None:
        self._changed.set()

    def _finish_line(self, task: Task, asked: LineReport) -> None:
        """Write the outcome of a line."""
        line, mark = task
        try:
            self._journal.write(line.number, encode_line(line, mark, asked.outcome), ok=asked.outcome.ok)
        except OSError as error:
            self.stop(f"the output cannot be written: {error.strerror}")
            return
        self._on_answer(asked)

    async def _sync(self) -> None:
        """Sync the journal to disk at an interval."""
        while not self._finished.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._finished.wait(), SYNC_SECONDS)
            try:
                await asyncio.to_thread(self._journal.sync)
            except OSError as error:
                self.stop(f"the output cannot be written: {error.strerror}")


def _without_retry_flag(failure: Failure) -> Failure:
    """Return the failure without `non_retryable`: that it was retried before is no reason to give up."""
    told = failure.status is not None or failure.cause is not None  # else our own verdict on a request or an answer
    return replace(failure, non_retryable=False) if told else failure


def _is_unreachable(failure: Failure) -> bool:
    """Whether the failure is not a server's: unreachable, or rejected by our own limits and breakers."""
    return failure.status is None and failure.cause in _NO_SERVER
