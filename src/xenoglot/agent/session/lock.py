"""Locks on a session's file, and the process that holds them.

There are two. `flock` keeps others out. The additional POSIX lock is used because the system reports its owner, so
that no process id needs to be stored that may be reused; a process loses it as soon as it closes
any descriptor of the file, so it is taken again with each line. Both end with the process, however it ends.
"""

from __future__ import annotations

import os
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def lock(descriptor: int, name: str) -> None:
    """Lock the file of the session `name`, opened for writing.

    Raises:
        ConfigurationError: another process works in it.
    """
    import fcntl  # noqa: PLC0415  POSIX alone has it

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ConfigurationError(f"another process works in the session `{name}`") from None


def relock(descriptor: int) -> None:
    """Take the lock again that identifies the process of a session, after reading the file elsewhere has lost it."""
    import fcntl  # noqa: PLC0415  POSIX alone has it

    with suppress(OSError):
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def holder(path: Path) -> int | None:
    """Return the number of the other process that works in the session of that file; `None` where there is none."""
    import fcntl  # noqa: PLC0415  POSIX alone has it

    linux = sys.platform == "linux"
    wanted = (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0) if linux else (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    form = "@hhqqi4x" if linux else "@qqihh"  # struct flock of fcntl(2)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        told = struct.unpack(form, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(form, *wanted)))
    finally:
        os.close(descriptor)
    kind, pid = (told[0], told[4]) if linux else (told[3], told[2])
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None  # 0: it runs where numbers are others, as in a container
