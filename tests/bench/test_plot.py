"""Charts: well-formed, the same for the same figures, and every figure at its place."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plot import Mark, Series, bars, figure, lines

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = st.floats(0.001, 1e9)


def circles(chart: str) -> list[tuple[float, float]]:
    """Return where the points of a chart are, in pixels."""
    root = ET.fromstring(chart)  # noqa: S314  our own
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in root.iter(f"{SVG}circle")]


def texts(chart: str) -> list[str]:
    """Return the words of a chart."""
    root = ET.fromstring(chart)  # noqa: S314  our own
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_points_of_a_line_stand_where_the_axes_say() -> None:
    chart = lines("t", "x", "y", [Series("a", [(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)])])
    assert circles(chart) == [(72.0, 332.0), (404.0, 192.0), (736.0, 52.0)]


def test_on_logarithmic_axes_decades_are_evenly_spaced() -> None:
    chart = lines("t", "x", "y", [Series("a", [(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)])], log=True)
    (x1, y1), (x2, y2), (x3, y3) = circles(chart)
    assert (x2 - x1, y1 - y2) == pytest.approx((x3 - x2, y2 - y3), abs=0.2)


def test_a_mark_is_within_the_chart_and_named() -> None:
    chart = lines("t", "x", "y", [Series("a", [(1.0, 1.0)])], mark=Mark(7.0, "goal"))
    assert texts(chart)[:2] == ["t", "a"]
    assert "goal" in texts(chart)
    assert [float(y) for y in re.findall(r'class="mark" x1="[\d.]+" y1="([\d.]+)"', chart)] == [87.0]


def test_a_bar_that_is_missing_is_said() -> None:
    chart = bars("t", "times", {"LiteLLM": {"whole": 476.0, "token": 157.0}, "Portkey": {"whole": 66.0, "token": None}})
    root = ET.fromstring(chart)  # noqa: S314  our own
    told = [each.text for each in root.iter(f"{SVG}title")]
    assert told == ["whole: 476", "token: 157", "whole: 66"]
    assert texts(chart).count("not measured") == 1


def test_names_are_escaped() -> None:
    assert texts(bars('<&">', "a<b", {"c&d": {"e>f": 1.0}})) == [
        '<&">',
        "0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "1",
        "a<b",
        "c&d",
        "1",
    ]


def test_a_logarithmic_axis_refuses_what_it_cannot_show() -> None:
    with pytest.raises(ValueError, match="no place for 0"):
        lines("t", "x", "y", [Series("a", [(0.0, 1.0)])], log=True)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (0.123456, "0.123"), (1.25, "1.25"), (99.94, "99.9"), (1234.5, "1,234"), (2e6, "2,000,000")],
)
def test_figures_are_said_as_readers_want_them(value: float, said: str) -> None:
    assert figure(value) == said


@given(st.lists(st.tuples(FIGURES, FIGURES), min_size=1), st.booleans())
def test_any_figures_make_a_chart_that_holds_them(points: list[tuple[float, float]], log: bool) -> None:  # noqa: FBT001  drawn
    chart = lines("t", "x", "y", [Series("a", sorted(points))], log=log)
    assert chart == lines("t", "x", "y", [Series("a", sorted(points))], log=log)
    assert all(71.9 <= x <= 736.1 and 51.9 <= y <= 332.1 for x, y in circles(chart))


@given(st.dictionaries(st.text("abc ", min_size=1), st.none() | FIGURES, min_size=1), st.booleans())
def test_any_values_make_bars(group: dict[str, float | None], log: bool) -> None:  # noqa: FBT001  drawn
    ET.fromstring(bars("t", "u", {"g": group}, log=log))  # noqa: S314  our own
