"""Patterns of names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.glob import matches


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "", True),
        ("a*", "a", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "axbyc", True),
        ("a*b*c", "acb", False),
        ("*b*b*", "ab", False),
        ("*b*b*", "abb", True),
        ("a**c", "ac", True),
        ("a.c*", "abc", False),
        ("[a]*", "a", False),
        ("a?*", "ab", False),
    ],
)
def test_matches(pattern: str, name: str, *, fits: bool) -> None:
    assert matches(pattern, name) is fits


@given(st.lists(st.text("ab", max_size=3), min_size=2, max_size=5), st.lists(st.text("abc", max_size=4), max_size=5))
def test_whatever_stands_for_the_stars_fits(pieces: list[str], between: list[str]) -> None:
    filler = (between + [""] * len(pieces))[: len(pieces) - 1]
    name = pieces[0] + "".join(left + right for left, right in zip(filler, pieces[1:], strict=True))
    assert matches("*".join(pieces), name)
