"""Tokens to text: whole characters, the same text however the tokens come, and no more work than there are tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.backends.local_models.generation import BROKEN, LONGEST, Detokenizer


def from_bytes(tokens: list[int]) -> str:
    """A token for each byte."""
    return bytes(tokens).decode(errors="replace")


def all_or_nothing(tokens: list[int]) -> str:
    """As tokenizers with a byte fallback do: a run of bytes is all of it whole, or all of it broken."""
    try:
        return bytes(tokens).decode()
    except UnicodeDecodeError:
        return BROKEN * len(tokens)


WORDS = ("▁Once", "▁upon", "", "▁a", "▁time", "s", "▁", "é")


def of_words(tokens: list[int]) -> str:
    """As tokenizers with word pieces do: the space before the first is dropped, and some tokens say nothing."""
    return "".join(WORDS[token % len(WORDS)] for token in tokens).replace("▁", " ").removeprefix(" ")


def pieces(detokenizer: Detokenizer, tokens: list[int]) -> list[str]:
    return [*(detokenizer.feed([token]) for token in tokens), detokenizer.close()]


@given(st.binary(max_size=200))
def test_any_bytes_come_out_as_they_would_at_once(data: bytes) -> None:
    assert "".join(pieces(Detokenizer(from_bytes), list(data))) == from_bytes(list(data))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters=BROKEN), max_size=100))
def test_no_character_is_given_out_before_it_is_whole(text: str) -> None:
    given_out = pieces(Detokenizer(from_bytes), list(text.encode()))
    assert (list(filter(None, given_out)), "".join(given_out)) == (list(text), text)


@given(st.text(max_size=12))
def test_bytes_that_are_broken_until_all_of_them_are_there(text: str) -> None:
    assert "".join(pieces(Detokenizer(all_or_nothing), list(text.encode()))) == text


@given(st.lists(st.integers(0, len(WORDS) - 1), max_size=100), st.integers(1, 9))
def test_spaces_between_words_are_kept(tokens: list[int], size: int) -> None:
    detokenizer = Detokenizer(of_words)
    fed = [detokenizer.feed(tokens[at : at + size]) for at in range(0, len(tokens), size)]
    whole = of_words(tokens)
    assert "".join([*fed, detokenizer.close()]) == whole or whole != whole.lstrip()


def test_a_text_that_is_gone_on_with_keeps_its_space() -> None:
    before = [0, 1]
    assert (pieces(Detokenizer(of_words, before), [3, 4]), pieces(Detokenizer(of_words), [3, 4])) == (
        [" a", " time", ""],
        ["a", " time", ""],
    )


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        pytest.param(list("é".encode()) * 2000, "é" * 2000, id="whole"),
        pytest.param([0x80] * 4000, BROKEN * 4000, id="R-W8-broken-for-ever"),
        pytest.param([2] * 4000, "\x02" * 4000, id="control"),
    ],
)
def test_the_work_is_linear(tokens: list[int], told: str) -> None:
    looked_at = 0

    def watched(window: list[int]) -> str:
        nonlocal looked_at
        looked_at += len(window)
        return from_bytes(window)

    assert "".join(pieces(Detokenizer(watched), tokens)) == told
    assert looked_at <= 2 * (LONGEST + 1) * len(tokens)
