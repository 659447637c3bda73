"""A few daemon threads for calls that may never return: the process ends without waiting for them."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class _Job(NamedTuple):
    """A call, and who waits for it."""

    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]

    def run(self) -> None:
        """Make the call, unless its caller waits no longer."""
        if self.future.cancelled():
            return
        try:
            made = self.work()
        except BaseException as error:  # noqa: BLE001  the caller gets it
            self._tell(self._set, None, error)
        else:
            self._tell(self._set, made, None)

    def _tell(self, *call: Any) -> None:  # noqa: ANN401  a function and its arguments
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(*call)

    def _set(self, made: Any, error: BaseException | None) -> None:  # noqa: ANN401  whatever the call returns
        if self.future.done():
            return
        if error is None:
            self.future.set_result(made)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.future.set_exception(error)
        else:  # a future takes neither, and nothing in a thread may end the process
            self.future.set_exception(RuntimeError(f"{type(error).__name__} in a thread"))


class DaemonThreads:
    """At most `most` threads; a call waits while all are busy."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._lock = threading.Lock()

    def run(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Return what `work` returns in a thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            starts = self._idle <= self._jobs.qsize() and self._threads < self._most
            self._threads += starts
        self._jobs.put(_Job(work, loop, future))
        if starts:
            threading.Thread(target=self._serve, name="hook", daemon=True).start()
        return future

    def close(self) -> None:
        """Have the threads end when they have nothing more to do."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
            if job is None:
                return
            job.run()
