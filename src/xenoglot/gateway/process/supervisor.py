"""Supervisor of several processes that answer at one address: starts them, passes signals on, replaces one that dies.

Theory of operation. The supervisor reserves the address and answers no requests. Each worker is another process of this
program that inherits the socket; it listens at the address, and the kernel distributes the connections (`worker`). The
limits are counted here, and workers use them over a unix socket, so they apply to all together. A worker that ends
without a signal is restarted, later each time. A worker whose standard input ends has lost its supervisor, and stops.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
from contextlib import AsyncExitStack, aclosing, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from xenoglot.engine.server.lifecycle import Backoff
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.limits import worker_ipc
from xenoglot.gateway.limits.limiter import MemoryLimiter
from xenoglot.gateway.process.build import build_limiter, gateway_name, has_limits, limit_history, open_keeper
from xenoglot.gateway.process.serve import GRACE_SECONDS, STOP_SIGNALS, is_at_terminal
from xenoglot.gateway.process.worker import AT_ONCE, JOINED, LINE_END, VARIABLE, WorkerEnv, reserve

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.config.load import Config

_logger = logging.getLogger("xenoglot.gateway")

LONGEST_LINE: Final = 64 * 1024


class Supervisor:
    """Keeps `command` running in a process for each of `posts`. Started at a terminal, it stops when that is closed."""

    def __init__(
        self,
        command: Sequence[str],
        posts: Sequence[WorkerEnv],
        backoff: Backoff | None = None,
        grace: float = GRACE_SECONDS,
        listener: socket.socket | None = None,
    ) -> None:
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self._command = command
        self._posts = posts
        self._backoff = backoff or Backoff()
        self._grace = grace
        self._listener = listener
        self._terminal = posts[0].terminal
        self._stopping = asyncio.Event()
        self._serving: set[int] = set()
        """The numbers of workers that have reported that they serve: they handle signals."""
        self._reloads = 0

    async def run(self, say: Callable[[str], object]) -> None:
        """Run until a signal; `say` gets the greeting when every worker serves.

        Raises:
            ConfigurationError: a worker does not start; it has printed why.
        """
        loop = asyncio.get_running_loop()
        for sign in STOP_SIGNALS:
            loop.add_signal_handler(sign, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        try:
            lines = await asyncio.gather(*(self._start(post) for post in self._posts), return_exceptions=True)
            for line in lines:
                if isinstance(line, BaseException):
                    raise line
            if not self._stopping.is_set():
                say(str(lines[0]).replace(JOINED, LINE_END))
            await asyncio.gather(*(self._keep(post) for post in self._posts))
        finally:
            for sign in (*STOP_SIGNALS, signal.SIGHUP):
                loop.remove_signal_handler(sign)
            await self._end()

    def stop(self) -> None:
        """Stop all workers; the second time, at once. New connections are refused, and not left in the queue."""
        again = self._stopping.is_set()
        self._stopping.set()
        if self._listener is not None:
            self._listener.close()
        for number in self.processes:
            for sign in AT_ONCE if again else (signal.SIGTERM,):
                self._send(number, sign)

    def _hang_up(self) -> None:
        """Handle SIGHUP: stop if the terminal was closed, else reload."""
        if self._terminal and not is_at_terminal():
            self.stop()
        else:
            self.reload()

    def reload(self) -> None:
        """Reload the configuration of all workers; workers that start reload it as soon as they serve."""
        self._reloads += 1
        for number in self._serving:
            self._send(number, signal.SIGHUP)

    def _send(self, number: int, sign: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.processes[number].send_signal(sign)

    async def _start(self, post: WorkerEnv) -> str:
        """Start a worker and return the line that it prints when it serves.

        Raises:
            ConfigurationError: it ended before.
        """
        reloads = self._reloads
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {VARIABLE: msgspec.json.encode(post).decode()},
            pass_fds=[post.descriptor],
            start_new_session=True,  # Ctrl-C in a terminal comes to the supervisor alone, which passes it on once
            limit=LONGEST_LINE,
        )
        self.processes[post.number] = process
        if self._stopping.is_set():  # in the meantime
            self._send(post.number, signal.SIGTERM)
        assert process.stdout is not None  # noqa: S101  it was asked for
        line = (await process.stdout.readline()).decode().rstrip("\n")
        if not line and not self._stopping.is_set():
            await process.wait()
            raise ConfigurationError("a worker did not start; see its message above")
        self._serving.add(post.number)
        if self._reloads != reloads:
            self._send(post.number, signal.SIGHUP)
        return line

    async def _keep(self, post: WorkerEnv) -> None:
        """Start a worker again whenever it ends unasked."""
        loop = asyncio.get_running_loop()
        crashes = 0
        while True:
            since = loop.time()
            status = await self.processes[post.number].wait()
            self._serving.discard(post.number)
            if self._stopping.is_set():
                return
            crashes = 1 if loop.time() - since >= self._backoff.stable else crashes + 1
            rest = self._backoff.rest(crashes)
            _logger.error("worker %d ended with status %d; it is started again in %g s", post.number, status, rest)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), rest)
            if self._stopping.is_set():
                return
            with suppress(ConfigurationError):  # then it has ended again
                await self._start(post)

    async def _end(self) -> None:
        """Stop all workers, and wait for them."""
        self._stopping.set()
        running = [process for process in self.processes.values() if process.returncode is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                await asyncio.wait_for(process.wait(), self._grace)
            except TimeoutError:
                process.kill()
                await process.wait()


def supervise(
    config: Config, arguments: Sequence[str], say: Callable[[str], object], *, terminal: bool = False
) -> None:
    """Serve `config` in as many processes as it sets; `arguments` are those of the command line.

    With `terminal`, `say` gets a panel for a person, and the gateway stops when the terminal is closed.

    Raises:
        ConfigurationError: the address cannot be used, or a worker does not start.
    """
    if sys.platform == "win32":
        raise ConfigurationError("server.workers: there is one process on Windows, whose processes share no sockets")
    command = (sys.executable, "-P", "-m", "xenoglot", *arguments)
    with (
        reserve(config.server.host, config.server.port) as listener,
        tempfile.TemporaryDirectory(prefix="xenoglot-") as folder,  # mode 0700
    ):
        listener.set_inheritable(True)
        posts = [WorkerEnv(listener.fileno(), number, folder, terminal) for number in range(config.server.workers)]
        grace = config.server.drain_seconds + GRACE_SECONDS
        supervisor = Supervisor(command, posts, grace=grace, listener=listener)
        asyncio.run(_supervise(config, supervisor, posts[0].limits, say))


async def _supervise(config: Config, supervisor: Supervisor, path: str, say: Callable[[str], object]) -> None:
    async with AsyncExitStack() as stack:
        limiter = await stack.enter_async_context(aclosing(build_limiter(config)))
        if isinstance(limiter, MemoryLimiter) and has_limits(config):
            keeper = await stack.enter_async_context(open_keeper(config))
            if keeper is not None:
                await stack.enter_async_context(limit_history(limiter, keeper, gateway_name(config)))
        await stack.enter_async_context(worker_ipc.serve_limiter(limiter, path))
        await supervisor.run(say)
