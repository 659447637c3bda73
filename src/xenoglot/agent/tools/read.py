"""The read-only tools of the workspace: `list_dir`, `read_file`, `find`."""

from __future__ import annotations

import os
import stat
from itertools import islice
from typing import IO, TYPE_CHECKING

from xenoglot.agent.sandbox.file_names import is_history, shown
from xenoglot.agent.sandbox.globs import compiled, matches
from xenoglot.agent.sandbox.walk import Walk
from xenoglot.agent.sandbox.workspace import Workspace, WorkspaceError, failing_as, is_binary

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 12_000
"""Characters of a file that are given at once."""

LONGEST_LINE = 2_000
MOST_ENTRIES = 500
MOST_SCANNED = 64 * 1024 * 1024
"""Bytes of a file that are passed over to get to a line."""


class ReadTools:
    """Tools over a workspace. Results are for a model: short, with a note if something was left out."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list_dir(self, path: str = ".") -> str:
        """List a folder of the workspace: names of folders end with a slash, files have their size in bytes.

        Args:
            path: The folder, relative to the workspace.
        """
        parts = self._workspace.parts(path)
        with failing_as(path), self._workspace.folder(parts) as folder, os.scandir(folder) as entries:
            found = [_entry(entry) for entry in islice(entries, MOST_ENTRIES + 1) if not is_history((entry.name,))]
        lines = sorted(found[:MOST_ENTRIES])
        if len(found) > MOST_ENTRIES:
            lines.append(f"[more than {MOST_ENTRIES} entries: the rest is left out, use `find`]")
        return "\n".join(lines) or "[empty]"

    def read_file(self, path: str, start_line: int = 1, end_line: int | None = None) -> str:
        """Read a text file of the workspace, or some lines of it.

        Args:
            path: The file, relative to the workspace.
            start_line: The first line wanted; lines count from 1.
            end_line: The last line wanted; without it, up to the end.
        """
        if start_line < 1 or (end_line is not None and end_line < start_line):
            raise WorkspaceError("`start_line` counts from 1, and `end_line` is not before it")
        with self._workspace.open(path) as file:
            if is_binary(file.read(LONGEST)):
                raise WorkspaceError(f"`{shown(path)}` is no text: it has {os.fstat(file.fileno()).st_size} bytes")
            file.seek(0)
            return _lines(file, start_line, end_line)

    def find(self, pattern: str, path: str = ".") -> str:
        """Find files by their names. Files that version control ignores are left out.

        Args:
            pattern: A pattern such as `*.py` (in any folder) or `src/**/test_*.py`.
            path: The folder to look in.
        """
        top = self._workspace.parts(path)
        glob = compiled(pattern)
        walk = Walk(self._workspace, top)
        hits = (parts for parts in walk if matches(glob, parts) or matches(glob, parts[len(top) :]))
        found = [shown("/".join(parts)) for parts in islice(hits, MOST_ENTRIES + 1)]
        if len(found) > MOST_ENTRIES:
            found[MOST_ENTRIES:] = [f"[more than {MOST_ENTRIES} files: the rest is left out]"]
        if walk.truncated:
            found.append("[the workspace is too large: not all of it was looked at]")
        return "\n".join(found) or "[no file matches]"


def _entry(entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:
        return name
    if stat.S_ISDIR(about.st_mode):
        return f"{name}/"
    if stat.S_ISLNK(about.st_mode):
        return f"{name} (link)"
    return f"{name} ({about.st_size})" if stat.S_ISREG(about.st_mode) else f"{name} (special)"


def _lines(file: IO[bytes], start: int, end: int | None) -> str:
    """Return the requested lines, as many as fit, and a note of what was left out."""
    kept: list[str] = []
    room, number = LONGEST, 0
    for number, data in _numbered(file, start):
        if number < start:
            continue
        if end is not None and number > end:
            break
        line = _plain(data)
        if room - len(line) < 0 and kept:
            kept.append(f"[cut before line {number}: read on with start_line={number}]")
            break
        kept.append(line)
        room -= len(line) + 1
    if not kept:
        return f"[the file has {number} lines]" if number else "[the file is empty]"
    return "\n".join(kept)


def _numbered(file: IO[bytes], start: int) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number; where a file is too long a note of that, even before line `start`."""
    number = scanned = 0
    while data := file.readline(MOST_SCANNED):
        number += 1
        scanned += len(data)
        if scanned > MOST_SCANNED:
            note = f"[the file is too long to be read further than {MOST_SCANNED // 1024 // 1024} MiB]"
            yield max(number, start), note.encode()
            return
        yield number, data


def _plain(data: bytes) -> str:
    """Return a line without its ending, only the beginning of a very long one."""
    text = data.decode(errors="replace").rstrip("\r\n")
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} [... {len(text)} characters]"
