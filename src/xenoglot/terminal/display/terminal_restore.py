"""Restores the terminal when the program is terminated, stopped or continued."""

from __future__ import annotations

import atexit
import os
import signal
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from xenoglot.terminal.display.renderer import Renderer

BY_SIGNAL = 128
"""The exit code of a process that a signal ended is so much more than the signal."""

TIMEOUT: Final = 5.0
"""Seconds in which a program that is sent away has to leave: not all can be undone where its terminal is gone."""


def restore_on_exit(canvas: Renderer) -> None:
    """Make SIGTERM and SIGHUP unwind the stack, and redraw nothing over output written while the program was stopped.

    It applies to the whole process, and must run in its main thread. Signals with another handler are not changed.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    if hasattr(signal, "SIGCONT"):
        signal.signal(signal.SIGCONT, lambda *_: canvas.detach())


def _leave(number: int, _: FrameType | None) -> NoReturn:
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(BY_SIGNAL + number))
        # A finalizing interpreter restores the default handlers, and the default of SIGALRM is to kill the process.
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
    raise SystemExit(BY_SIGNAL + number)
