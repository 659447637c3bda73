"""Screens of a terminal as SVG: one as a picture, several as a recording that repeats."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.terminal_theme import MONOKAI
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.style import Style

CELL, LINE, EDGE, BAR = 8.4, 18, 14, 34
"""Pixels: width of a character, height of a line, space around the screen, height of the title bar."""
GROUND, INK, FRAME = "#16171d", "#e4e6ef", "#2b2d38"


class Frame(NamedTuple):
    """A screen with its colours, as the terminal gives it, and how long it is shown."""

    seconds: float
    screen: str


def picture(screen: str, title: str, width: int = 80) -> str:
    """Return one screen."""
    lines = screen.split("\n")
    return _whole(title, width, len(lines), [*_lines(lines, width)])


def recording(frames: Sequence[Frame], title: str, width: int = 80, height: int = 24) -> str:
    """Return screens one after the other, then again from the start. What animates nothing shows the last."""
    total = sum(frame.seconds for frame in frames)
    style, body, start = [], [], 0.0
    for number, frame in enumerate(frames):
        end, last = start + frame.seconds, number == len(frames) - 1
        shown = f"{100 * start / total:.2f}%{{visibility:visible}}" + (
            "" if last else f"{100 * end / total:.2f}%{{visibility:hidden}}"
        )
        before = "" if number == 0 else "0%{visibility:hidden}"
        style.append(
            f"@keyframes f{number}{{{before}{shown}}}#f{number}{{animation:f{number} {total:.1f}s step-end infinite}}"
        )
        hidden = "" if last else ' visibility="hidden"'
        body += [f'<g id="f{number}"{hidden}>', *_lines(frame.screen.split("\n"), width), "</g>"]
        start = end
    return _whole(title, width, height, [f"<style>{''.join(style)}</style>", *body])


def _whole(title: str, width: int, height: int, body: Sequence[str]) -> str:
    wide, high = width * CELL + 2 * EDGE, height * LINE + BAR + EDGE
    dots = "".join(
        f'<circle cx="{20 + 18 * number}" cy="17" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" aria-label="{escape(title)}">',
            "<style>.title{fill:#9ea3b5;font:12px sans-serif}</style>",
            f'<rect width="{wide:g}" height="{high:g}" rx="10" fill="{GROUND}" stroke="{FRAME}"/>{dots}',
            f'<text x="{wide / 2:g}" y="21" text-anchor="middle" class="title">{escape(title)}</text>',
            f'<g font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14" fill="{INK}">',
            *body,
            "</g>",
            "</svg>\n",
        ]
    )


def _lines(lines: Sequence[str], width: int) -> Iterator[str]:
    console = Console(
        file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True, legacy_windows=False
    )
    for number, line in enumerate(lines):
        y, column = BAR + LINE * number, 0
        for segment in Segment.simplify(Text.from_ansi(line).render(console)):
            cells = cell_len(segment.text)
            yield from _segment(segment, EDGE + column * CELL, y, cells)
            column += cells


def _segment(segment: Segment, x: float, y: float, cells: int) -> Iterator[str]:
    ink, ground, more = _look(segment.style)
    if ground:
        yield f'<rect x="{x:.1f}" y="{y:g}" width="{cells * CELL:.1f}" height="{LINE}" fill="{ground}"/>'
    if segment.text.strip():
        fill = f' fill="{ink}"' if ink else ""
        yield (
            f'<text x="{x:.1f}" y="{y + 13:g}" textLength="{cells * CELL:.1f}" xml:space="preserve"{fill}{more}>'
            f"{escape(segment.text)}</text>"
        )


def _look(style: Style | None) -> tuple[str, str, str]:
    """Return the colour of the text, that behind it, and the other attributes."""
    if style is None:
        return "", "", ""
    ink = style.color.get_truecolor(MONOKAI).hex if style.color and not style.color.is_default else ""
    ground = style.bgcolor.get_truecolor(MONOKAI).hex if style.bgcolor and not style.bgcolor.is_default else ""
    if style.reverse:
        ink, ground = ground or GROUND, ink or INK
    more = ' font-weight="bold"' if style.bold else ""
    more += ' font-style="italic"' if style.italic else ""
    more += ' opacity="0.6"' if style.dim else ""
    more += ' text-decoration="underline"' if style.underline else ""
    return ink, ground, more
