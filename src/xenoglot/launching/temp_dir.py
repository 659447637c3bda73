"""Temporary folder for the files of one run: private to the user, and removed at the end, even after a kill.

Theory of operation. A run holds a lock on its folder, and so does its program, which inherits the lock: an unlocked
folder belongs to a run that was killed, and the next run removes it. The parent folder is locked while folders are
listed or created.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_OF_OTHERS = 0o022
"""What lets others write."""


@contextmanager
def private_folder(environ: Mapping[str, str]) -> Generator[str]:
    """Give a new folder that is this user's alone, where there is such a place below one that is so, too."""
    place = _place(environ)
    with ExitStack() as stack:
        if place is None:
            yield stack.enter_context(TemporaryDirectory(prefix="xenoglot-run-", ignore_cleanup_errors=True))
            return
        with _held(place):
            for left in place.glob("run-*"):
                with suppress(OSError), _held(left, wait=False):
                    shutil.rmtree(left)
            folder = stack.enter_context(TemporaryDirectory(prefix="run-", dir=place, ignore_cleanup_errors=True))
            stack.enter_context(_held(Path(folder), inherited=True))
        yield folder


def _place(environ: Mapping[str, str]) -> Path | None:
    """Return a parent folder that other users cannot write to: some programs read no settings below a shared one."""
    given = environ.get("XDG_RUNTIME_DIR") or environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        place = Path(given).expanduser() / "xenoglot-run"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = place.stat()
    except (OSError, RuntimeError):
        return None
    if sys.platform != "win32" and (found.st_uid != os.getuid() or found.st_mode & _OF_OTHERS):
        return None
    return place if os.access(place, os.W_OK) else None


@contextmanager
def _held(folder: Path, *, wait: bool = True, inherited: bool = False) -> Generator[None]:
    """Hold the lock on a folder; if the file system has no locks, a blocking request continues without.

    Raises:
        OSError: the request does not block, and the lock is held elsewhere or unsupported; or no such folder exists.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415  not every system has it

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if not wait:
                raise
        os.set_inheritable(descriptor, inherited)
        yield
    finally:
        os.close(descriptor)
