"""Access to the files of the agent's folder, and to no others.

A path is resolved first, and then opened folder by folder without following any link: a component that was replaced by
a link in between is rejected. Only regular files are opened, so that nothing blocks and no device is activated.

Detects folders that are Git repositories without the name `.git`.

Git takes a folder for a repository that has a file `HEAD` and the folders `objects` and `refs`, or a file `commondir`
with their path (`is_git_directory` in its `setup.c`).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.agent.sandbox.file_names import is_history, is_secret, shown
from xenoglot.errors import ConfigurationError
from xenoglot.tools.tool import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
    """Return whether a folder, or a link to one, exists."""
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    return False


LARGEST_EDIT = 4 * 1024 * 1024
"""Bytes of a file that is read as a whole."""

_LONGEST_PATH = 4096
"""Characters of a path: no system takes more, and to resolve it takes time for each of its names."""

_BINARY_LOOK = 8192
"""How many bytes are looked at for a zero, which no text has."""


class WorkspaceError(ToolError):
    """A path cannot be used; the message has the reason, and the path as the model wrote it."""


class MissingError(WorkspaceError):
    """No file of that name exists."""


class FileSnapshot(Struct, frozen=True, kw_only=True):
    """A file as read: its bytes, its permission bits, and its identity and modification time."""

    data: bytes
    mode: int
    identity: tuple[int, int, int, int]


class Workspace:
    """The agent's folder. Paths are relative to it, or absolute and inside it.

    `allow_secrets` allows files with names of files that hold secrets.
    """

    def __init__(self, root: Path, *, allow_secrets: bool = False) -> None:
        """Take `root` as the workspace.

        Raises:
            ConfigurationError: it is no folder, or the root of the whole machine.
        """
        self.root = os.path.realpath(root)
        self._allow_secrets = allow_secrets
        if not os.path.isdir(self.root):  # noqa: PTH112  paths are text here: what is opened is not `Path`'s to resolve
            raise ConfigurationError(f"the workspace {shown(str(root))}: no such folder")
        if self.root == os.path.sep:
            raise ConfigurationError("the workspace cannot be the root of the machine: choose a folder")

    def parts(self, path: str) -> tuple[str, ...]:
        """Return the names that lead from the workspace to `path`, all links resolved; none for the workspace itself.

        Raises:
            WorkspaceError: it leads outside, into version control's own folder, or to a file of secrets.
        """
        if len(path) > _LONGEST_PATH:
            raise WorkspaceError(f"{_quoted(path)}: {os.strerror(errno.ENAMETOOLONG)}")
        try:
            real = os.path.realpath(os.path.join(self.root, path))  # noqa: PTH118  as above
            os.fsencode(real)
        except (ValueError, OSError):  # a zero byte; letters that no file system takes
            raise WorkspaceError(f"{_quoted(path)} is no path") from None
        if real != self.root and not real.startswith(self.root + os.path.sep):
            raise WorkspaceError(f"{_quoted(path)} is outside of the workspace")
        parts = tuple(part for part in real[len(self.root) :].split(os.path.sep) if part)
        if is_history(parts):
            raise WorkspaceError(f"{_quoted(path)} belongs to version control and is left alone")
        if not self._allow_secrets and is_secret(parts):
            raise WorkspaceError(f"{_quoted(path)} may hold secrets and is kept from you")
        return parts

    def reachable(self, parts: tuple[str, ...]) -> bool:
        """Return whether a file found on a walk may be opened, going by its names."""
        return not is_history(parts) and (self._allow_secrets or not is_secret(parts))

    def is_file(self, parts: tuple[str, ...]) -> bool:
        """Return whether there is a regular file; where links lead is not followed."""
        with suppress(OSError), self.folder(parts[:-1]) as folder:
            return stat.S_ISREG(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)
        return False

    @contextmanager
    def folder(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of a folder, opened name by name and no link followed; `make` makes what is missing.

        Raises:
            OSError: it cannot be opened.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        current = os.open(self.root, flags)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=current)
                inner = os.open(part, flags, dir_fd=current)
                os.close(current)
                current = inner
            yield current
        finally:
            os.close(current)

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """Yield a regular file to read from.

        Raises:
            WorkspaceError: there is none, or it must not be opened.
        """
        parts = self.parts(path)
        with failing_as(path):
            if not parts:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            with self.folder(parts[:-1]) as folder:
                descriptor = _open_regular(parts[-1], folder, path)
        with os.fdopen(descriptor, "rb") as file, failing_as(path):
            yield file

    def read(self, path: str) -> FileSnapshot:
        """Return a file as a whole.

        Raises:
            WorkspaceError: as `open`, or it is longer than `LARGEST_EDIT`, or no text.
        """
        with self.open(path) as file:
            about = os.fstat(file.fileno())
            data = file.read(LARGEST_EDIT + 1)
        if len(data) > LARGEST_EDIT:
            raise WorkspaceError(f"{_quoted(path)} has more than {LARGEST_EDIT // 1024 // 1024} MiB: too much to edit")
        if is_binary(data):
            raise WorkspaceError(f"{_quoted(path)} is no text")
        return FileSnapshot(data=data, mode=stat.S_IMODE(about.st_mode) & 0o777, identity=_identity(about))

    def replace(self, path: str, data: bytes, before: FileSnapshot | None) -> None:
        """Replace the content of `path` by `data` atomically: readers see the old bytes or the new ones.

        `before` is what was read of it: its permissions are kept, and nothing is written if it is another file by now.
        `None` is a new file; missing folders are created.

        Raises:
            WorkspaceError: it cannot be written.
        """
        parts = self.parts(path)
        if not parts:
            raise WorkspaceError(f"{_quoted(path)} is the workspace itself, a directory")
        self._refuse_repository(parts, path)
        with failing_as(path), self.folder(parts[:-1], make=before is None) as folder:
            name = parts[-1]
            draft = f".{name[:40]}.{secrets.token_hex(4)}.tmp"
            self._write(draft, folder, data, before)
            try:
                _refuse_change(name, folder, before, path)
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(draft, dir_fd=folder)
                raise

    def _refuse_repository(self, parts: tuple[str, ...], path: str) -> None:
        """Refuse to write into what is a Git repository without a working tree, or would be one by this file.

        Git runs commands that the configuration and the hooks of a repository name, as soon as a person or a prompt
        asks for its status inside of it.
        """
        for depth, name in enumerate(parts):
            try:
                with failing_as(path), self.folder(parts[:depth]) as folder:
                    made = is_repository(folder, name, is_file=depth == len(parts) - 1)
            except MissingError:
                return  # what does not exist yet holds nothing
            if made:
                inside = _quoted("/".join(parts[:depth]) or ".")
                raise WorkspaceError(
                    f"{_quoted(path)}: {inside} is a Git repository, or would be one with this file, and Git runs the "
                    "commands that a repository names: use another name or folder"
                )

    def _write(self, draft: str, folder: int, data: bytes, before: FileSnapshot | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(data)
            if before is not None:
                os.fchmod(file.fileno(), before.mode)


@contextmanager
def failing_as(path: str) -> Iterator[None]:
    """Raise errors of the system about `path` as errors for a model, without the machine's path to the workspace."""
    try:
        yield
    except FileNotFoundError:
        raise MissingError(f"{_quoted(path)} does not exist") from None
    except OSError as error:
        raise WorkspaceError(f"{_quoted(path)}: {os.strerror(error.errno) if error.errno else 'failed'}") from None


def is_binary(data: bytes) -> bool:
    """Return whether bytes are no text, going by the first of them."""
    return b"\0" in data[:_BINARY_LOOK]


def _quoted(path: str) -> str:
    return f"`{shown(path[:200])}`"


def _open_regular(name: str, folder: int, path: str) -> int:
    """Return a descriptor of a regular file, looked at before it is opened, and after."""
    _refuse_odd(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        _refuse_odd(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_odd(about: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(about.st_mode):
        raise WorkspaceError(f"{_quoted(path)} is no regular file")


def _identity(about: os.stat_result) -> tuple[int, int, int, int]:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def _refuse_change(name: str, folder: int, before: FileSnapshot | None, path: str) -> None:
    """Refuse to overwrite what is not what was read."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if before is None:
            return
        raise
    _refuse_odd(about, path)
    if before is None or _identity(about) != before.identity:
        raise WorkspaceError(f"{_quoted(path)} was changed by another program meanwhile: read it again")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise WorkspaceError(f"{_quoted(path)} may not be written")
