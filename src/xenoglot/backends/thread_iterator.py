"""Runs a blocking iterator in a thread of its own: called, advanced and closed there.

An answer has one thread from its first step to its last, because resources of a generator may belong to a thread: a
mode of a library, a connection to a database. Threads are daemons: a step that never ends blocks neither a client's
disconnect nor the end of the process. They are none of the event loop's own either, which others wait for.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import queue
import threading
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_THREADS: Final = 256
"""The most at once, including those whose step continues after its reader has gone."""

_NUMBERS = itertools.count(1)
_threads = threading.BoundedSemaphore(MOST_THREADS)

_T = TypeVar("_T")


class ThreadLimitError(Exception):
    """As many threads as there may be are busy."""


class ThreadRunner:
    """Runs one thing after the other in a thread, which begins with the first and ends with the last."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = False
        self._ended = False
        self._busy = False

    async def run(self, step: Callable[[], _T]) -> _T:
        """Return what `step` returns.

        Raises:
            ThreadLimitError: there is no thread for it.
            Exception: what it raises; what no future can hold, as `StopIteration`, is the cause of a `RuntimeError`.
        """
        if not self._started:
            self._begin()
        return await self._put(step)

    async def end(self, last: Callable[[], None] | None = None) -> None:
        """Have `last` run, and the thread end.

        While a step is in progress, `last` runs after it, and this does not wait for either. Later calls do nothing.
        """
        if self._ended or not self._started:
            return
        self._ended, busy = True, self._busy
        over = None if last is None else self._put(last)
        self._jobs.put(None)
        if over is not None and not busy:
            await asyncio.shield(over)

    def _put(self, step: Callable[[], _T]) -> asyncio.Future[_T]:
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._busy = True
        self._jobs.put(lambda: self._run(step, future))
        return future

    def _run(self, step: Callable[[], _T], future: asyncio.Future[_T]) -> None:
        """Run `step` in this thread, and resolve `future`, which belongs to another."""
        try:
            made = step()
        except BaseException as error:  # noqa: BLE001  whatever it is, whoever waits must hear of it
            raised = _holdable(error)
            self._send(future, lambda: future.set_exception(raised))
        else:
            self._send(future, lambda: future.set_result(made))

    def _send(self, future: asyncio.Future[_T], news: Callable[[], None]) -> None:
        def settle() -> None:
            self._busy = False
            if not future.done():  # else whoever waited has left
                news()

        try:
            future.get_loop().call_soon_threadsafe(settle)
        except RuntimeError:  # the loop is gone, and everybody with it
            return

    def _begin(self) -> None:
        if not _threads.acquire(blocking=False):
            raise ThreadLimitError
        name = f"xenoglot-model-{next(_NUMBERS)}"
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(_work, self._jobs), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more
            _threads.release()
            raise ThreadLimitError from None
        self._started = True


def _work(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    try:
        while (job := jobs.get()) is not None:
            job()
    finally:
        _threads.release()


def _holdable(error: BaseException) -> Exception:
    """Return what a future can hold: an exit would end the loop, and `StopIteration` is refused by every future."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    raised = RuntimeError(f"a step raised `{type(error).__name__}`")
    raised.__cause__ = error
    return raised
