"""Markers: the first, the longest of it, and never more held back than may become one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.text.parser.scanner import MarkerScanner


@pytest.mark.parametrize(
    ("strings", "text", "ended", "found"),
    [
        pytest.param(["<a>"], "x<a>y", False, (1, "<a>"), id="in-words"),
        pytest.param(["<a>"], "xyz", False, (3, ""), id="none"),
        pytest.param(["<a>"], "xy<a", False, (2, ""), id="may-become-one"),
        pytest.param(["<a>"], "xy<a", True, (4, ""), id="did-not-become-one"),
        pytest.param(["<a>"], "x<<a", False, (2, ""), id="the-latest-beginning"),
        pytest.param(["<a>"], "x<b<a>", False, (3, "<a>"), id="after-what-was-none"),
        pytest.param(["<a>", "<a>\n"], "<a>\nx", False, (0, "<a>\n"), id="longest"),
        pytest.param(["<a>", "<a>\n"], "<a>", False, (0, ""), id="may-become-longer"),
        pytest.param(["<a>", "<a>\n"], "<a>", True, (0, "<a>"), id="did-not-become-longer"),
        pytest.param(["b", "abc"], "xab", False, (1, ""), id="a-longer-one-may-be-around-it"),
        pytest.param(["b", "abc"], "xabd", False, (2, "b"), id="no-longer-one-is-around-it"),
        pytest.param([], "<a>", False, (3, ""), id="no-markers"),
        pytest.param(["", "<a>"], "<a>", False, (0, "<a>"), id="the-empty-string-is-none"),
        pytest.param(["(?", ")*"], "x)*(?", False, (1, ")*"), id="no-patterns"),
    ],
)
def test_finds_the_first(strings: list[str], text: str, ended: bool, found: tuple[int, str]) -> None:  # noqa: FBT001
    assert MarkerScanner(strings).find(text, 0, ended=ended) == found


def test_looks_from_a_place_on() -> None:
    assert MarkerScanner(["<a>"]).find("<a> <a>", 1, ended=False) == (4, "<a>")


def test_knows_text_without_any_beginning() -> None:
    marks = MarkerScanner(["<a>", "[b]"])
    assert [marks.absent(text) for text in ("plain", "", "x<", "a [ b", "b]>a")] == [True, True, False, False, True]


@given(st.lists(st.text("ab<", min_size=1, max_size=4), max_size=4), st.text("ab<", max_size=30))
def test_finds_what_looking_at_every_place_finds(strings: list[str], text: str) -> None:
    places = (
        (at, one) for at in range(len(text)) for one in sorted(strings, key=len)[::-1] if text.startswith(one, at)
    )
    assert MarkerScanner(strings).find(text, 0, ended=True) == next(places, (len(text), ""))


@given(st.lists(st.text("ab<", min_size=1, max_size=4), max_size=4), st.text("ab<", max_size=30), st.integers(0, 30))
def test_what_it_lets_go_no_later_text_changes(strings: list[str], text: str, cut: int) -> None:
    marks = MarkerScanner(strings)
    early, mark = marks.find(text[:cut], 0, ended=False)
    late, whole = marks.find(text, 0, ended=True)
    assert (early, mark) == (late, whole) if mark else early <= late
