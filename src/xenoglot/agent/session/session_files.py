"""Session files: one per session, readable by the owner alone, appended line by line.

A line is written completely or, if the process is killed during the write, skipped when the file is read again.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from xenoglot.agent.session.lock import holder, lock, relock
from xenoglot.agent.session.session_records import (
    VERSION,
    Session,
    SessionStarted,
    TranscriptReplaced,
    Turns,
    decode,
    encode,
)
from xenoglot.errors import ConfigurationError
from xenoglot.user_directories import user_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from xenoglot.agent.session.session_records import Record, SessionSpend
    from xenoglot.backends.redaction import Redactor
    from xenoglot.model.request import Message

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
_ENDING = ".jsonl"
_PIECE = 1 << 20


def folder_of(environ: Mapping[str, str]) -> Path:
    """Return where sessions are kept (XDG Base Directory Specification, `XDG_STATE_HOME`)."""
    return user_directory(environ, "XDG_STATE_HOME") / "agent"


class SessionFile:
    """An open session. It belongs to one process at a time. `redactor` removes secrets from what is written."""

    def __init__(self, session: Session, descriptor: int, redactor: Redactor) -> None:
        self.session = session
        self._descriptor = descriptor
        self._redactor = redactor

    @property
    def id(self) -> str:
        """The name by which the session is resumed."""
        return self.session.started.id

    def add(self, *messages: Message) -> None:
        """Write down turns that joined the conversation."""
        self._append(Turns(messages=messages))

    def rewrite(self, messages: tuple[Message, ...]) -> None:
        """Write down the conversation as it is now."""
        self._append(TranscriptReplaced(messages=messages))

    def account(self, account: SessionSpend) -> None:
        """Write down what was spent."""
        self._append(account)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, record: Record) -> None:
        line = memoryview(encode(record, self._redactor))
        relock(self._descriptor)
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise ConfigurationError(f"the session cannot be kept: {os.strerror(error.errno or 0)}") from None


class Sessions:
    """The sessions in a folder."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor

    def begin(self, name: str, *, created: float, workspace: str, model: str | None) -> SessionFile:
        """Return a new session of that name, written down already.

        Raises:
            ConfigurationError: the file cannot be made.
        """
        begun = SessionStarted(version=VERSION, id=name, created=created, workspace=workspace, model=model)
        path = self._folder / f"{name}{_ENDING}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(f"no session can be kept: {os.strerror(error.errno or 0)}") from None
        lock(descriptor, name)
        file = SessionFile(Session(started=begun), descriptor, self._redactor)
        file._append(begun)  # noqa: SLF001  its first line
        return file

    def resume(self, name: str) -> SessionFile:
        """Return a session to continue. Calls that a crash left without results get results.

        Raises:
            ConfigurationError: there is none, it cannot be read, or another process works in it.
        """
        path = self.path(name)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            raise ConfigurationError(f"there is no session `{name}`: `xenoglot agent --sessions` lists them") from None
        try:
            lock(descriptor, name)
            data = _read(descriptor)
            session = _decoded(data, name)
            if data and not data.endswith(b"\n"):
                os.write(descriptor, b"\n")  # half a line is a line of its own then, and passed over
        except BaseException:
            os.close(descriptor)
            raise
        return SessionFile(session, descriptor, self._redactor)

    def running(self) -> Iterator[tuple[int, Session]]:
        """Yield the sessions that other processes work in, the newest first, and the numbers of these."""
        for path in sorted(self._folder.glob(f"*{_ENDING}"), reverse=True):
            if _ID.fullmatch(path.stem) and (pid := holder(path)) is not None:
                try:
                    yield pid, _decoded(path.read_bytes(), path.stem)
                except (ConfigurationError, OSError):
                    continue

    def listed(self) -> Iterator[Session]:
        """Yield the readable sessions, the newest first."""
        for path in sorted(self._folder.glob(f"*{_ENDING}"), reverse=True):
            if _ID.fullmatch(path.stem):
                try:
                    yield _decoded(path.read_bytes(), path.stem)
                except (ConfigurationError, OSError):
                    continue

    def newest(self, workspace: str) -> str:
        """Return the name of the newest session of a workspace.

        Raises:
            ConfigurationError: there is none.
        """
        for session in self.listed():
            if session.started.workspace == workspace:
                return session.started.id
        raise ConfigurationError("this folder has no session to continue")

    def path(self, name: str) -> Path:
        """Return where the session of that name is kept.

        Raises:
            ConfigurationError: sessions have no such names.
        """
        if not _ID.fullmatch(name):
            raise ConfigurationError("that is no name of a session: `xenoglot agent --sessions` lists them")
        return self._folder / f"{name}{_ENDING}"


def _read(descriptor: int) -> bytes:
    """Return all of a file; to open it again, and close it, would lose the lock on it."""
    pieces: list[bytes] = []
    while piece := os.read(descriptor, _PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def _decoded(data: bytes, name: str) -> Session:
    try:
        session = decode(line for line in data.split(b"\n") if line.strip())
    except ConfigurationError as error:
        raise ConfigurationError(f"the session `{name}` cannot be read: {error}") from None
    if session.started.id != name:
        raise ConfigurationError(f"the session `{name}` cannot be read: its file was renamed")
    return session
