"""An event loop in a thread of its own, for blocking callers.

The loop starts at the first call. It stops when it is closed, when its owner is collected, and when the interpreter
ends. A forked process has no such thread, and open connections belong to the parent process: its owner must create
another.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")

CLOSE_TIMEOUT: Final = 10.0
"""Seconds that a caller waits for a cancelled call, or for the end of the thread."""

SIGNAL_SECONDS: Final = 0.25
"""Longest delay between a signal and its Python handler while the main thread waits."""

CLOSED = "the client was closed"

_open: weakref.WeakSet[LoopThread] = weakref.WeakSet()


class LoopThread:
    """Runs coroutines in an event loop in its own thread; `end` is awaited there before the loop stops."""

    def __init__(self, end: Callable[[], Awaitable[None]]) -> None:
        self._end = end
        self._process = os.getpid()
        self._lock = threading.RLock()  # a signal's handler may close what it has interrupted
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        """Calls in progress."""

    @property
    def in_other_process(self) -> bool:
        """Whether the loop belongs to another process."""
        return os.getpid() != self._process

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `work`. An interrupted caller cancels it and waits for its end.

        Raises:
            RuntimeError: the loop is closed or of another process, or this is the loop's own thread.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("a blocking client was called from its own event loop: use `AsyncClient` there")
        if self.in_other_process:
            raise RuntimeError("what belongs to another process was called")
        call = _Call(work, self._tasks)
        loop = None
        try:  # from here on: it may be at work before this thread has come back from saying so
            with self._lock:
                loop = self._started()
                loop.call_soon_threadsafe(call.start)
            _acquire(call.finished)
        except BaseException:
            if loop is not None:
                _cancel(call, loop)
            raise
        try:
            return call.result()
        finally:
            del call  # an error holds this frame: it is not to hold itself

    def schedule(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` in the loop without waiting; safe to call from the garbage collector."""
        loop = self._loop
        if loop is not None and not self.in_other_process:
            loop.call_soon_threadsafe(lambda: _track(loop.create_task(work()), self._tasks))

    def close_soon(self) -> None:
        """Stop without waiting. Does nothing the second time, nor in another process."""
        if self.in_other_process:
            return
        with self._lock:  # what was called before is begun, and cancelled; what comes later is refused
            self._closed = True
            if self._loop is not None:  # forgotten once it is stopped: this may be interrupted, and called again
                with suppress(RuntimeError):  # it was stopped, and is closed
                    self._loop.call_soon_threadsafe(self._loop.stop)
                self._loop = None

    def close(self) -> None:
        """End, and wait for it."""
        self.close_soon()
        thread = self._thread
        if thread is not None and not self.in_other_process and thread is not threading.current_thread():
            thread.join(CLOSE_TIMEOUT)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise RuntimeError(CLOSED)
        if self._loop is None:
            _open.add(self)
            claim = threading.Lock()
            try:
                self._loop = asyncio.new_event_loop()
                told = (self._loop, claim, self._end, self._tasks)
                self._thread = threading.Thread(target=_serve, args=told, name="xenoglot-client", daemon=True)
                self._thread.start()
            except BaseException:  # interrupted, or there are no more threads
                if claim.acquire(blocking=False):  # else the thread runs, and the next call uses it
                    self._abandon()
                raise
        return self._loop

    def _abandon(self) -> None:
        """Forget a thread that does not run."""
        loop, self._loop, self._thread = self._loop, None, None
        if loop is not None:
            loop.close()


class _Call(Generic[T]):
    """A call that a thread waits for; `done` can be acquired once when it ends. The rest belongs to the loop."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], tasks: set[asyncio.Task[Any]]) -> None:
        self.finished = threading.Lock()
        self.finished.acquire()
        self.done = False
        self._work = work
        self._tasks = tasks
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._on_done())
        _track(self._task, self._tasks)
        self._task.add_done_callback(self._release)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif not self.done:  # it was never begun
            self._end()

    def result(self) -> T:
        task, self._task = self._task, None
        if task is None or task.cancelled():
            raise RuntimeError(CLOSED)
        try:
            return task.result()
        finally:
            del task

    async def _on_done(self) -> T:
        return await self._work()

    def _release(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # where the caller has left, nobody else looks at it
        self._end()

    def _end(self) -> None:
        self.done = True
        self.finished.release()


def _track(task: asyncio.Task[Any] | None, tasks: set[asyncio.Task[Any]]) -> None:
    if task is not None:
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def main_thread_seconds() -> float | None:
    """Return how long a blocking wait of this thread may take before it has to be begun again; `None`: as it likes.

    Python handles signals in the main thread, between two instructions. A signal does not end a wait if it arrives
    before the wait begins, or in another thread: Ctrl-C would be handled only when the wait is over.
    """
    return SIGNAL_SECONDS if threading.current_thread() is threading.main_thread() else None


def _acquire(lock: threading.Lock) -> None:
    seconds = main_thread_seconds()
    while not lock.acquire(timeout=-1 if seconds is None else seconds):
        pass


def _cancel(call: _Call[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Cancel a call whose caller was interrupted, and wait for its end."""
    with suppress(RuntimeError):  # the signal's handler has closed the loop, and cancelled the call
        loop.call_soon_threadsafe(call.cancel)
        if not call.done:  # else it may be acquired already
            call.finished.acquire(timeout=CLOSE_TIMEOUT)


def _serve(
    loop: asyncio.AbstractEventLoop,
    claim: threading.Lock,
    end: Callable[[], Awaitable[None]],
    tasks: set[asyncio.Task[Any]],
) -> None:
    """Run `loop` until it is stopped, and close everything. Does nothing if another thread runs the loop."""
    if not claim.acquire(blocking=False):
        return
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_ended(end, tasks))
        loop.run_until_complete(_cancelled(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _ended(end: Callable[[], Awaitable[None]], tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel the calls in progress, then await `end`, which may create tasks."""
    await _cancelled(tasks)
    await end()


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    others = tasks - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=CLOSE_TIMEOUT)


@atexit.register
def _close_all() -> None:
    """Close all open loops at exit, while threads still run."""
    for portal in tuple(_open):
        portal.close()
