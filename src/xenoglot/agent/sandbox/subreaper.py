"""Process between the agent and a command, which ends all processes that the command started.

Run by its path, on the standard library alone: `subreaper.py GRACE COMMAND`. The command runs in a session of its own,
without a terminal and without input. It is ended (TERM, and KILL after GRACE seconds) when the input of this process
ends, which also happens when the agent is killed. Afterwards every remaining process is killed: on Linux also those
that created sessions of their own, since orphans become children of this process (prctl(2), PR_SET_CHILD_SUBREAPER).
The exit code is the command's, 128 + N if signal N ended it. Standard error reports in two lines the number of the
command's process group, once it exists, and at the end the number of remaining processes.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SET_CHILD_SUBREAPER = 36
SWEEP_SECONDS = 5.0
"""How long processes that do not die are waited for: a disk may hold them."""

_INPUT, _OUTPUT, _REPORT = 0, 1, 2
_SHELL = "/bin/sh"
BY_SIGNAL = 128


class Subreaper:
    """The command and its remaining processes; `code` is its exit code once it has ended."""

    def __init__(self, command: str) -> None:
        self.code: int | None = None
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        self._woken = woken
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # a handler is not inherited; to ignore a signal would be
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        started = subprocess.Popen(  # noqa: S603  to run what it is told is what this is for
            [_SHELL, "-c", command],
            stdin=subprocess.DEVNULL,
            stderr=_OUTPUT,
            start_new_session=True,
        )
        started.returncode = 0  # it is reaped here
        self.pid = started.pid

    def wait(self, seconds: float | None, *, until_input_ends: bool) -> None:
        """Wait for the command to end, for so long at most, or for the end of the input."""
        deadline = None if seconds is None else time.monotonic() + seconds
        watched = [self._woken, _INPUT] if until_input_ends else [self._woken]
        while self.code is None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = select.select(watched, [], [], left)[0]
            if self._woken in ready:
                os.read(self._woken, 512)
            self.reap()
            if not ready or (_INPUT in ready and not os.read(_INPUT, 512)):
                return

    def reap(self) -> None:
        """Collect the exit codes of ended children."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else BY_SIGNAL - code

    def signal_group(self, number: int) -> None:
        """Signal the command and what stayed in its group."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def sweep(self) -> int:
        """Kill all remaining processes, and return their number, the command itself not counted."""
        self.reap()
        killed = set[int]()
        if sys.platform != "linux":
            self.signal_group(signal.SIGKILL)
        deadline = time.monotonic() + SWEEP_SECONDS
        while (left := children()) and time.monotonic() < deadline:
            for pid in left:
                with suppress(PermissionError):  # it became another user's: out of our hands
                    os.kill(pid, signal.SIGKILL)
            killed.update(left)
            time.sleep(0.005)
        self.reap()
        return len(killed - {self.pid})


def children() -> "set[int]":
    """Return the living child processes of this process, from `/proc`; none on systems other than Linux."""
    own = str(os.getpid()).encode()
    found = set[int]()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_bytes().rpartition(b")")[2].split()
        except OSError:  # it ended
            continue
        if fields[1] == own and fields[0] != b"Z":
            found.add(int(entry.parent.name))
    return found


def main(grace: float, command: str) -> int:
    """Run the command, and return its exit code."""
    keeper = Subreaper(command)
    os.write(_REPORT, b"%d\n" % keeper.pid)
    keeper.wait(None, until_input_ends=True)
    if keeper.code is None:
        keeper.signal_group(signal.SIGTERM)
        keeper.wait(grace, until_input_ends=False)
    os.write(_REPORT, b"%d\n" % keeper.sweep())
    return BY_SIGNAL + signal.SIGKILL if keeper.code is None else keeper.code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2]))
