"""A run of the tool loop as a stream of its events, async and blocking."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Self

from xenoglot.client.tool_loop.driver import Driver, RunObserver
from xenoglot.tools.budget import RunSpend

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from xenoglot.client.loop_thread import LoopThread
    from xenoglot.client.tool_loop.caller import Caller
    from xenoglot.client.tool_loop.driver import ModelCallOptions
    from xenoglot.model.request import Message
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.loop import ToolLoop
    from xenoglot.tools.result import RunResult

AHEAD: Final = 64
"""Events that a run may be ahead of its observer before it waits."""


class _End(Enum):
    """Marker after the last event."""

    END = auto()


class ThreadJob:
    """A function that the caller's own thread runs for the loop."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self._future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def result(self) -> object:
        """Wait for its result."""
        return await self._future

    async def finish(self, result: object, error: Exception | None) -> None:
        """Set the result or error; called in the loop of the run."""
        if self._future.done():
            return
        if error is None:
            self._future.set_result(result)
        else:  # no future can hold a `StopIteration`
            self._future.set_exception(RuntimeError(str(error)) if isinstance(error, StopIteration) else error)


class _Pipe:
    """Queue between the run and its observer; the run waits when it is too far ahead."""

    def __init__(self) -> None:
        self._items: deque[RunEvent | ThreadJob | _End] = deque()
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._idle = asyncio.Event()

    def put_nowait(self, item: RunEvent | ThreadJob | _End) -> None:
        self._items.append(item)
        self._idle.clear()
        self._filled.set()

    async def put(self, item: RunEvent | ThreadJob) -> None:
        self.put_nowait(item)
        if len(self._items) > AHEAD:
            self._drained.clear()
            await self._drained.wait()

    async def get(self) -> RunEvent | ThreadJob | _End:
        while not self._items:
            self._filled.clear()
            self._idle.set()
            await self._filled.wait()
        if isinstance(self._items[0], _End):  # it stays
            return self._items[0]
        item = self._items.popleft()
        if len(self._items) <= AHEAD:
            self._drained.set()
        return item

    def get_queued(self) -> list[RunEvent | ThreadJob | _End]:
        """Take the queued items; the end marker stays."""
        items = [item for item in self._items if not isinstance(item, _End)]
        self._items = deque(item for item in self._items if isinstance(item, _End))
        self._drained.set()
        return list(items)

    async def wait_read(self) -> None:
        """Wait until the observer has read everything and waits for more."""
        await self._idle.wait()

    def unread(self) -> list[RunEvent]:
        """Take the unread events."""
        items = [item for item in self._items if not isinstance(item, ThreadJob | _End)]
        self._items = deque([_End.END])
        return items


class AsyncRunStream:
    """One run, event by event.

        async with client.run_stream("What is the weather in Oslo?", [weather]) as run:
            async for event in run:
                print(event)
        print(run.result.text)

    The run starts on entry or at the first event. Leaving the block early cancels the run, as does `cancel`: work in
    progress is stopped, and `result` has the outcome `cancelled`.
    """

    def __init__(
        self,
        client: Caller,
        start: Callable[[], Awaitable[tuple[ToolLoop, ModelCallOptions]]],
        *,
        here: bool = False,
    ) -> None:
        self._client = client
        self._start_loop = start
        self._pipe = _Pipe()
        self._in_caller_thread = here
        self._loop: ToolLoop | None = None
        self._driver: Driver | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False

    @property
    def result(self) -> RunResult | None:
        """How the run ended; `None` while it has not."""
        return None if self._driver is None else self._driver.result

    @property
    def messages(self) -> tuple[Message, ...]:
        """The transcript so far: complete messages, each call with its result."""
        return () if self._loop is None else self._loop.messages

    @property
    def spent(self) -> RunSpend:
        """The usage so far."""
        return RunSpend() if self._loop is None else self._loop.spent

    def spend(self, more: RunSpend) -> None:
        """Add the usage of a tool's own model calls, except seconds; call it in the run's event loop."""
        if self._loop is not None:
            self._loop.spend(more)

    def cancel(self) -> None:
        """End the run with the outcome `cancelled`; call it in the run's event loop. The last events still follow."""
        self._cancelled = True
        if self._driver is not None and self._task is not None and not self._task.done():
            self._driver.cancelled = True
            self._task.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        item = await self.next_item()
        if isinstance(item, _End | ThreadJob):
            raise StopAsyncIteration
        return item

    async def next_item(self) -> RunEvent | ThreadJob | _End:
        """Return the next event, a job for the caller's thread, or the end. Raises the error of the run."""
        await self.start()
        item = await self._pipe.get()
        if isinstance(item, _End) and self._driver is not None and self._driver.error is not None:
            raise self._driver.error
        return item

    async def next_items(self) -> list[RunEvent | ThreadJob | _End]:
        """Return the same with all queued items, for callers in another thread."""
        return [await self.next_item(), *self._pipe.get_queued()]

    async def start(self) -> None:
        """Start the run. Does nothing the second time.

        Raises:
            ConfigurationError: an option, a tool or the client is not valid.
            FailureError: the request is not valid.
        """
        if self._driver is not None:
            return
        self._loop, asking = await self._start_loop()
        pipe = self._pipe
        here = _thread_caller(pipe) if self._in_caller_thread else None
        driver = self._driver = Driver(self._client, asking, RunObserver(_reporter(pipe), pipe.wait_read), here)
        driver.cancelled = self._cancelled
        self._task = asyncio.create_task(_driven(driver, self._loop, pipe))
        weakref.finalize(self, _abandon, self._task).atexit = False

    async def aclose(self) -> None:
        """Cancel the run if it has not ended, and wait for its end. Does nothing the second time."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})

    def unread_events(self) -> list[RunEvent]:
        """Return the unread events, after `aclose`."""
        return self._pipe.unread()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class RunStream:
    """One run, event by event, for blocking callers; the events are those of `AsyncRunStream`.

        with client.run_stream("What is the weather in Oslo?", [weather]) as run:
            for event in run:
                print(event)
        print(run.result.text)

    A blocking tool that is called alone, has no time limit and takes no `ToolContext` runs in the iterating thread; so
    does `approve`.
    """

    def __init__(self, portal: LoopThread, inner: AsyncRunStream) -> None:
        self._portal = portal
        self._inner = inner
        self._read: deque[RunEvent | ThreadJob | _End] = deque()

    @property
    def result(self) -> RunResult | None:
        """How the run ended; `None` while it has not."""
        return self._inner.result

    @property
    def messages(self) -> tuple[Message, ...]:
        """The transcript so far: complete messages, each call with its result."""
        return self._inner.messages

    @property
    def spent(self) -> RunSpend:
        """The usage so far."""
        return self._inner.spent

    def cancel(self) -> None:
        """End the run with the outcome `cancelled`; from any thread or signal handler. The last events still follow."""

        async def cancel() -> None:
            self._inner.cancel()

        self._portal.schedule(cancel)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RunEvent:
        while True:
            if not self._read:
                self._portal.call(self._fill)
            item = self._read.popleft()
            if isinstance(item, _End):
                raise StopIteration
            if not isinstance(item, ThreadJob):
                return item
            self._work(item)

    def close(self) -> None:
        """Cancel the run if it has not ended, and wait for its end."""
        with suppress(RuntimeError):  # the client is closed, and the run with it
            self._portal.call(self._inner.aclose)

    def unread_events(self) -> list[RunEvent]:
        """Return the unread events, after `close`."""
        read = [item for item in self._read if not isinstance(item, ThreadJob | _End)]
        self._read.clear()
        return [*read, *self._inner.unread_events()]

    def __enter__(self) -> Self:
        self._portal.call(self._inner.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _fill(self) -> None:
        """Read in the loop of the run: what was read is kept if the caller is interrupted while it waits."""
        self._read.extend(await self._inner.next_items())

    def _work(self, job: ThreadJob) -> None:
        """Do something for the run in this thread."""
        result, failed = None, None
        try:
            result = job.function()
        except Exception as error:  # noqa: BLE001  it comes out of the run
            failed = error
        self._portal.call(lambda: job.finish(result, failed))


def _reporter(pipe: _Pipe) -> Callable[[RunEvent, bool], Awaitable[None]]:
    async def tell(event: RunEvent, hurried: bool) -> None:  # noqa: FBT001  of a run that is cancelled nobody may read on
        if hurried:
            pipe.put_nowait(event)
        else:
            await pipe.put(event)

    return tell


def _thread_caller(pipe: _Pipe) -> Callable[[Callable[[], object]], Awaitable[object]]:
    async def call(function: Callable[[], object]) -> object:
        job = ThreadJob(function)
        pipe.put_nowait(job)
        return await job.result()

    return call


async def _driven(driver: Driver, flow: ToolLoop, pipe: _Pipe) -> None:
    try:
        await driver.drive(flow)
    except BaseException as error:
        driver.error = error
        raise
    finally:
        pipe.put_nowait(_End.END)


def _abandon(task: asyncio.Task[None]) -> None:
    """Cancel a run whose stream was collected, because it would continue to spend."""
    if task.done():
        return
    with suppress(RuntimeError):  # the loop is gone already
        task.get_loop().call_soon_threadsafe(task.cancel)
