"""How far long work is, told in lines and drawn as a bar."""

import io

from tests.terminal.drawn import Clock
from xenoglot.terminal.display.progress import BarProgress, LineProgress, progress_bar
from xenoglot.terminal.display.rich_renderer import console_of


def test_lines_come_now_and_then() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, Clock(4.0))
    progress.started("lines", 5, "asked")
    for _ in range(5):
        progress.advance()
        progress.note("1 failed\x1b")
    progress.done()
    progress.done()
    assert stream.getvalue().splitlines() == [
        "lines: 0 of 5 asked",
        "lines: 3 of 5 asked, 1 failed�",
        "lines: 5 of 5 asked, 1 failed�",
    ]


def test_what_has_no_number_is_a_line() -> None:
    stream = io.StringIO()
    progress = progress_bar(stream)
    progress.started("loading the model")
    progress.done()
    assert stream.getvalue() == "loading the model\n"


def test_a_bar_is_drawn_and_goes() -> None:
    stream = io.StringIO()
    progress = BarProgress(stream, console_of(file=stream, force_terminal=True, width=80))
    progress.started("lines[red]", 4)
    progress.advance(2)
    progress.note("[bold]half")
    progress.done()
    progress.done()
    drawn = stream.getvalue()
    assert "lines[red]" in drawn
    assert "50%" in drawn
    assert "[bold]half" in drawn
    assert drawn.endswith("\x1b[2K")
