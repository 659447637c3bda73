"""Progress display of long work: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from xenoglot.terminal.display.sanitize import in_line
from xenoglot.terminal.display.screen import supports_rich

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    import rich.progress
    from rich.console import Console

EVERY = 10.0
"""Seconds between two lines."""


class Progress(Protocol):
    """Receives the progress of long work."""

    def started(self, what: str, total: int | None = None, unit: str = "") -> None:
        """Start: `what` is the work, `total` its size in `unit`, if known."""

    def advance(self, count: int = 1) -> None:
        """Add to the amount done."""

    def note(self, text: str) -> None:
        """Set the note, replacing the last one."""

    def done(self) -> None:
        """End, after success or failure; may be called twice."""


class LineProgress:
    """Occasional lines, for logs and pipes."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._what = self._unit = self._note = self._last_line = ""
        self._total: int | None = None
        self._count = 0
        self._last = 0.0
        self._running = False

    def started(self, what: str, total: int | None = None, unit: str = "") -> None:
        """Report the start."""
        self._what, self._total, self._unit = what, total, unit
        self._count, self._note, self._running = 0, "", True
        self._last = self._clock()
        self._print()

    def advance(self, count: int = 1) -> None:
        """Count, and report it if nothing was reported for a while."""
        self._count += count
        if self._clock() - self._last >= EVERY:
            self._last = self._clock()
            self._print()

    def note(self, text: str) -> None:
        """Keep it for the next line."""
        self._note = in_line(text)

    def done(self) -> None:
        """Report the final count."""
        if self._running:
            self._running = False
            self._print()

    def _print(self) -> None:
        of = "" if self._total is None else f" of {self._total}"
        unit = f" {self._unit}" if self._unit else ""
        count = f": {self._count}{of}{unit}" if self._count or self._total is not None else ""
        line = f"{self._what}{count}{', ' if self._note else ''}{self._note}"
        if line != self._last_line:
            self._last_line = line
            self._stream.write(f"{line}\n")
            self._stream.flush()


class BarProgress:
    """A bar with a note next to it, redrawn by a thread of `rich` and removed at the end."""

    def __init__(self, stream: TextIO, console: Console | None = None) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415  an extra

        from xenoglot.terminal.display.rich_renderer import console_of  # noqa: PLC0415  it needs the same extra

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}", markup=False, style="dim"),
        )
        self._bar = Progress(
            *columns, console=console or console_of(file=stream), transient=True, redirect_stdout=False
        )
        self._task: rich.progress.TaskID | None = None

    def started(self, what: str, total: int | None = None, unit: str = "") -> None:
        """Draw it."""
        self.done()
        self._task = self._bar.add_task(in_line(f"{what}{f' ({unit})' if unit else ''}"), total=total, note="")
        self._bar.start()

    def advance(self, count: int = 1) -> None:
        """Move it."""
        if self._task is not None:
            self._bar.advance(self._task, count)

    def note(self, text: str) -> None:
        """Write next to it."""
        if self._task is not None:
            self._bar.update(self._task, note=in_line(text))

    def done(self) -> None:
        """Take it away."""
        if self._task is not None:
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None


def progress_bar(stream: TextIO | None = None) -> Progress:
    """Return what shows progress on `stream` (standard error) best."""
    stream = stream or sys.stderr
    if supports_rich(stream):
        try:
            return BarProgress(stream)
        except ModuleNotFoundError:
            pass  # lines do as well
    return LineProgress(stream)
