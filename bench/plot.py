"""Charts as SVG text, without a dependency: lines over an axis, and bars in groups; equal figures give equal bytes.

Both are functions of values. Their colours are of middling brightness and there is no background, so that a chart reads
on a light page and on a dark one. A point or bar tells its exact figure to whoever points at it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 760
INK = "#777777"
"""Of text and axes: it has the same contrast to white as to GitHub's dark pages, about 4.4."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
"""Those of Okabe and Ito that can be seen on both, which are told apart by the colour-blind too; then two more."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 34, 46
_LEGEND_LINE = 18
_LETTER = 6.6
"""About the width of one, in pixels."""
_PLOT = 280
_BAR, _BETWEEN_GROUPS = 16, 12
_MOST_DECADES = 2
"""Above so many, a logarithmic axis has no marks between them."""


class Series(Struct, frozen=True):
    """One line: its name, and its points by growing x."""

    name: str
    points: Sequence[tuple[float, float]]


class Mark(Struct, frozen=True):
    """A value to be seen across the whole chart, as a goal is."""

    value: float
    name: str


class Scale(Struct, frozen=True):
    """Where a value stands between two pixels."""

    lowest: float
    highest: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of `value`."""
        lowest, highest = self.lowest, self.highest
        if self.log:
            value, lowest, highest = math.log10(max(value, lowest)), math.log10(lowest), math.log10(highest)
        return self.start + (value - lowest) / (highest - lowest) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return the values that are written beside the axis."""
        inside = _log_ticks(self.lowest, self.highest) if self.log else _ticks(self.lowest, self.highest)
        return [each for each in inside if self.lowest <= each <= self.highest]


def lines(  # noqa: PLR0913  what a chart is made of
    title: str,
    x_name: str,
    y_name: str,
    series: Sequence[Series],
    *,
    log: bool = False,
    mark: Mark | None = None,
) -> str:
    """Return a chart of lines over one axis. With `log` both axes are logarithmic: then all values are above 0."""
    legend = _legend([each.name for each in series])
    top = _TOP + len(legend) * _LEGEND_LINE
    points = [point for each in series for point in each.points]
    heights = [y for _, y in points] + ([] if mark is None else [mark.value])
    across = _scale([x for x, _ in points], _LEFT, WIDTH - _RIGHT, log=log)
    upward = _scale(heights, top + _PLOT, top, log=log)
    body = [*_title(title), *_legend_lines(legend), *_frame_of_lines(across, upward, x_name, y_name)]
    if mark is not None:
        body += _mark_across(upward.at(mark.value), mark.name)
    for number, each in enumerate(series):
        body += _line(each, across, upward, _colour(number))
    return _svg(title, top + _PLOT + _BOTTOM, body)


def bars(
    title: str,
    unit: str,
    groups: Mapping[str, Mapping[str, float | None]],
    *,
    log: bool = False,
    mark: Mark | None = None,
) -> str:
    """Return a chart of bars that lie, those of a group side by side. `groups` are by name: series by name, values.

    A value that is `None`, or that a group lacks, was not measured: its bar is missing, and that is said. With `log`
    the axis is logarithmic.
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    legend = _legend(names) if len(names) > 1 else []
    top = _TOP + len(legend) * _LEGEND_LINE
    values = [value for group in groups.values() for value in group.values() if value is not None]
    left = min(_LEFT * 4.0, 20 + _LETTER * max(map(len, groups), default=0))
    across = _scale([*values, *([] if mark is None else [mark.value])], left, WIDTH - _RIGHT - 60, log=log)
    bottom = float(top)
    body: list[str] = []
    for name, group in groups.items():
        height = len(names) * _BAR
        body.append(_text(left - 8, bottom + height / 2 + 4, name, "end"))
        body += _group(group, names, across, bottom)
        bottom += height + _BETWEEN_GROUPS
    axis = [*_title(title), *_legend_lines(legend), *_frame_of_bars(across, top, bottom, unit)]
    if mark is not None:
        axis += _mark_down(across.at(mark.value), top, bottom, mark.name)
    return _svg(title, bottom + _BOTTOM, axis + body)


# Axes.


def _scale(values: Sequence[float], start: float, end: float, *, log: bool) -> Scale:
    """Return a scale that holds `values`; from 0, if it is not logarithmic."""
    if not log:
        ticks = _ticks(0.0, max(values, default=0.0) or 1.0)
        return Scale(0.0, ticks[-1], start, end)
    lowest, highest = min(values, default=1.0), max(values, default=10.0)
    if lowest <= 0:
        raise ValueError(f"a logarithmic axis has no place for {lowest}")
    low, high = _floor(lowest), _floor(highest)
    if high < highest or low == high:
        high = _next(high)
    return Scale(low, high, start, end, log=True)


def _ticks(lowest: float, highest: float) -> list[float]:
    """Return four to nine round values from `lowest` to one that is not below `highest`."""
    rough = (highest - lowest) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    count = math.ceil((highest - lowest) / step - 1e-9)
    return [lowest + step * number for number in range(count + 1)]


def _log_ticks(lowest: float, highest: float) -> list[float]:
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    factors = (1, 2, 5) if last - first <= _MOST_DECADES else (1,)
    return [factor * 10.0**power for power in range(first, last + 1) for factor in factors]


def _floor(value: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20 and so on that is not above `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9))


def _next(value: float) -> float:
    """Return what comes behind `value` in 1, 2, 5, 10 and so on."""
    return _floor(value * 2.6)


def _frame_of_lines(across: Scale, upward: Scale, x_name: str, y_name: str) -> Iterator[str]:
    for tick in upward.ticks():
        y = upward.at(tick)
        yield _rule(across.start, y, across.end, y, "grid")
        yield _text(across.start - 8, y + 4, figure(tick), "end")
    for tick in across.ticks():
        x = across.at(tick)
        yield _rule(x, upward.start, x, upward.start + 4, "axis")
        yield _text(x, upward.start + 18, figure(tick), "middle")
    yield _rule(across.start, upward.start, across.end, upward.start, "axis")
    yield _text((across.start + across.end) / 2, upward.start + 38, x_name, "middle")
    middle = (upward.start + upward.end) / 2
    yield (
        f'<text x="16" y="{_short(middle)}" text-anchor="middle" transform="rotate(-90 16 {_short(middle)})">'
        f"{escape(y_name)}</text>"
    )


def _frame_of_bars(across: Scale, top: float, bottom: float, unit: str) -> Iterator[str]:
    for tick in across.ticks():
        x = across.at(tick)
        yield _rule(x, top, x, bottom, "grid")
        yield _text(x, bottom + 16, figure(tick), "middle")
    yield _rule(across.start, top, across.start, bottom, "axis")
    yield _text((across.start + across.end) / 2, bottom + 36, unit, "middle")


def _mark_across(y: float, name: str) -> Iterator[str]:
    yield _rule(_LEFT, y, WIDTH - _RIGHT, y, "mark")
    yield _text(WIDTH - _RIGHT, y - 5, name, "end")


def _mark_down(x: float, top: float, bottom: float, name: str) -> Iterator[str]:
    yield _rule(x, top - 4, x, bottom, "mark")
    yield _text(x + 4, bottom - 2, name, "start")


# What is drawn.


def _line(series: Series, across: Scale, upward: Scale, colour: str) -> Iterator[str]:
    places = [(across.at(x), upward.at(y)) for x, y in series.points]
    joined = " ".join(f"{_short(x)},{_short(y)}" for x, y in places)
    yield f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for (x, y), point in zip(places, series.points, strict=True):
        told = escape(f"{series.name}: {figure(point[0])}, {figure(point[1])}")
        yield f'<circle cx="{_short(x)}" cy="{_short(y)}" r="3.5" fill="{colour}"><title>{told}</title></circle>'


def _group(group: Mapping[str, float | None], names: Sequence[str], across: Scale, top: float) -> Iterator[str]:
    for number, name in enumerate(names):
        y, value = top + number * _BAR, group.get(name)
        if value is None:
            yield _text(across.start + 6, y + 12, "not measured", "start")
            continue
        end = max(across.at(value), across.start + 1)
        yield (
            f'<rect x="{_short(across.start)}" y="{_short(y + 1)}" width="{_short(end - across.start)}"'
            f' height="{_BAR - 2}" fill="{_colour(number)}"><title>{escape(name)}: {figure(value)}</title></rect>'
        )
        yield _text(end + 6, y + 12, figure(value), "start")


def _legend(names: Sequence[str]) -> list[list[tuple[float, int, str]]]:
    """Return the lines of a legend: where each name stands, its number and itself."""
    rows: list[list[tuple[float, int, str]]] = []
    x = math.inf
    for number, name in enumerate(names):
        width = 34 + _LETTER * len(name)
        if x + width > WIDTH - _RIGHT:
            x = _LEFT
            rows.append([])
        rows[-1].append((x, number, name))
        x += width
    return rows


def _legend_lines(rows: Sequence[Sequence[tuple[float, int, str]]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        y = _TOP + number * _LEGEND_LINE
        for x, colour, name in row:
            yield f'<rect x="{_short(x)}" y="{y - 8}" width="12" height="12" fill="{_colour(colour)}"/>'
            yield _text(x + 17, y + 2, name, "start")


def _title(title: str) -> Iterator[str]:
    yield f'<text x="{WIDTH / 2:g}" y="18" text-anchor="middle" class="title">{escape(title)}</text>'


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{_short(x1)}" y1="{_short(y1)}" x2="{_short(x2)}" y2="{_short(y2)}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{_short(x)}" y="{_short(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def figure(value: float) -> str:
    """Return a number as a reader wants it: three digits that mean something, thousands apart."""
    if value and abs(value) < 100:  # noqa: PLR2004  from here on all three stand before the point
        return f"{value:.3g}"
    return f"{value:,.0f}"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_STYLE = (
    f"text{{fill:{INK};font:12px sans-serif}}.title{{font-weight:bold}}"
    f".grid{{stroke:{INK};stroke-opacity:.25}}.axis{{stroke:{INK}}}"
    f".mark{{stroke:{INK};stroke-width:1.5;stroke-dasharray:5 4}}"
)


def _svg(title: str, height: float, body: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {_short(height)}" width="{WIDTH}" height="{_short(height)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *body, "</svg>", ""])
