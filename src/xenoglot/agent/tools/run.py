"""The tool `run`: runs shell commands with limits on time and output; all their processes end with them.

It is no sandbox: a command has all rights of the user who started the agent.

Keeps the beginning and the end of a long output, in bounded memory.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from xenoglot.agent.sandbox import subreaper
from xenoglot.agent.sandbox.redact_stream import StreamRedactor
from xenoglot.backends.redaction import Redactor
from xenoglot.model.content import Text
from xenoglot.tools.tool import ToolContext, ToolError, ToolOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class HeadTail:
    """Buffer of bytes; `text` returns half of `limit` from the beginning, and half from the end."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        over = len(self._tail) - self._half
        if over > 0:
            self._left_out += over
            del self._tail[:over]

    def text(self) -> str:
        """Return the kept output, with a note where output is missing."""
        if not self._left_out:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{head}\n[... {self._left_out} bytes left out ...]\n{tail}"


SECONDS = 120.0
"""Default time limit of a command."""

MOST_SECONDS = 1800.0

LONGEST = 12_000
"""Bytes of output that a model is given."""

MOST_PROGRESS = 200_000
"""Characters of output that are shown while it runs."""

LONGEST_COMMAND = 100_000
GRACE = 2.0
"""Seconds between asking a command to end and ending it."""

_CHUNK = 65536
_KEEPER = (sys.executable, "-I", "-S", str(Path(subreaper.__file__)), str(GRACE))


class CommandResult(Struct, frozen=True, kw_only=True):
    """Result of a command: `exit_code` is 128 + N if signal N ended it, `leftover_processes` counts those that remain.

    Only a command that kills its subreaper can leave some: those outside its process group.
    """

    output: str
    exit_code: int
    timed_out: bool
    leftover_processes: int


class CommandEnvironment(NamedTuple):
    """What all commands share: the working folder, the environment variables, and the redactor of their output."""

    folder: str
    variables: Mapping[str, str]
    redactor: Redactor


async def run_to_end(
    command: str, environment: CommandEnvironment, *, seconds: float, progress: Callable[[str], None]
) -> CommandResult:
    """Run a command, and return how it went; all of its processes are gone by then, also where this is cancelled.

    Only a command that kills its keeper may leave some: those that left its process group.

    Raises:
        OSError: it could not be started.
    """
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *_KEEPER,
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=environment.folder,
            env=environment.variables,
            start_new_session=True,
        )
    )
    cancelled = await _is_cancelled_before(starting)
    keeper = starting.result()
    assert keeper.stdin is not None  # noqa: S101  it was asked for
    kept = HeadTail(LONGEST)
    reading = asyncio.ensure_future(_read(keeper, StreamRedactor(environment.redactor), kept, progress))
    try:
        done, _ = await asyncio.wait({reading}, timeout=0 if cancelled else seconds)
    finally:  # its input ends: the keeper ends what still runs
        keeper.stdin.close()
        strays = await _wait_for_keeper(keeper, reading)
    if cancelled:
        raise asyncio.CancelledError
    code = -signal.SIGKILL if keeper.returncode is None else keeper.returncode
    return CommandResult(
        output=kept.text(),
        exit_code=code if code >= 0 else subreaper.BY_SIGNAL - code,
        timed_out=not done,
        leftover_processes=strays if done else 0,
    )


async def _is_cancelled_before(starting: asyncio.Future[asyncio.subprocess.Process]) -> bool:
    """Wait until the keeper is started; return whether this was cancelled meanwhile.

    A cancelled `create_subprocess_exec` kills the process that it has started: a keeper could not end its command.

    Raises:
        CancelledError: this was cancelled, and there is no keeper.
    """
    cancelled = False
    while not starting.done():
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and starting.exception() is not None:
        raise asyncio.CancelledError
    return cancelled


async def _read(
    keeper: asyncio.subprocess.Process, masking: StreamRedactor, kept: HeadTail, progress: Callable[[str], None]
) -> int:
    """Read until the command is over; return how many processes it left running."""
    assert keeper.stderr is not None  # noqa: S101  it was asked for
    printing = asyncio.ensure_future(_copy(keeper, masking, kept, progress))
    try:
        shell = _number(await keeper.stderr.readline())
        told = await keeper.stderr.read()  # it has no other writer: it ends when the keeper does
        if not told:
            _end_group(shell)
            await _close_pipes(keeper, printing)
        await printing
    finally:
        printing.cancel()
    await keeper.wait()
    return _number(told)


async def _copy(
    keeper: asyncio.subprocess.Process, masking: StreamRedactor, kept: HeadTail, progress: Callable[[str], None]
) -> None:
    """Take what is printed: some of it is kept, the beginning is shown at once."""
    assert keeper.stdout is not None  # noqa: S101  it was asked for
    room = MOST_PROGRESS
    more = True
    while more:
        data = await keeper.stdout.read(_CHUNK)
        more = data != b""
        text = masking.feed(data, last=not more)
        kept.feed(text.encode())
        if room > 0 and text:
            progress(text[:room])
            room -= len(text)


def _number(told: bytes) -> int:
    return int(told) if told.strip().isdigit() else 0


async def _close_pipes(keeper: asyncio.subprocess.Process, printing: asyncio.Future[None]) -> None:
    """Close the pipes of a keeper that was killed: what got away may hold them for ever."""
    assert keeper.stdin is not None  # noqa: S101  it was asked for
    keeper.stdin.close()
    await asyncio.wait({printing}, timeout=GRACE)
    output = keeper._transport.get_pipe_transport(1)  # type: ignore[attr-defined]  # noqa: SLF001  no other way in
    if output is not None:
        output.close()


def _end_group(shell: int) -> None:
    if shell:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(shell, signal.SIGKILL)


async def _wait_for_keeper(keeper: asyncio.subprocess.Process, reading: asyncio.Future[int]) -> int:
    """Wait for the keeper to have swept; kill it should it hang, which it has no reason to."""
    done, _ = await asyncio.wait({reading}, timeout=GRACE + subreaper.SWEEP_SECONDS + 5)
    if done:
        return reading.result()
    with suppress(ProcessLookupError):
        keeper.kill()
    reading.cancel()
    await asyncio.wait({reading})
    return 0


class RunTool:
    """The tool over a folder, with the variables of its commands; `redactor` removes secrets from their output."""

    def __init__(
        self, folder: str, environ: Mapping[str, str], redactor: Redactor | None = None, seconds: float = SECONDS
    ) -> None:
        self._environment = CommandEnvironment(folder, environ, redactor or Redactor())
        self._seconds = seconds

    async def run(self, context: ToolContext, command: str, seconds: float | None = None) -> ToolOutput:
        """Run a shell command in the workspace. It has no terminal and no input; what it leaves running is ended.

        Args:
            context: The call.
            command: The command, as for `sh -c`.
            seconds: How long it may take.
        """
        if "\0" in command or not 0 < len(command) <= LONGEST_COMMAND:
            raise ToolError(f"`command`: expected 1 to {LONGEST_COMMAND} characters, and no zero byte")
        limit = min(self._seconds if seconds is None else seconds, MOST_SECONDS)
        if not limit > 0:
            raise ToolError("`seconds`: expected more than 0")
        try:
            made = await run_to_end(
                command,
                self._environment,
                seconds=limit,
                progress=context.progress,
            )
        except (OSError, ValueError) as error:  # too long an argument; the folder is gone; half a character
            raise ToolError(f"the command could not be started: {type(error).__name__}") from None
        return _result(command, made, limit)


def _result(command: str, made: CommandResult, limit: float) -> ToolOutput:
    """Return the result for the model: the output, and below it what else there is to know."""
    notes: list[str] = []
    if made.timed_out:
        notes.append(f"[ended after {limit:g} s: it took too long]")
    elif made.exit_code:
        notes.append(f"[exit code {made.exit_code}]")
    if made.leftover_processes:
        notes.append(f"[{made.leftover_processes} processes that it had left running were ended]")
    lines = [made.output.rstrip("\n")] if made.output.strip() else []
    return ToolOutput(
        content=(Text(text="\n".join(lines + notes) or "[no output]"),),
        is_error=made.timed_out or made.exit_code != 0,
        data={"command": command, "exit_code": None if made.timed_out else made.exit_code, "timed_out": made.timed_out},
    )
