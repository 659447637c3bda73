"""Live region: the last lines of a terminal, which are replaced in place and survive a resize.

Each update is one write, between the marks of a synchronized update, which other terminals ignore
(https://github.com/contour-terminal/vt-extensions/blob/master/synchronized-output.md). Unchanged lines are not written
again. Each line is erased by itself: some terminals keep lines that are erased all at once. The
cursor is hidden only while it moves: a killed program leaves it visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.segment import Segment

    Line = Sequence[Segment]

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_ERASE = "\x1b[2K"


class LiveRegion:
    """Lines at the end of the screen of `console`; the cursor is below them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn: list[str] = []
        self._cells: list[int] = []
        self._width = console.width

    def draw(self, lines: Sequence[Line], above: Sequence[Line] = ()) -> None:
        """Draw `above` permanently, and `lines` below it in place of the current region."""
        from rich.segment import Segment  # noqa: PLC0415  an extra

        written = self._encoded(lines)
        kept = 0 if above else self._same(written)
        self._replace(kept, [*self._encoded(above), *written[kept:]])
        self._drawn, self._width = written, self._console.width
        self._cells = [Segment.get_line_length(list(line)) for line in lines]

    def clear(self, above: Sequence[Line] = ()) -> None:
        """Draw `above` permanently, and an empty region below it."""
        if self._drawn or above:
            self.draw((), above)

    def detach(self) -> None:
        """Make the current lines permanent, because other output follows them."""
        self._drawn, self._cells = [], []

    def _same(self, written: Sequence[str]) -> int:
        """Return how many lines at the beginning are already drawn."""
        if self._console.width != self._width:
            return 0
        pairs = zip(self._drawn, written, strict=False)
        return next(
            (index for index, (old, new) in enumerate(pairs) if old != new), min(len(self._drawn), len(written))
        )

    def _replace(self, kept: int, written: Sequence[str]) -> None:
        rows = sum(self._rows(cells) for cells in self._cells[kept:])
        rows = min(rows, self._console.height - 1)  # what a smaller terminal has pushed out at its top is out of reach
        left = max(0, rows - len(written))
        told = [_BEGIN, _HIDE, _up(rows), "\r", *(f"{_ERASE}{line}\n" for line in written)]
        told += [f"{_ERASE}\n" * left, _up(left), _SHOW, _END]
        self._console.file.write("".join(told))
        self._console.file.flush()

    def _rows(self, cells: int) -> int:
        """Return the rows a line has now: terminals that became narrower have wrapped it."""
        return max(1, -(-cells // max(1, self._console.width)))

    def _encoded(self, lines: Sequence[Line]) -> list[str]:
        """Return lines with the control sequences that draw them."""
        if not lines:
            return []
        with self._console.capture() as captured:
            self._console.print(_Segments(lines), end="", soft_wrap=True)
        return captured.get().removesuffix("\n").split("\n")


def _up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows else ""


class _Segments:
    """Lines after layout."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __rich_console__(self, *_: object) -> list[Segment]:
        from rich.segment import Segment  # noqa: PLC0415  an extra

        return [segment for line in self._lines for segment in (*line, Segment.line())]
