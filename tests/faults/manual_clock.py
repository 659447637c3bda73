"""A real event loop whose clock stands still until a test advances it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from tests.backends.raw_server import turns

if TYPE_CHECKING:
    from collections.abc import Callable


TIMEOUT = 120.0
"""Real seconds after which something that has to happen has not."""


class ManualClockLoop(asyncio.SelectorEventLoop):
    """A real loop with real sockets whose clock stands until it is pushed on: a slow machine is never late."""

    now = 1_000.0

    def time(self) -> float:
        """Return the seconds of the clock."""
        return self.now


async def advance(seconds: float) -> None:
    """Let that much time pass, and let what is due happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualClockLoop)
    await turns()
    loop.now += seconds
    await turns()


async def wait_until(look: Callable[[], bool], what: str) -> None:
    """Let the loop turn until `look()` is true."""
    start = time.monotonic()
    while not look():
        await asyncio.sleep(0)
        assert time.monotonic() - start < TIMEOUT, f"it never came to this: {what}"
