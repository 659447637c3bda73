"""Cancellation of a coroutine at each of its awaits in turn, to test that it cleans up at any time.

The method is SQLite's for memory and disk errors (https://www.sqlite.org/testing.html, section 3): fail at the first
occasion, check, fail at the second, check, until nothing fails any more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

Result = TypeVar("Result")


class Interrupted(Generic[Result]):
    """Awaits `coroutine`; at its `at`-th await the current task is cancelled, as by `Task.cancel`.

    With `times` above 1 it is cancelled again at its next awaits, those of its own cleanup. `waits` counts its awaits:
    below `at`, it ended before the cancellation.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Result], at: int, *, times: int = 1) -> None:
        self.waits = 0
        self._coroutine = coroutine
        self._cancelled = range(at, at + times)

    def __await__(self) -> Generator[Any, Any, Result]:
        """Be driven by the task."""
        steps = self._coroutine.__await__()
        step, argument = steps.send, None
        while True:
            try:
                awaited = step(argument)
            except StopIteration as done:
                result: Result = done.value
                return result
            self.waits += 1
            if self.waits in self._cancelled and (task := asyncio.current_task()) is not None:
                task.cancel()
            try:
                argument = yield awaited
                step = steps.send
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's to see
                step, argument = steps.throw, error


async def interrupt(coroutine: Coroutine[Any, Any, object], at: int, *, times: int = 1) -> bool:
    """Run `coroutine` in a task that is cancelled at its `at`-th await; return whether it got there.

    Exceptions of the coroutine are raised, except its own cancellation.
    """
    interrupted = Interrupted(coroutine, at, times=times)
    task = asyncio.ensure_future(_awaited(interrupted))
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return interrupted.waits >= at


async def _awaited(interrupted: Interrupted[object]) -> None:
    await interrupted
