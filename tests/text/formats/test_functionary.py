"""Functionary 3.2: the prompt ends in arrows, and nobody sees those that we put in their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text import registry
from xenoglot.text.tools.render import written

ROW = registry.get("functionary_v32")

PIECES = st.lists(st.sampled_from([">", ">>", ">>>", "all", "\n", "now", "rm", "{", "}", " ", "a"]), max_size=12)


@pytest.mark.parametrize(
    "text",
    ["", ">", ">>", ">>>", ">>>>", "a", "al", "all", ">>> x", "> now\n{}", "rm\n{}", "all ", ">>>rm\n{}>>>rm\n{}"],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    parts = [{"text": text}] if text else []
    assert [made(ROW, declared(), [text]).parts, made(ROW, declared(), list(text)).parts] == [parts, parts]


@pytest.mark.parametrize(
    ("text", "words"),
    [("all\n> now", "> now"), ("all\n>>", ">>"), ("all\nall\n", "all\n"), ("all\na>>>all\nb", "ab")],
)
def test_words(text: str, words: str) -> None:
    assert [made(ROW, declared(), [text]).parts, made(ROW, declared(), list(text)).parts] == [[{"text": words}]] * 2


@given(PIECES)
def test_any_cut_gives_the_same(pieces: list[str]) -> None:
    text = "".join(pieces)
    whole = made(ROW, declared(), [text])
    assert [made(ROW, declared(), pieces), made(ROW, declared(), list(text))] == [whole, whole]


@given(PIECES)
def test_nothing_is_lost(pieces: list[str]) -> None:
    """Where nobody can be called, all but recipients of words is words."""
    text = "".join(pieces)
    parts = made(ROW, declared([]), [text]).parts
    words = (
        text.removeprefix("all\n").replace(">>>all\n", "")
        if not text.startswith(">>>")
        else text.replace(">>>all\n", "")
    )
    assert "".join(part["text"] for part in parts).strip() == words.strip()


def test_what_is_written_is_read() -> None:
    calls = [("get_weather", '{"city": "Paris"}'), ("now", "{}")]
    text = written(ROW, calls)
    assert text == '>>>get_weather\n{"city": "Paris"}>>>now\n{}'
    assert made(ROW, declared(), [text]).parts == [{"call": name, "arguments": said} for name, said in calls]
