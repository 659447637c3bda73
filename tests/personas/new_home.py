"""What a newcomer has: an empty home, a shell, and the installed program. Nothing of the tests' own environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

BIN = Path(sys.executable).parent
TIMEOUT = 120.0
"""Seconds after which a program hangs; nothing is judged by it."""

ADDRESS = re.compile(r"http://[\w.]+:\d+")
KEPT = ("LANG", "LD_LIBRARY_PATH")


class Server:
    """A program that serves: the URL that it printed, and what it wrote."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output: list[str] = []
        self._written = threading.Condition()
        self.url = self._address()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, text: str) -> None:
        """Wait until it has written a line with `text`."""
        with self._written:
            assert self._written.wait_for(lambda: any(text in line for line in self.output), TIMEOUT), self.output

    def stop(self) -> int:
        """Stop it as `kill` and a service manager do; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        code = self.process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        return code

    def _address(self) -> str:
        assert self.process.stdout
        for line in self.process.stdout:
            self.output.append(line)
            if found := ADDRESS.search(line):
                return found[0].replace("0.0.0.0", "127.0.0.1")  # noqa: S104  where it is reached from here
        pytest.fail(f"it ended without an address: {''.join(self.output)}")

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._written:
                self.output.append(line)
                self._written.notify_all()


class Home:
    """An empty home directory, and a shell that begins there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environment |= {"HOME": str(folder), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    def write(self, name: str, text: str) -> Path:
        """Write a file as a person would with an editor."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, command: str, *, code: int = 0) -> str:
        """Run a shell command; return what it printed, errors included. It has to end with `code`."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    @contextmanager
    def serving(self, command: str) -> Generator[Server]:
        """Start a program that serves, and stop it at the end."""
        with subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            server = Server(process)
            try:
                yield server
            finally:
                server.stop()
