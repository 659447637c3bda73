"""Resources of the process: freed memory is returned to the system, and the limit on open files is raised."""

from __future__ import annotations

import os
from contextlib import suppress
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


try:
    import resource
except ImportError:  # Windows: its sockets are not counted so
    resource = None  # type: ignore[assignment]  # what is not there

PER_CONNECTION: Final = 2
"""Descriptors for one client: its connection, and the upstream connection that answers it."""

RESERVE: Final = 192
"""Descriptors for everything else: connections beyond the most, idle ones to upstreams, the store, logs."""

_SHARE: Final = 4
"""At most one in so many descriptors is reserved, where there are few."""


def raise_limit(wanted: int) -> int | None:
    """Raise the soft limit to `wanted`, or as far as the hard limit lets it; return it. `None` is no limit.

    It is not raised further: some programs that this process starts close every descriptor up to their limit one by
    one, and a hard limit can be a thousand million.
    """
    if resource is None:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if raised > soft:
        with suppress(OSError, ValueError):  # some kernels have a lower limit of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            return raised
    return soft


def count_open() -> int:
    """Return how many descriptors the process has open; 0 where the system does not list them."""
    try:
        return len(os.listdir("/dev/fd"))  # noqa: PTH208  the number is all that is wanted
    except OSError:
        return 0


def needed(most: int, used: int) -> int:
    """Return how many descriptors `most` connections need where `used` are open before the first."""
    return used + RESERVE + PER_CONNECTION * most


def fit_connections(most: int, used: int, limit: int | None) -> int:
    """Return for how many of `most` connections `limit` descriptors are enough; at least one."""
    if limit is None or needed(most, used) <= limit:
        return most
    spare = limit - used
    return max(1, min(most, (spare - min(RESERVE, spare // _SHARE)) // PER_CONNECTION))
