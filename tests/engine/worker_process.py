"""The worker as a process of the test's own: started by hand, spoken to by hand."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO

from xenoglot.engine.server.server_process import COMMAND
from xenoglot.engine.server.weights import Weights

LONG = 120.0
"""Seconds after which a thing that must happen has not happened; no test waits so long unless it fails."""


def configuration(weights: Weights, socket_path: str = "") -> dict[str, object]:
    """What the engine would say to the worker."""
    return {
        "model": str(weights.path),
        "alias": weights.name,
        "key": "the key",
        "socket": socket_path,
        "slots": 1,
        "context": 256,
        "threads": 1,
        "batch": 32,
        "pooling": "",
        "template": "",
    }


def line(config: Mapping[str, object]) -> bytes:
    """A configuration as the worker reads it."""
    return json.dumps(config).encode() + b"\n"


def new_socket() -> str:
    """A path in a new private folder."""
    return str(Path(tempfile.mkdtemp(prefix="xg")) / "e.sock")


@contextlib.contextmanager
def worker(
    command: Sequence[str] = COMMAND, environ: Mapping[str, str] | None = None, stderr: int = subprocess.DEVNULL
) -> Generator[subprocess.Popen[bytes], None, None]:
    """A running worker; killed at the end if it has not ended."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environ
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def send_line(process: subprocess.Popen[bytes], data: bytes) -> bytes:
    """Send bytes and give the line that comes back."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(data)
        process.stdin.flush()
    return process.stdout.readline()


def full_pipe() -> tuple[IO[bytes], int]:
    """A pipe into which nothing more fits before somebody reads: where to read, and the descriptor to write to."""
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(sink, bytes(512)):
            pass
    os.set_blocking(sink, True)
    return os.fdopen(source, "rb"), sink


def end_input(process: subprocess.Popen[bytes]) -> None:
    """Close the other end of its stdin."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def answer(
    data: bytes, command: Sequence[str] = COMMAND, environ: Mapping[str, str] | None = None
) -> tuple[object, int]:
    """What a worker says to these bytes when nothing follows them, and its exit status."""
    with worker(command, environ) as process:
        out, _ = process.communicate(data, LONG)
        return json.loads(out), process.returncode


@contextlib.contextmanager
def watched(socket_path: str) -> Generator[socket.socket, None, None]:
    """A connection to a worker's socket: it ends when the worker does, whoever its parent is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(LONG)
        connection.connect(socket_path)
        yield connection


def wait_for_end(connection: socket.socket) -> None:
    """Return when the other side is gone; a timeout is an error."""
    with contextlib.suppress(ConnectionError):
        assert connection.recv(1) == b""


PYTHON = sys.executable
