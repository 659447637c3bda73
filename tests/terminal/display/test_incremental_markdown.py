"""Markdown that is cut anywhere: the same blocks, in the same order, none of it lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.terminal.display.incremental_markdown import LONGEST, IncrementalMarkdown, parsed
from xenoglot.terminal.display.sanitize import STAND_IN

PAGE = (
    "# A heading\n\n",
    "Some **words**\nin two lines.\n\n",
    "- one\n\n- two\n  1. inner\n\n",
    "```python\nx = 1\n\n\ny = 2\n```\n\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "> quoted\n\n",
    "The end.",
)


def blocks(*pieces: str) -> list[str]:
    growing = IncrementalMarkdown()
    found = []
    for piece in pieces:
        growing.feed(piece)
        found += growing.complete_blocks()
    return found + growing.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
def test_blocks_are_found_however_it_is_cut(size: int) -> None:
    text = "".join(PAGE)
    assert blocks(*(text[at : at + size] for at in range(0, len(text), size))) == list(PAGE)


def test_a_block_is_given_when_the_next_has_begun() -> None:
    growing = IncrementalMarkdown()
    growing.feed("one\n\n")
    assert growing.complete_blocks() == []
    growing.feed("two\n")
    assert (growing.complete_blocks(), growing.open) == (["one\n\n"], "two\n")


@given(st.lists(st.text(alphabet="ab`-#>|\n 1.*[]<&\x1b", max_size=12), max_size=12))
def test_nothing_is_lost(pieces: list[str]) -> None:
    whole = "".join(blocks(*pieces))
    assert "".join(pieces).replace("\x1b", STAND_IN).split() == whole.split()


ROW = "x" * 99


@pytest.mark.parametrize(
    ("head", "row", "end"),
    [
        pytest.param("```text\n", f"{ROW}\n", "```\n", id="fence"),
        pytest.param("| a |\n|---|\n", f"| {ROW} |\n", "\n", id="table"),
        pytest.param("- one\n", f"- {ROW}\n  - inner\n", "\n", id="list"),
        pytest.param("", f"{ROW}\n", "\n", id="paragraph"),
        pytest.param("", f"{ROW} ", "", id="line"),
    ],
)
def test_a_block_that_is_too_long_is_parted(head: str, row: str, end: str) -> None:
    found = blocks(head, *[row] * (LONGEST // 40), end)
    assert len(found) > 1
    assert "".join(found).count(ROW) == LONGEST // 40
    kinds = {parsed(block)[0].type for block in found}
    assert len(kinds) == 1, kinds


def test_what_is_behind_a_long_block_is_not_part_of_it() -> None:
    found = blocks("```\n" + f"{ROW}\n" * (LONGEST // 99) + "\n```\n", "after\n")
    assert found[-1] == "after\n"
    assert len(found) == 2


def test_a_head_that_is_too_long_is_not_repeated_for_ever() -> None:
    columns = LONGEST // 4
    wide = "|" + "a|" * columns + "\n" + "|" + "-|" * columns + "\n"
    assert sum(map(len, blocks(wide, *["|b|\n"] * 3))) < 5 * len(wide)
    assert len(blocks("```" + "x" * 2 * LONGEST, "\n", "y\n", "z\n")) <= 3


def test_references_to_characters_are_tamed() -> None:
    (text,) = {token.content for parent in parsed("&#x202e; &#x1b; &#x9b; <b>") for token in parent.children or ()}
    assert text == f"{STAND_IN} {STAND_IN} {STAND_IN} <b>"
