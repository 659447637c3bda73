"""Whether the event loop turns: what blocks it blocks everybody (R51, K16).

A thread asks the loop to answer, some times a second. While no answer comes it looks what the loop's thread is doing;
when it comes late, the log reports for how long the loop was blocked, and where.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

PROBE_SECONDS: Final = 0.1
"""How often the loop is probed."""

LATE_SECONDS: Final = 0.25
"""An answer later than this is reported."""

PACKAGE: Final = "xenoglot"

_logger = logging.getLogger("xenoglot.gateway")


class LoopLag(Struct):
    """How late the loop was: when last asked, at worst so far, and how often too late; seconds."""

    last: float = 0.0
    worst: float = 0.0
    stalls: int = 0

    def note(self, seconds: float, place: str) -> None:
        """Note an answer, and what was seen while it was waited for."""
        self.last = seconds
        self.worst = max(self.worst, seconds)
        if seconds > LATE_SECONDS:
            self.stalls += 1
            _logger.warning("the event loop stood still for %d ms%s", seconds * 1000, f" at {place}" if place else "")


class Watchdog(threading.Thread):
    """Watches the running loop, of the current thread, until it is stopped."""

    def __init__(self, lag: LoopLag, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._lag = lag
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._answered = threading.Lock()
        """Free for a moment, when the loop has answered: waiting for a lock is a fifth of waiting for an event."""
        self._answered.acquire()
        self._stopped = threading.Lock()
        """Free when the loop is no longer watched."""
        self._stopped.acquire()

    def run(self) -> None:
        """Ask, and wait for the answer, again and again."""
        while not self._stopped.acquire(timeout=PROBE_SECONDS):
            asked = self._clock()
            place = ""
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # the loop is closed
                return
            while not self._answered.acquire(timeout=LATE_SECONDS):
                place = place or current_location(sys._current_frames().get(self._watched))  # noqa: SLF001  documented
            if self._stopped.locked():
                self._lag.note(self._clock() - asked, place)

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.release()
        self._answer()

    def _answer(self) -> None:
        if self._answered.locked():  # else it has been answered, and the thread is about to see it
            self._answered.release()


@contextmanager
def watch_loop(lag: LoopLag) -> Generator[None]:
    """Watch the running loop in the meantime."""
    watchdog = Watchdog(lag)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


def current_location(frame: FrameType | None) -> str:
    """Return the place in our code that is being worked at, from the innermost frame outwards; no values, no texts."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == PACKAGE:
            return f"{module}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
