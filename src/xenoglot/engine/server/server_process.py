"""Starts, monitors and stops one child process of the engine; fingerprint of its build, weights and template."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Struct

from xenoglot.engine.admission import LONGEST_LINE, LONGEST_WAIT_SECONDS
from xenoglot.engine.errors import StartError
from xenoglot.errors import ConfigurationError, missing_extra

if TYPE_CHECKING:
    from xenoglot.engine.server.weights import Weights

# `-P`: the working directory is not searched for modules. Run as a file: the worker needs nothing of this package.
COMMAND: Final = (sys.executable, "-P", str(Path(__file__).with_name("server_main.py")))
DEFAULT_CONTEXT: Final = 8192
LONGEST_SOCKET_PATH: Final = 100  # sun_path holds 104 to 108 bytes: https://man7.org/linux/man-pages/man7/unix.7.html
LEAVE_SECONDS: Final = 2.0
TAIL_BYTES: Final = 4096


def require_runtime() -> None:
    """Make sure that the runtime is installed, before weights are downloaded for it.

    Raises:
        ConfigurationError: it is not.
    """
    if find_spec("xllamacpp") is None:
        raise ConfigurationError(missing_extra("xllamacpp"))


def usable_cores() -> int:
    """One core fewer than this process may use, for the one who asks; at least one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable - 1)


class Settings(Struct, frozen=True, kw_only=True):
    """Capacity of the engine.

    `slots` requests run concurrently, more wait in the queue; they share `context` tokens of memory (None: as the
    weights specify, or 8192). Prompts are processed in batches of `batch` tokens: between two batches other requests
    run and disconnects are noticed. A load longer than `load_seconds` is a failure. At most `queue` requests wait, each
    at most `queue_seconds`. With `pooling` it makes embeddings instead of text: pooled over all tokens of a text, or as
    the weights specify. With `remembers`, a common prefix of two prompts is processed once: a client can then learn,
    from the time and the usage, that an earlier request had the same prefix.
    """

    slots: int = 4
    context: int | None = None
    threads: int = msgspec.field(default_factory=usable_cores)
    batch: int = 32
    load_seconds: float = 300.0
    template: str = ""
    syntax: str = "auto"
    queue: int = LONGEST_LINE
    queue_seconds: float = LONGEST_WAIT_SECONDS
    pooling: Literal["mean", "model"] | None = None
    remembers: bool = True


class EngineEndpoint(Struct, frozen=True, kw_only=True):
    """Address of the running engine: HTTP at `url`, over the unix socket if there is one.

    Each request has the header `authorization: Bearer <key>`. Both change at every start.
    """

    url: str
    socket_path: str | None
    key: str


class _Report(Struct, frozen=True):
    """The child's one line: an address, or an error code with a message."""

    address: str = ""
    error: str = ""
    message: str = ""


class Child:
    """A running child process that has loaded its model and accepts requests."""

    def __init__(self, process: asyncio.subprocess.Process, socket: str) -> None:
        self._process = process
        self._socket = socket
        self._errors = asyncio.create_task(_tail(process.stderr))
        self.endpoint = EngineEndpoint(url="http://engine", socket_path=socket or None, key=secrets.token_urlsafe(24))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is not known to have ended."""
        return self._process.returncode is None

    async def ended(self) -> int:
        """Wait for the end of the process and tidy up after it; gives its exit status, negative for a signal."""
        status = await self._process.wait()
        await self._errors
        _remove(self._socket)
        return status

    async def stop(self) -> None:
        """Let it leave by ending its input, and kill it where it does not."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        await self._leave()
        await self.ended()

    async def _leave(self) -> None:
        """Wait until it has left, and kill it where it does not."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        """End it whatever it does; nothing happens if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def load(self, weights: Weights, settings: Settings) -> None:
        """Send the configuration and wait for the address.

        Raises:
            StartError: the worker reported why it cannot serve, ended without a report, or took too long.
        """
        config = {
            "model": str(weights.path),
            "alias": weights.name,
            "key": self.endpoint.key,
            "socket": self._socket,
            "slots": settings.slots,
            "context": settings.context or weights.context or DEFAULT_CONTEXT,
            "threads": settings.threads,
            "batch": settings.batch,
            "pooling": settings.pooling or "",
            "template": settings.template,
        }
        try:
            async with asyncio.timeout(settings.load_seconds):
                report = await self._exchange(msgspec.json.encode(config) + b"\n")
        except TimeoutError as error:
            self.kill()
            message = f"the engine did not load its model within {settings.load_seconds:g} s"
            raise StartError(message, detail=await self._last_words()) from error
        if report.error:
            raise StartError(report.message, detail=await self._last_words())
        if not self._socket:
            self.endpoint = msgspec.structs.replace(self.endpoint, url=report.address)

    async def _exchange(self, line: bytes) -> _Report:
        if self._process.stdin is None or self._process.stdout is None:
            raise StartError("the engine's process has no pipes")
        with contextlib.suppress(ConnectionError):  # it has ended already; the empty answer below says so
            self._process.stdin.write(line)
            await self._process.stdin.drain()
        answer = await self._process.stdout.readline()
        if not answer:
            raise StartError(_explain(await self._process.wait()), detail=await self._last_words())
        try:
            return msgspec.json.decode(answer, type=_Report)
        except msgspec.DecodeError as error:
            self.kill()
            raise StartError("the engine's process answered with something else than its report") from error

    async def _last_words(self) -> str:
        await self._leave()
        return (await self._errors).decode(errors="replace").strip()


async def launch(weights: Weights, settings: Settings, command: Sequence[str] = COMMAND) -> Child:
    """Start a child and wait until it listens; a child that does not get there is gone before this raises.

    Raises:
        StartError: see `Child.load`; also when no process can be made.
    """
    socket = ""
    try:
        socket = _new_socket()
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal is for the gateway, which may want to finish its answers
        )
    except OSError as error:
        _remove(socket)
        raise StartError(f"the engine's process cannot be started ({error.strerror})", detail=str(error)) from error
    except asyncio.CancelledError:
        _remove(socket)
        raise
    child = Child(process, socket)
    try:
        await child.load(weights, settings)
    except BaseException:
        child.kill()
        await child.ended()
        raise
    return child


def _new_socket() -> str:
    """A path for a unix socket in a new folder that only this user can enter; "" where there can be none."""
    if sys.platform == "win32":
        return ""
    folder = tempfile.mkdtemp(prefix="xenoglot-")  # mode 0700
    path = str(Path(folder) / "e.sock")
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    Path(folder).rmdir()
    return ""


def _remove(socket: str) -> None:
    """Remove a socket and its folder; a worker that was orphaned does it itself."""
    if socket:
        shutil.rmtree(Path(socket).parent, ignore_errors=True)


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    """Read a stream to its end and keep the last of it."""
    tail = b""
    while stream is not None and (piece := await stream.read(TAIL_BYTES)):
        tail = (tail + piece)[-TAIL_BYTES:]
    return tail


def _explain(status: int) -> str:
    """Return why a process ended before it could report that itself."""
    if status >= 0:
        return f"the engine's process ended with status {status} while it loaded the model"
    name = signal.Signals(-status).name
    hints = {
        "SIGILL": "this CPU lacks instructions that the runtime is built for (AVX2)",
        "SIGKILL": "somebody killed it, perhaps the system for want of memory: try a smaller model",
    }
    return f"the engine's process ended by {name} while it loaded the model" + (
        f"; {hints[name]}" if name in hints else ""
    )


RUNTIME = "xllamacpp"


def fingerprint(weights: Weights, settings: Settings) -> str:
    """Return the fingerprint; it uses the name and size of the weights, not their content."""
    try:
        size = weights.path.stat().st_size
    except OSError:  # it is reported when the model is started
        size = 0
    facts = (_version("xenoglot"), _version(RUNTIME), weights.path.name, str(size), settings.template)
    return f"fp_{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:10]}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
