"""One of several processes that answer at one address, from the inside; see `supervisor`."""

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

from xenoglot.gateway.api.metrics import merge_texts
from xenoglot.gateway.limits.worker_ipc import SharedLimiter
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.listen_socket import line_at
from xenoglot.gateway.process.serve import ServeOptions, serve_at
from xenoglot.gateway.process.shared_resources import SharedResources

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.process.reload import Source
    from xenoglot.gateway.process.worker_env import WorkerEnv

AT_ONCE: Final = (signal.SIGINT,)
"""How the supervisor says not to wait any more. SIGTERM also comes from whoever stops a whole group of processes."""

POST_SECONDS: Final = 1.0
"""How often each tells the others its numbers."""


def run_worker(config: Config, post: WorkerEnv, source: Source | None) -> None:
    """Serve until told to stop, or until the supervisor is gone."""
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

        serve_at(listener, config, _say, ServeOptions(assemble, source, AT_ONCE))


def _say(line: str) -> None:
    """Tell the supervisor that it serves, and where."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _stop_with_parent(post: WorkerEnv) -> None:
    """Wait until the supervisor's end of the pipe closes, as it does however that ends; then stop, without a drain."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    shutil.rmtree(post.folder, ignore_errors=True)  # else it would stay, its owner having been killed
    for sign in (signal.SIGTERM, *AT_ONCE):
        os.kill(os.getpid(), sign)


class _Numbers:
    """Has the numbers of all workers told by each: they stand in files that each writes for the others."""

    def __init__(self, post: WorkerEnv) -> None:
        self._post = post
        self._gateway: Gateway | None = None
        self._task: asyncio.Task[None] | None = None

    def tell_of(self, gateway: Gateway) -> None:
        """Tell those of `gateway` from now on, and not those of the one before it."""
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
