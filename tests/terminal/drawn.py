"""A canvas that writes down what was drawn on it, and a clock that goes on by itself."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.terminal.display.renderer import StyleName, TextKind


class Drawn:
    """What was drawn: lines with their looks, and the answer's words as `said` lines that end where they rest."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.passed: list[str] = []
        self._open = ""
        self._look = ""

    def write(self, text: str, look: TextKind = "said") -> None:
        """Words."""
        self._open += text
        self._look = "words" if look == "said" else look

    def status(self, text: str, *, waiting: bool = False) -> None:  # noqa: ARG002  nobody waits here
        """What holds for the moment."""
        self.passed.append(text)

    def end_text(self) -> None:
        """The end of the words."""
        if self._open:
            self.lines.append((self._look, self._open))
            self._open = ""

    def line(self, text: str, look: StyleName = "said") -> None:
        """A line."""
        self.end_text()
        self.lines.append((look, text))

    def space(self) -> None:
        """The person's turn."""
        self.end_text()

    def detach(self) -> None:
        """Somebody else drew."""


class Clock:
    """Each look at it is so many seconds later."""

    def __init__(self, step: float = 1.0) -> None:
        self._ticks = count()
        self._step = step

    def __call__(self) -> float:
        return next(self._ticks) * self._step
