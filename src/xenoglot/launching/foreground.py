"""Runs a program in the foreground of this terminal, with signals and job control as if started by the shell.

Theory of operation. The program is in our process group, so the terminal sends its signals (SIGINT, SIGQUIT, SIGTSTP)
to both; the program alone decides about them. When it stops we stop, so that the shell sees a stopped job; when we are
continued, we continue it. Signals that only we get (SIGTERM, SIGHUP, and SIGINT if we are not in the foreground of a
terminal) are forwarded to it. Handlers are functions, not SIG_IGN: that would be inherited.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from types import FrameType

KILLED = 128
"""What a shell adds to the number of a signal to make an exit code of it."""


def run(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Start `command` and wait for its end; return its exit code as a shell does.

    Raises:
        OSError: it cannot be started.
    """
    early: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _: FrameType | None) -> None:
        if process is None:
            early.append(number)
        elif process.returncode is None:
            os.kill(process.pid, number)

    with _signals(forward):
        # What is open for us, as `<(...)` of a shell, is for the program; what we opened ourselves is not inherited.
        process = subprocess.Popen(list(command), env=dict(env), close_fds=False)  # noqa: S603  a person asked for it
        for number in early:
            forward(number, None)
        code = _wait(process)
    return code if code >= 0 else KILLED - code


@contextmanager
def _signals(forward: Callable[[int, FrameType | None], None]) -> Generator[None]:
    """Handle signals until the end: those of the terminal are ignored, the others are forwarded to the program."""

    def typed_or_sent(number: int, frame: FrameType | None) -> None:
        if not _in_foreground():
            forward(number, frame)

    typed = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT", "SIGTSTP") if hasattr(signal, name)]
    sent = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    taken: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {}
    taken |= dict.fromkeys(typed, typed_or_sent)
    taken |= dict.fromkeys(sent, forward)
    wanted = {number: taken[number] for number in taken if signal.getsignal(number) is not signal.SIG_IGN}  # as `nohup`
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _in_foreground() -> bool:
    """Whether the terminal sends its signals to this process group, even if standard input is not the terminal."""
    if sys.platform == "win32":
        return sys.stdin is not None and sys.stdin.isatty()
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _wait(process: subprocess.Popen[bytes]) -> int:
    if sys.platform == "win32":
        return process.wait()
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(process.pid, signal.SIGCONT)
