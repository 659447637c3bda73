"""Reads a stream in its event loop for an iterating thread, so that each batch wakes only that thread."""

from __future__ import annotations

import asyncio
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from xenoglot.client.loop_thread import CLOSED, main_thread_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.client.call.answer_stream import AsyncItems
    from xenoglot.client.loop_thread import LoopThread

Item = TypeVar("Item")

AHEAD: Final = 64
"""Batches read ahead of the caller before the upstream is back-pressured."""


class ThreadStream(Generic[Item]):
    """Reads `items` to their end, at most `AHEAD` batches ahead of the caller.

    `start` and `aclose` are awaited in the loop of `portal`; `receive` blocks and is called from other threads.
    """

    def __init__(self, portal: LoopThread, items: AsyncItems[Item]) -> None:
        self._portal = portal
        self._items = items
        self._batches: SimpleQueue[Sequence[Item] | BaseException] = SimpleQueue()
        self._reading = asyncio.Event()
        self._resumed = asyncio.Event()
        self._paused = False
        """Whether it waits for the caller."""

    async def start(self) -> None:
        """Start reading, once.

        Raises:
            FailureError: no answer.
        """
        await self._items.__aenter__()
        if not self._reading.is_set():
            self._portal.schedule(self._read)
            await self._reading.wait()  # from there on it ends with a word to whoever waits

    def receive(self) -> Sequence[Item]:
        """Wait for the next batch; empty at the end.

        Raises:
            FailureError: the answer fails, or has no end.
        """
        found = self._wait()
        if isinstance(found, BaseException):
            self._batches.put(())
            raise found
        if not found:
            self._batches.put(found)  # for whoever asks again
        elif self._paused and self._batches.qsize() <= AHEAD // 2:
            self._portal.schedule(self._resume)
        return found

    async def aclose(self) -> None:
        """Stop the stream and its upstream at once; waiting callers get the end."""
        try:
            await self._items.aclose()
        finally:
            self._resumed.set()
            if not self._reading.is_set():
                self._batches.put(())

    def _wait(self) -> Sequence[Item] | BaseException:
        seconds = main_thread_seconds()
        while True:
            try:
                return self._batches.get(timeout=seconds)
            except Empty:
                continue

    async def _read(self) -> None:
        self._reading.set()
        try:
            while batch := await self._items._more():  # noqa: SLF001  the same room
                self._batches.put(batch)
                if self._batches.qsize() >= AHEAD:
                    await self._pause()
        except asyncio.CancelledError:
            self._batches.put(RuntimeError(CLOSED))
            raise
        except BaseException as error:  # noqa: BLE001  it comes out where it is waited for
            self._batches.put(error)
        else:
            self._batches.put(())
        finally:
            await self._items.aclose()

    async def _pause(self) -> None:
        """Wait until half of what was read is received."""
        self._resumed.clear()
        self._paused = True
        if self._batches.qsize() > AHEAD // 2:  # else it was taken before anybody could see that this waits
            await self._resumed.wait()
        self._paused = False

    async def _resume(self) -> None:
        self._resumed.set()
