"""A program that is sent away leaves, also where something in it will not be cancelled."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

STUBBORN = """
import asyncio, signal
from unittest.mock import Mock
from xenoglot.terminal.display import terminal_restore

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may have been started with nohup
assert terminal_restore.TIMEOUT == 5.0
terminal_restore.TIMEOUT = 0.1

async def stays():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def main():
    terminal_restore.restore_on_exit(Mock())
    asyncio.create_task(stays())
    await asyncio.sleep(0)  # a task that is cancelled before it begins does not run at all
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_will_not_be_cancelled_keeps_nobody(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(120) == 128 + number


ORDERLY = """
import atexit, signal
from unittest.mock import Mock
from xenoglot.terminal.display import terminal_restore

atexit.register(lambda: print(signal.getitimer(signal.ITIMER_REAL)))  # registered first, so it runs last
terminal_restore.restore_on_exit(Mock())
signal.raise_signal(signal.SIGTERM)
"""


def test_the_deadline_ends_with_the_program() -> None:
    """A timer that fires in a finalizing interpreter would kill it, and its exit code with it."""
    done = subprocess.run([sys.executable, "-c", ORDERLY], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "(0.0, 0.0)\n")
