"""Decodes and encodes large bodies in threads, within a memory limit, so that they do not block the event loop.

Theory of operation. Python code in a thread gives the interpreter's lock away every 5 ms, a call into the JSON library
when it is over: what is run here uses `codec.json.json_io`, which works in slices. Threads do not make decoding faster,
so few run at once; others wait in the order in which they came. Nothing that runs here waits for something else that
does.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

from xenoglot.codec.json.json_io import MOST_VALUES
from xenoglot.errors import FailureError
from xenoglot.model.events import ArgumentsDelta, ReasoningDelta, TextDelta
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future as Work

    from xenoglot.model.events import Event

Result = TypeVar("Result")

LARGE: Final = 128 * 1024
"""Bytes of a body from which on it is decoded in a thread: about 10 ms of it where every message is small (R51)."""

MOST_BYTES: Final = 256 * 1024 * 1024
"""Bytes, with what their values take in memory, of all bodies that are decoded or encoded at once."""

MOST_THREADS: Final = 2

WAIT_SECONDS: Final = 30.0
"""How long a body waits for its turn."""

VALUE_BYTES: Final = 100
"""Bytes in memory of a value: a member of an object, with its name, has about 150, an item 32 to 90."""


EVENT_BYTES: Final = 64
"""Bytes of a body that an event stands for: in 128 KiB there are 2,048 events, which take some 5 ms to fold."""


def weight(size: int) -> int:
    """Return what a body of `size` bytes takes at most, with its values: each has two bytes or more."""
    return size + VALUE_BYTES * min(size // 2, MOST_VALUES)


def weight_of(batch: Sequence[Event]) -> int:
    """Return about how many bytes of a body a batch of events is; each takes longer to work at than its bytes.

    Of many their number is enough.
    """
    size = EVENT_BYTES * len(batch)
    for event in batch if size < LARGE else ():
        if isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta):
            size += len(event.text)
    return size


class Offload:
    """Threads for large bodies: those that run at once weigh at most `most`, or there is only one."""

    def __init__(self, most: int = MOST_BYTES, threads: int = MOST_THREADS, wait: float = WAIT_SECONDS) -> None:
        self.used_bytes = 0
        """The weight of what runs."""
        self.most_used_bytes = 0
        """The most that it has been."""
        self._most = most
        self._threads = threads
        self._wait = wait
        self._running = 0
        self._pool = ThreadPoolExecutor(threads, "offload")
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def run(self, size: int, work: Callable[[], Result]) -> Result:
        """Return what `work` gives for a body of `size` bytes; what it raises is raised here.

        Raises:
            FailureError: others have kept it waiting for too long.
        """
        cost = weight(size)
        await self._turn(cost)
        loop = asyncio.get_running_loop()
        try:
            done: Work[Result] = self._pool.submit(contextvars.copy_context().run, work)
        except BaseException:
            self._release(cost)
            raise

        def leave(_: Work[Result]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._release, cost)

        done.add_done_callback(leave)  # and not when a task is cancelled: the thread goes on
        return await asyncio.wrap_future(done)

    async def _turn(self, cost: int) -> None:
        """Wait until there is capacity, after all earlier callers."""
        if not self._waiting and self._fits(cost):
            self._acquire(cost)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((cost, turn))
        try:
            async with asyncio.timeout(self._wait):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._release(cost)
            turn.cancel()
            self._admit()
            if isinstance(error, TimeoutError):
                raise FailureError(BUSY) from None
            raise

    def _fits(self, cost: int) -> bool:
        return not self._running or (self._running < self._threads and self.used_bytes + cost <= self._most)

    def _acquire(self, cost: int) -> None:
        self._running += 1
        self.used_bytes += cost
        self.most_used_bytes = max(self.most_used_bytes, self.used_bytes)

    def _release(self, cost: int) -> None:
        self._running -= 1
        self.used_bytes -= cost
        self._admit()

    def _admit(self) -> None:
        """Admit those that have waited longest, as long as there is capacity."""
        while self._waiting:
            cost, turn = self._waiting[0]
            if turn.done():
                self._waiting.popleft()
            elif self._fits(cost):
                self._waiting.popleft()
                self._acquire(cost)
                turn.set_result(None)
            else:
                return


BUSY: Final = Failure(
    kind="overloaded",
    message="overloaded: too many large bodies are being decoded: retry later, or send smaller ones",
    retry_after=1.0,
)

_offloads: WeakKeyDictionary[asyncio.AbstractEventLoop, Offload] = WeakKeyDictionary()
"""That of each event loop: a process has one that serves."""


def of_loop() -> Offload:
    """Return the threads of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _offloads.get(loop)
    if found is None:
        found = _offloads[loop] = Offload()
    return found


async def offload(size: int, work: Callable[[], Result]) -> Result:
    """Return what `work` gives for a body of `size` bytes: at once if it is small, else from a thread.

    Raises:
        FailureError: too many large bodies are ahead of it; and whatever `work` raises.
    """
    return work() if size < LARGE else await of_loop().run(size, work)
