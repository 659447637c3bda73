"""A real terminal for the tests: tmux with a server of its own, driven by keys, looked at as a person sees it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

PATIENCE = 120.0
"""Seconds after which what a test waits to see has not come: a machine may be slow."""
GLANCE = 0.02
"""Seconds between two looks at the screen."""

XENOGLOT = str(Path(sys.executable).parent / "xenoglot")
KEPT = ("PATH", "HOME", "XENOGLOT_MODELS", "XDG_CACHE_HOME", "XDG_DATA_HOME", "PYTHONPATH", "VIRTUAL_ENV")
"""What the program in the terminal has of the environment of the tests."""


class Terminal:
    """A program in a terminal of a fixed size. Its screen stays when it has ended."""

    def __init__(  # noqa: PLR0913  each is something in which terminals differ
        self,
        command: Sequence[str],
        *,
        home: Path,
        width: int = 80,
        height: int = 24,
        term: str = "tmux-256color",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare it: `home` has the socket, and is where the program keeps its state."""
        tmux = shutil.which("tmux")
        assert tmux, "the tests of the terminal need tmux: `make test` tells how to get it"
        self._tmux = [tmux, "-S", str(home / "tmux.sock"), "-f", os.devnull]
        self._home = home
        self._command = command
        self._size = (width, height)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        state = {"XDG_STATE_HOME": str(home / "state"), "LANG": "C.UTF-8", "TERM": term}
        self._environ = {**kept, **state, **(environ or {})}

    def __enter__(self) -> Self:
        width, height = map(str, self._size)
        # The shell outlives Ctrl-C, which is meant for the program; the screen stays when that has ended.
        told = f'trap : INT; {shlex.join(self._command)}; echo "[exit code $?]"; sleep 1000'
        assigned = [f"{name}={value}" for name, value in self._environ.items()]
        command = ["env", "-i", *assigned, "sh", "-c", told]
        self._do("new-session", "-d", "-x", width, "-y", height, "-c", str(self._home), shlex.join(command))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def type(self, text: str, *keys: str) -> None:
        """Type `text` as it is, then press `keys` by name (`AcquireMessage`, `C-c`, `M-Enter`)."""
        if text:
            self._do("send-keys", "-l", "--", text)
        for key in keys:
            self._do("send-keys", key)

    def enter(self, line: str) -> None:
        """Answer the prompt of `xenoglot chat`, once it has come: what is typed before is shown twice."""
        self.until_asked()
        self.type(line, "Enter")

    def until_asked(self) -> None:
        """Wait until the last line is an empty prompt of `xenoglot chat`."""
        self.until(r"^> *\Z")

    def paste(self, text: str) -> None:
        """Paste `text`, as terminals do it."""
        self._do("set-buffer", "--", text)
        self._do("paste-buffer", "-p")

    def resize(self, width: int, height: int) -> None:
        """Change the size."""
        self._do("resize-window", "-x", str(width), "-y", str(height))

    def screen(self, *, colours: bool = False, all_of_it: bool = False) -> str:
        """What is seen, without blanks at the ends of lines; `all_of_it` with what has scrolled away."""
        flags = [*(["-e"] if colours else []), *(["-S", "-"] if all_of_it else [])]
        lines = self._do("capture-pane", "-p", *flags).split("\n")
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    def told(self, form: str) -> str:
        """What tmux knows of the terminal, in the words of its FORMATS."""
        return self._do("display-message", "-p", form)

    def until(self, pattern: str, *, all_of_it: bool = False) -> str:
        """Wait until `pattern` is found on the screen; returns the screen."""
        deadline = time.monotonic() + PATIENCE
        while True:
            seen = self.screen(all_of_it=all_of_it)
            if re.search(pattern, seen, re.MULTILINE):
                return seen
            assert time.monotonic() < deadline, f"{pattern!r} was never seen; the screen is\n{seen}"
            time.sleep(GLANCE)

    def _do(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=False, env=self._environ)
        assert done.returncode == 0, done.stderr
        return done.stdout
