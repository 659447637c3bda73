"""Interface of renderers, and the plain renderer, which only appends text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from xenoglot.terminal.display.sanitize import harmless

if TYPE_CHECKING:
    from typing import TextIO

StyleName: TypeAlias = Literal["said", "quiet", "call", "problem", "added", "removed", "place"]
"""How a line looks: what matters, what is only noted, a call, an error, and the lines of a diff."""

TextKind: TypeAlias = Literal["said", "thought"]
"""Kind of a text: answer or reasoning."""

RULE = "│ "
"""Prefix of each line of reasoning."""


class Renderer(Protocol):
    """Interface of a renderer. Arguments are untrusted: a renderer writes no control characters of theirs."""

    def write(self, text: str, look: TextKind = "said") -> None:
        """Add text to the answer, which is Markdown, or to reasoning; `end_text` is called in between."""

    def status(self, text: str, *, waiting: bool = False) -> None:
        """Show a temporary line, such as the end of reasoning; the next output replaces it.

        `waiting`: the duration is unknown, so the elapsed seconds are shown.
        """

    def end_text(self) -> None:
        """Complete the open text: the next output starts on a new line."""

    def line(self, text: str, look: StyleName = "said") -> None:
        """Write permanent lines."""

    def space(self) -> None:
        """Add space below an answer, before the user's input."""

    def detach(self) -> None:
        """Start below the current output, because other code wrote meanwhile. Writes nothing now."""


class PlainRenderer:
    """Appends text, for pipes, files and terminals without cursor control."""

    def __init__(self, output: TextIO, *, raw: bool = False, problems: TextIO | None = None) -> None:
        """Write to `output`, and problems elsewhere if `problems` is set.

        `raw` leaves the answer as it is, for a program that reads it.
        """
        self._output = output
        self._problems = problems
        self._raw = raw
        self._open = False

    def write(self, text: str, look: TextKind = "said") -> None:
        """Append text to the answer, or to its reasoning."""
        if text:
            shown = text if self._raw else harmless(text)
            if look == "thought":
                shown = ("" if self._open else RULE) + _ruled(shown)
            self._output.write(shown)
            self._output.flush()
            self._open = not shown.endswith("\n")

    def status(self, text: str, *, waiting: bool = False) -> None:
        """Show nothing: what is written here stays."""

    def end_text(self) -> None:
        """End the line."""
        if self._open:
            self.write("\n")

    def line(self, text: str, look: StyleName = "said") -> None:
        """Write lines."""
        self.end_text()
        apart = self._problems if look == "problem" else None
        output = self._output if apart is None else apart
        output.write(f"{'' if apart is None else 'xenoglot: '}{harmless(text)}\n")
        output.flush()

    def space(self) -> None:
        """Write no empty line: each line has information."""

    def detach(self) -> None:
        """It does so anyway."""


def _ruled(text: str) -> str:
    """Return a piece of reasoning with the rule before each line that begins within it."""
    *lines, last = text.split("\n")
    return f"\n{RULE}".join(lines) + f"\n{f'{RULE}{last}' if last else ''}" if lines else last
