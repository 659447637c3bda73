"""A client's home folder: what is in it, and what clients write there by themselves, however they are started."""

from __future__ import annotations

import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN: Final = {
    "claude": {
        ".claude.json": "ids of the installation, and how often it was started",
        ".claude/backups*": "copies of that file",
        ".claude/plugins*": "marks of its own plugins",
        ".claude/projects*": "what was said, for `claude --resume`",
        ".claude/sessions*": "which of its processes run",
    },
    "codex": {
        ".codex/*.sqlite": "its history, goals, memories and logs",
        ".codex/*.sqlite-shm": "the same, under way",
        ".codex/*.sqlite-wal": "the same, under way",
        ".codex/.sandbox_migration": "that it has looked at its sandbox",
        ".codex/.tmp*": "a lock of its plugins",
        ".codex/installation_id": "the id of the installation",
        ".codex/sessions*": "what was said, for `codex resume`",
        ".codex/shell_snapshots*": "how the shell is set up",
        ".codex/skills*": "the skills that it brings along",
        ".codex/thread-writer-locks*": "locks of its history",
    },
}
"""Patterns of what each client makes when nobody but its owner starts it, and what that is."""

OURS: Final = (".cache", ".cache/xenoglot-run")
"""The folder in which a run keeps its files, empty at its end."""


def contents(home: Path) -> dict[str, tuple[int, bytes | None]]:
    """Return everything in a folder by its path: its mode, and the bytes of a file."""
    return {
        str(path.relative_to(home)): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes() if path.is_file() else None)
        for path in home.rglob("*")
    }


def is_written_by(client: str, path: str) -> bool:
    """Return whether a client writes at a path by itself."""
    return any(fnmatchcase(path, pattern) for pattern in WRITTEN[client])
