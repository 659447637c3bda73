"""Return freed memory to the system after a peak of requests: glibc keeps it for the next peak otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

TRIM_SECONDS: Final = 60.0
"""The shortest time between two trims."""

IDLE_SECONDS: Final = 5.0
"""How long no request must have been in progress: a short gap between two requests is no end of a peak."""


class PeakDetector:
    """Decides when a peak of requests has ended. Pure: the time is an argument."""

    __slots__ = ("_idle_since", "_trimmed_at", "_used")

    def __init__(self) -> None:
        self._used = False
        """Whether there was a request since the last trim."""
        self._idle_since: float | None = None
        self._trimmed_at: float | None = None

    def ended(self, running: int, now: float) -> bool:
        """Return whether to trim now, `running` requests being in progress. To be called about once a second."""
        if running:
            self._used = True
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        recent = self._trimmed_at is not None and now - self._trimmed_at < TRIM_SECONDS
        if not self._used or recent or now - self._idle_since < IDLE_SECONDS:
            return False
        self._used = False
        self._trimmed_at = now
        return True


def trim() -> bool:
    """Return what the C library holds free to the system; return whether it can (glibc only).

    It walks all free memory, which takes up to 0.3 s for 500 MB on a busy machine, and other threads wait where they
    need memory of the C library meanwhile. So it is called when no request is in progress, at most once a minute, in a
    thread, and without the interpreter's lock.
    """
    import ctypes  # noqa: PLC0415  most gateways start, and stop, without a peak

    try:
        malloc_trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl, macOS and Windows have none
        return False
    malloc_trim(0)
    return True
