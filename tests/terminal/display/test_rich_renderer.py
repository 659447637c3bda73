"""What is written to a terminal while an answer is drawn."""

from __future__ import annotations

import asyncio
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.terminal.drawn import Clock
from xenoglot.terminal.display import rich_renderer
from xenoglot.terminal.display.rich_renderer import RichRenderer, console_of, markdown


def canvas(width: int = 40, height: int = 10) -> tuple[RichRenderer, io.StringIO]:
    """A canvas, and what was written by it since it was last asked."""
    stream = io.StringIO()
    return RichRenderer(console_of(file=stream, force_terminal=True, width=width, height=height)), stream


def written(stream: io.StringIO) -> str:
    """What was written, without codes."""
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", text)


def test_lines_that_stay_are_not_written_again() -> None:
    painted, stream = canvas()
    painted.status("one\ntwo")
    assert written(stream) == "one\ntwo\n"
    painted._next = 0
    painted.status("one\ntwo\nthree")
    assert written(stream) == "three\n"
    painted._next = 0
    painted.status("one")
    assert written(stream) == "\n\n"  # two lines go
    painted.end_text()
    painted.end_text()
    assert written(stream) == "\n"


def test_a_block_that_is_complete_is_drawn_once() -> None:
    painted, stream = canvas()
    for piece in ("# One\n", "\nTwo\n\n", "- three\n"):
        painted.write(piece)
    painted.end_text()
    seen = written(stream)
    assert (seen.count("One"), seen.rstrip().endswith("• three")) == (2, True)  # while it was open, and for good


@pytest.mark.parametrize("height", [1, 2, 5, 24])
def test_what_is_open_is_never_higher_than_the_terminal(height: int) -> None:
    painted, stream = canvas(height=height)
    painted.write("```\n" + "line\n" * 50)
    assert written(stream).count("\n") <= max(1, height - 2)


def test_links_are_written_out() -> None:
    painted, stream = canvas(width=80)
    painted.write("[bank](https://evil.example/\x1b]8;;x\x07) ![p](https://pixel.example)\n")
    painted.line("said\x1b[2J", "problem")
    assert "https://evil.example" in stream.getvalue()
    assert "\x1b]8" not in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()


@given(st.text(alphabet="ab`-#>|\n 1.*[]()!<&~\t木\x1b", max_size=80), st.integers(1, 12))
def test_any_text_is_drawn_on_any_terminal(text: str, width: int) -> None:
    painted, stream = canvas(width=width, height=4)
    painted.write(text)
    painted.end_text()
    codes = re.sub(r"\x1b\[[?0-9;]*[mAKhl]", "", stream.getvalue())
    assert "\x1b" not in codes


def test_what_is_deep_is_not_left_out() -> None:
    painted, stream = canvas()
    painted.write(">" * 50 + " deep\n")
    painted.end_text()
    assert "deep" in stream.getvalue()


def test_a_line_of_a_model_is_a_line() -> None:
    painted, stream = canvas()
    painted.write("Roses are red,\nviolets are blue.")
    painted.end_text()
    assert written(stream).rstrip().endswith("Roses are red,\nviolets are blue.")


def test_what_a_smaller_terminal_pushed_out_is_not_looked_for() -> None:
    painted, stream = canvas(height=20)
    painted.status("\n".join("abcdefgh"))
    painted.console.height = 4
    stream.truncate(0)
    painted.end_text()
    assert re.findall(r"\x1b\[(\d+)A", stream.getvalue()) == ["3", "3"]


def test_thoughts_stand_behind_a_rule() -> None:
    painted, stream = canvas(width=20)
    painted.write("One two three four five six.\n\n", "thought")
    painted.write("Seven.", "thought")
    painted.line("thought for 3 s", "quiet")
    painted.write("Eight.")
    painted.line("told", "quiet")
    painted.line("told", "quiet")
    painted.space()
    painted.space()
    seen = written(stream)
    assert "\n│ One two three four\n│ five six.\n" in seen
    assert "\n│ \n│ Seven.\nthought for 3 s\n" in seen
    assert seen.endswith("\nEight.\n\ntold\ntold\n\n")


async def test_seconds_of_waiting_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rich_renderer, "SECOND", 0)
    painted, stream = canvas()
    painted._clock = Clock(3.5)
    painted.status("…", waiting=True)
    while "14 s" not in (seen := written(stream)):  # noqa: ASYNC110  a drawing tells nobody
        await asyncio.sleep(0)
    assert seen.endswith("… 14 s\n")
    painted.write("Hello.")
    painted.end_text()
    assert painted._timer is None


def test_what_the_renderer_cannot_draw_is_shown_as_it_is() -> None:
    painted, _ = canvas()
    broken = markdown("some **words**")
    broken.parsed = None  # type: ignore[union-attr]
    lines = painted._lines(broken)
    assert "".join(segment.text for line in lines for segment in line) == "some **words**"
