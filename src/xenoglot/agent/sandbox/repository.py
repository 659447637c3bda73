"""Detects folders that are Git repositories without the name `.git`.

Git takes a folder for a repository that has a file `HEAD` and the folders `objects` and `refs`, or a file `commondir`
that tells where these are (`is_git_directory` in its `setup.c`).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

_HEAD: Final = "head"
_FOLDERS: Final = frozenset({"objects", "refs"})
_COMMON_DIR: Final = "commondir"


def is_repository(folder: int, name: str, *, is_file: bool) -> bool:
    """Return whether a folder is a repository once it has `name` in it, a file or a folder.

    Names are compared without regard to case, as file systems of other machines do. `folder` is a descriptor.

    Raises:
        OSError: the folder cannot be read.
    """
    files, folders = ({name.casefold()}, set()) if is_file else (set(), {name.casefold()})
    wanted = _FOLDERS | {_HEAD, _COMMON_DIR}
    for entry in os.listdir(folder):
        kind = entry.casefold()
        if kind in wanted:
            (folders if _is_folder(entry, folder) else files).add(kind)
    return _HEAD in files and (folders >= _FOLDERS or _COMMON_DIR in files)


def _is_folder(name: str, folder: int) -> bool:
    """Return whether a folder is there, or what leads to one."""
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    return False
