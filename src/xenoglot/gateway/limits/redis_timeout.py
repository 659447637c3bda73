"""Timeout for the server of the limits that does not count the time in which this process is too busy to read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

PERIODS: Final = 2
"""Silent periods, one after another, before the server is lost. A single one can be a pause of either process."""

TURNS: Final = 8
"""Turns of the event loop in which an answer that has arrived already is read, and handed to its waiter."""


class SilenceTimeout:
    """Waits for answers; the server is silent while no answer arrives for `seconds`.

    A timer fires whenever the process runs again, and before what has arrived meanwhile is read: so after it fires,
    the loop turns a few times more. Questions that wait for a connection are not late while others are answered.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers = 0

    async def within(self, question: Coroutine[Any, Any, T]) -> T:
        """Return the answer to `question`.

        Raises:
            TimeoutError: nothing arrived for `PERIODS` times `seconds`.
        """
        asking = asyncio.get_running_loop().create_task(question)
        try:
            silent = 0
            while silent < PERIODS:
                heard = self._answers
                await asyncio.wait({asking}, timeout=self._seconds)
                await _turn(asking)
                if asking.done():
                    self._answers += 1
                    return asking.result()
                silent = 0 if self._answers != heard else silent + 1
        finally:
            if not asking.done():
                asking.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await asking
        raise TimeoutError


async def _turn(asking: asyncio.Task[Any]) -> None:
    """Let the loop read what has arrived."""
    for _ in range(TURNS):
        if asking.done():
            return
        await asyncio.sleep(0)
