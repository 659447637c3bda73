"""Background runs: the same command in a process of its own, which continues when the terminal is closed.

The process receives its task through a pipe, because command lines are visible to all users; keys stay in the
environment. It starts as a child that can still report errors to its parent. Once it holds its session it reports the
session's name, and from then on its output goes to a log next to the session's file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot.agent.follow_log import ENDING, print_log
from xenoglot.agent.main import LONGEST_TITLE
from xenoglot.agent.main import run as work
from xenoglot.agent.session.lock import holder
from xenoglot.agent.session.session_files import Sessions, folder_of
from xenoglot.backends.redaction import Redactor, for_log
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from types import FrameType

_COMMAND = (sys.executable, "-P", "-m", "xenoglot", "agent", "--detached")
_INPUT, _OUTPUT, _ERRORS = 0, 1, 2
_END_SIGNALS = ((signal.SIGTERM, 10.0), (getattr(signal, "SIGKILL", signal.SIGTERM), 5.0))
"""What a process is sent, one after the other, and the seconds it has to end."""
_TICK = 0.05


def run(options: argparse.Namespace) -> int:
    """Run a command of background runs; return the exit code.

    Raises:
        ConfigurationError: something of them is wrong.
    """
    if sys.platform == "win32":
        raise ConfigurationError("`xenoglot agent` needs a POSIX system: on Windows, run it in WSL")
    if options.follow and options.logs is None:
        raise ConfigurationError("`--follow` goes with `--logs ID`")
    sessions = Sessions(folder_of(os.environ), Redactor())
    if options.detached:
        return work(_read_options(), None)
    if options.background:
        return _start(options)
    if options.logs is not None:
        print_log(sessions.path(options.logs), follow=options.follow)
    elif options.kill is not None:
        _end(sessions.path(options.kill))
    else:
        _list_running(sessions)
    return 0


def _start(options: argparse.Namespace) -> int:
    """Start the run, and print the name of its session; return the exit code, that of the run if it failed to start."""
    if options.no_session or options.sessions:
        raise ConfigurationError("`--background` and `--no-session` or `--sessions` exclude each other")
    given = {name: value for name, value in vars(options).items() if not callable(value) and name != "arguments"}
    given |= {"prompt": _prompt(options), "json": True, "background": False}
    given_at, giving = os.pipe()
    told_at, telling = os.pipe()
    process = subprocess.Popen(_COMMAND, stdin=given_at, stdout=telling, start_new_session=True)  # noqa: S603  our own
    os.close(given_at)
    os.close(telling)
    with os.fdopen(told_at) as told:
        with suppress(BrokenPipeError), os.fdopen(giving, "w") as pipe:
            json.dump(given, pipe, default=str)
        name = told.read().strip()
    if not name:
        return process.wait()
    process.returncode = 0  # it goes on
    sys.stdout.write(f"{name}\n")
    return 0


def _prompt(options: argparse.Namespace) -> str:
    prompt: str | None = options.prompt
    if prompt == "-" or (prompt is None and not sys.stdin.isatty()):
        prompt = sys.stdin.buffer.read().decode(errors="replace")
    if not (prompt or "").strip():
        raise ConfigurationError("there is nothing to do: give a prompt")
    return prompt or ""


def _read_options() -> argparse.Namespace:
    """Return the options of this process from its standard input, which ends after them."""
    try:
        options = argparse.Namespace(**json.loads(sys.stdin.buffer.read()))
    except (ValueError, TypeError, RecursionError):
        raise ConfigurationError("`--detached` is what `--background` starts: use that") from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _INPUT)
    os.close(nothing)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    signal.signal(signal.SIGTERM, _interrupt)
    options.begun = _detach
    return options


def _interrupt(_: int, __: FrameType | None) -> None:
    """End as at Ctrl-C; completed work is stored."""
    signal.raise_signal(signal.SIGINT)


def _detach(session: Path) -> None:
    """Report the session to the parent process, and redirect output to the log."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(session.with_suffix(ENDING), flags, 0o600)
    sys.stdout.write(f"{session.stem}\n")
    sys.stdout.flush()
    os.dup2(log, _OUTPUT)
    os.dup2(log, _ERRORS)
    os.close(log)


def _list_running(sessions: Sessions) -> None:
    """Print the running sessions: process, session, start time, folder, and first prompt."""
    for pid, session in sessions.running():
        begun = session.started
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(begun.created))
        title = for_log(session.title, LONGEST_TITLE)
        sys.stdout.write(f"{pid:>7}  {begun.id}  {day}  {for_log(Path(begun.workspace).name)}  {title}\n")


def _end(session: Path) -> None:
    """End the process that works in a session."""
    pid = holder(session)
    if pid is None:
        raise ConfigurationError(f"no run of the session `{session.stem}` is there: `xenoglot agent --ps` lists them")
    for number, seconds in _END_SIGNALS:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has just ended
        except PermissionError:
            raise ConfigurationError(f"the run of `{session.stem}` is another user's") from None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if holder(session) != pid:
                sys.stdout.write(f"{session.stem} has ended\n")
                return
            time.sleep(_TICK)
    raise ConfigurationError(f"the run of `{session.stem}` does not end: its process is {pid}")
