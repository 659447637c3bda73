"""Several strings looked for at once: what is found, wherever the text is cut, and how much work that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.text.stop import START, Automaton

LETTERS = st.text("ab", max_size=12)
WORDS = st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=4)
PIECE = 1000


class Counting(dict[str, int]):
    """Edges that count how often they are looked at."""

    looks = 0

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        """Look at an edge."""
        Counting.looks += 1
        return super().get(key, default)


def naive(words: list[str], text: str) -> tuple[int, str] | None:
    """The first word to be complete, the longest of several."""
    for end in range(1, len(text) + 1):
        found = [word for word in words if text[:end].endswith(word)]
        if found:
            return end, max(found, key=len)
    return None


def longest_beginning(words: list[str], text: str) -> int:
    """How many characters at the end of a text some word begins with."""
    return max(size for size in range(len(text) + 1) if size == 0 or any(w.startswith(text[-size:]) for w in words))


@given(WORDS, LETTERS)
def test_the_first_word_is_found(words: list[str], text: str) -> None:
    assert Automaton(words).search(text, START)[1] == naive(words, text)


@given(WORDS, LETTERS)
def test_what_may_become_a_word_is_known(words: list[str], text: str) -> None:
    automaton = Automaton(words)
    state, found = automaton.search(text, START)
    assert found is not None or automaton.depths[state] == longest_beginning(words, text)


@given(WORDS, LETTERS, st.data())
def test_a_cut_changes_nothing(words: list[str], text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    automaton = Automaton(words)
    state, found = automaton.search(text[:at], START)
    if found is None:
        state, found = automaton.search(text[at:], state)
        found = None if found is None else (at + found[0], found[1])
    whole = automaton.search(text, START)
    assert (state, found) == whole


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["a" * PIECE + "b"], "a" * 50 * PIECE, id="A-W4-almost-always"),
        pytest.param(["a" * PIECE + "b"], ("a" * (PIECE - 1) + "c") * 50, id="A-W4-almost-and-back"),
        pytest.param(["a" * size + "b" for size in range(1, 100)], "a" * 50 * PIECE, id="A-W4-many-words"),
        pytest.param(["ab" * 500 + "c", "ba" * 500 + "c"], "ab" * 25 * PIECE, id="A-W4-two-in-step"),
    ],
)
def test_the_work_is_linear(words: list[str], text: str) -> None:
    automaton = Automaton(words)
    automaton._edges = [Counting(edges) for edges in automaton._edges]
    Counting.looks, state = 0, START
    for piece in (text[at : at + 7] for at in range(0, len(text), 7)):
        state, found = automaton.search(piece, state)
        assert found is None
    assert Counting.looks <= 2 * len(text)
