"""Walk through the workspace: its files in order, without ignored ones, never following links."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from xenoglot.agent.sandbox.globs import LONGEST_FILE, Ignored
from xenoglot.agent.sandbox.workspace import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.agent.sandbox.workspace import Workspace

MOST = 50_000
"""Entries that are looked at on one walk."""

SECONDS = 20.0
"""How long a walk may take: rules and a slow disk can make it a long one."""

DEEPEST = 64


class Walk:
    """Yields the path of each file below a folder, as names.

    `truncated` is whether it stopped before its end: after `most` entries, or after `seconds`.
    """

    def __init__(self, workspace: Workspace, top: tuple[str, ...], most: int = MOST, seconds: float = SECONDS) -> None:
        self._workspace = workspace
        self._remaining = most
        self._deadline = time.monotonic() + seconds
        self._top = top
        self.truncated = False

    def stop(self) -> None:
        """Stop at the next entry; may be called from any thread."""
        self._deadline = 0.0

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Walk; the rules of the folders above the first one hold, too."""
        ignored = Ignored()
        for depth in range(len(self._top)):
            ignored = self._below(ignored, self._top[:depth])
        yield from self._folder(self._top, ignored)

    def _folder(self, parts: tuple[str, ...], ignored: Ignored) -> Iterator[tuple[str, ...]]:
        ignored = self._below(ignored, parts)
        folders: list[tuple[str, ...]] = []
        for name, is_folder in self._entries(parts):
            if time.monotonic() >= self._deadline:
                self.truncated = True
                return
            path = (*parts, name)
            if not self._workspace.reachable(path) or ignored.ignores(path, is_folder=is_folder):
                continue
            if is_folder:
                folders.append(path)
            else:
                yield path
        if len(parts) >= DEEPEST:
            self.truncated = self.truncated or bool(folders)
            return
        for path in folders:
            yield from self._folder(path, ignored)

    def _entries(self, parts: tuple[str, ...]) -> list[tuple[str, bool]]:
        """Return the regular files and the folders of a folder; nothing if it is gone or closed to us."""
        found: list[tuple[str, bool]] = []
        try:
            with self._workspace.folder(parts) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    self._remaining -= 1
                    if self._remaining < 0:
                        self.truncated = True
                        break
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder or entry.is_file(follow_symlinks=False):
                        found.append((entry.name, is_folder))
        except OSError:
            return []
        return sorted(found)

    def _below(self, ignored: Ignored, parts: tuple[str, ...]) -> Ignored:
        try:
            with self._workspace.open(os.path.join(*parts, ".gitignore")) as file:  # noqa: PTH118  text, see Workspace
                text = file.read(LONGEST_FILE).decode(errors="replace")
        except WorkspaceError:
            return ignored
        return ignored.below(len(parts), text)
