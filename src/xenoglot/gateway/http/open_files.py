"""The limit on open files (`RLIMIT_NOFILE`): raised for the connections that are configured, which are fitted to it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

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
