"""One of several processes that answer at one address, which is reserved once for all of them; see `supervisor`.

Theory of operation. If processes accept from one queue, the one that is awake accepts nearly all: of 64 connections
to two workers, 49 to 64 went to one of them. Linux distributes connections among all sockets that listen at one address
(`SO_REUSEPORT` in socket(7)), and leaves out those that do not listen: one of these holds the address while the
gateway runs. Other systems allow such sockets without distributing connections, so all accept from one queue there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import threading
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.gateway.api.metrics import merge_texts
from xenoglot.gateway.limits.worker_ipc import SharedLimiter
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import BACKLOG, ServeOptions, bind, serve_at
from xenoglot.gateway.process.shared_resources import SharedResources

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.process.reload import Source


APART: Final = sys.platform == "linux"
"""Whether each process has a line of its own."""


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that holds the address for processes to come; port 0 takes a free one.

    Raises:
        ConfigurationError: it cannot be had.
    """
    listener = bind(host, port)  # fails where others listen, even if they would share it
    if not APART:
        return listener
    with listener:
        name, family = listener.getsockname()[:2], listener.family
    return _held(family, name)


def line_at(reserved: socket.socket) -> socket.socket:
    """Return a socket that listens at the address, in place of the one that reserves it."""
    if not APART:
        return reserved
    with reserved:
        name, family = reserved.getsockname()[:2], reserved.family
        return socket.create_server(name, family=family, backlog=BACKLOG, reuse_port=True)


def _held(family: socket.AddressFamily, name: tuple[str, int]) -> socket.socket:
    """Return a socket that is bound as those of `create_server` are, and does not listen."""
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    held.bind(name)
    return held


AT_ONCE: Final = (signal.SIGINT,)
"""Signals by which the supervisor ends the drain. SIGTERM is also sent to whole groups of processes."""

LINE_END, JOINED = "\n", "\x1f"
"""A line end in a greeting, and its replacement for the supervisor, which reads one line."""

POST_SECONDS: Final = 1.0
"""Seconds between two reports of each worker's metrics to the others."""


def run_worker(config: Config, post: WorkerEnv, source: Source | None) -> None:
    """Serve until a signal, or until the supervisor has ended."""
    threading.Thread(target=_stop_with_parent, args=(post,), name="parent", daemon=True).start()
    limiter = SharedLimiter(post.limits)
    with line_at(socket.socket(fileno=post.descriptor)) as listener:
        shelf = SharedResources()
        numbers = _Numbers(post)

        @asynccontextmanager
        async def assemble(config: Config) -> AsyncGenerator[Gateway]:
            async with build_gateway(config, limiter=limiter, shelf=shelf) as gateway:
                numbers.tell_of(gateway)
                yield gateway

        every = partial(_reload_all, os.getppid())
        options = ServeOptions(assemble, source, AT_ONCE, post.terminal, closes=False, reloaded=every)
        serve_at(listener, config, _say, options)


def _reload_all(supervisor: int) -> None:
    """Make the supervisor reload all workers."""
    with suppress(OSError):  # it ended, and so does this worker
        os.kill(supervisor, signal.SIGHUP)


def _say(greeting: str) -> None:
    """Report to the supervisor that it serves, and where, in one line."""
    sys.stdout.write(f"{greeting.replace(LINE_END, JOINED)}\n")
    sys.stdout.flush()


def _stop_with_parent(post: WorkerEnv) -> None:
    """Wait until the supervisor's end of the pipe closes, as it does however that ends; then stop, without a drain."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    shutil.rmtree(post.folder, ignore_errors=True)  # else it would stay, its owner having been killed
    for sign in (signal.SIGTERM, *AT_ONCE):
        os.kill(os.getpid(), sign)


class _Numbers:
    """Lets each worker report the metrics of all: each writes its own to a file for the others."""

    def __init__(self, post: WorkerEnv) -> None:
        self._post = post
        self._gateway: Gateway | None = None
        self._task: asyncio.Task[None] | None = None

    def tell_of(self, gateway: Gateway) -> None:
        """Report those of `gateway` from now on, and not those of the one before it."""
        gateway.merge = partial(_merged, self._post)
        self._gateway = gateway
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        file = Path(self._post.folder) / f"{self._post.number}.metrics"
        new = file.with_suffix(".new")
        while self._gateway is not None:
            with suppress(OSError):  # a full disk has room again some time (K18)
                new.write_bytes(self._gateway.own_metrics())
                new.replace(file)
            await asyncio.sleep(POST_SECONDS)


def _merged(post: WorkerEnv, own: bytes) -> bytes:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in Path(post.folder).glob("*.metrics")}
    return merge_texts({**texts, str(post.number): own.decode()})


VARIABLE: Final = "XENOGLOT_WORKER"
"""The environment variable that is set for workers."""


class WorkerEnv(Struct, frozen=True):
    """Settings of a worker: the socket that reserves the address, its number, and the folder that all share."""

    descriptor: int
    number: int
    folder: str
    terminal: bool = False
    """Whether the greeting is for a person at a terminal."""

    @property
    def limits(self) -> str:
        """The unix socket of the limits that all share."""
        return str(Path(self.folder) / "limits")


def read_worker_env(environ: Mapping[str, str]) -> WorkerEnv | None:
    """Return the settings of this process as a worker; `None` if it is not one."""
    said = environ.get(VARIABLE)
    return None if said is None else msgspec.json.decode(said, type=WorkerEnv)
