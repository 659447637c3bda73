"""Marks of citations: removed wherever a text is cut, and left where they are spoken of."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text import registry
from xenoglot.text.strip_citations import LONGEST_SOURCES

ROW: Final = registry.get("command_a")
LOST: Final = ("$.candidates[0]", "citations", "dropped")
LONG: Final = f"<co: {'1' * LONGEST_SOURCES}>"

PIECES: Final = (*("<co", ">", "</co", ": 0:[1]", ": 2", "<", "a", "`", "\n"), "<|END_THINKING|>", "<|START_THINKING|>")
TEXTS: Final = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def read(text: str, *cuts: int) -> tuple[list[dict[str, str]], list[tuple[str, str, str]]]:
    """Return the parts and losses of `text`, cut at `cuts`."""
    places = sorted({0, *cuts, len(text)})
    outcome = made(ROW, declared(), [text[a:b] for a, b in pairwise(places)])
    return outcome.parts, outcome.losses


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("<co>a</co: 0:[1]>", "a", id="a citation"),
        pytest.param("<co: 1,2>a</co: 1,2>b", "ab", id="with its sources twice"),
        pytest.param("<co>a", "a", id="not closed"),
        pytest.param("x <co>a</co: 0:[1]> y</co> <co>z</co>", "x a y</co> z", id="a mark that nothing opened"),
    ],
)
def test_marks_are_removed(text: str, words: str) -> None:
    assert read(text) == ([{"text": words}], [LOST])


@pytest.mark.parametrize(
    "text",
    ["a < b", "<cost>1</cost>", "write `<co>` so", '"<co>"', "</co: 0>", "a <co", "<co:", "x <co: y>", LONG + "a"],
)
def test_other_text_stays(text: str) -> None:
    assert read(text) == ([{"text": text}], [])
    assert read(text, *range(len(text))) == ([{"text": text}], [])


def test_a_mark_ends_with_its_thought() -> None:
    parts, losses = read("<|START_THINKING|>a <co>b<|END_THINKING|>c</co: 0:[1]>")
    assert parts == [{"reasoning": "a b"}, {"text": "c</co: 0:[1]>"}]
    assert losses == [LOST]


@given(TEXTS, st.lists(st.integers(0, 80), max_size=6))
def test_cuts_do_not_matter(text: str, cuts: list[int]) -> None:
    inside = [cut for cut in cuts if cut <= len(text)]
    assert read(text, *inside) == read(text) == read(text, *range(len(text)))
