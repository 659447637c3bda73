"""A code fence around a whole text goes; any other stays, character for character."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.text.json.code_fence import MOST_BEFORE, MOST_HELD, StripFence

if TYPE_CHECKING:
    from collections.abc import Iterable


def unfenced(pieces: Iterable[str]) -> str:
    fence = StripFence()
    return "".join([*(fence.feed(piece) for piece in pieces), fence.close()])


FENCED = {
    "of JSON": ('```json\n{"a": 1}\n```', '{"a": 1}'),
    "of nothing said": ("```\n[1]\n```", "[1]"),
    "in capitals": ("```JSON\n{}\n```\n", "{}"),
    "in one line": ("```json {} ```", "{}"),
    "without space": ("```json{}```", "{}"),
    "around a word": ("```json\ntrue\n```", "true"),
    "around a number": ("```json\n-7\n```", "-7"),
    "with space around": ("\n \n```json\r\n{}\r\n```  \n\n", "{}"),
    "with a fence in a string": ('```json\n{"a": "```x```"}\n```', '{"a": "```x```"}'),
    "with two ticks in it": ('```\n{"a": "``"}\n```', '{"a": "``"}'),
    "with four ticks in it": ('```\n["````\n"]\n```', '["````\n"]'),
    "with space in it": ("```\n[1,\n\n\n 2]\n```", "[1,\n\n\n 2]"),
}
BARE = {
    "nothing": "",
    "JSON": '{"a": 1}',
    "prose": "Here it is: ```json\n{}\n```",
    "code": "```python\nprint(1)\n```",
    "ticks": "``",
    "ticks that open": "```",
    "a fence that opens": "```json\n",
    "ticks in the middle": '{"a": "```"}',
    "space": "  \n",
    "much space": " " * MOST_BEFORE + "```json\n{}\n```",
    "another language": '```json5\n{"a": 1}\n```',
    "words": "```\nnothing\n```",
    "half the word": "```js\n{}\n```",
}
CUT = {
    "not closed": ('```json\n{"a": 1', '{"a": 1'),
    "words behind": ("```json\n{}\n```\nDone.", "{}\n```\nDone."),
    "two fences": ("```json\n{}\n```\n```json\n{}\n```", "{}\n```\n```json\n{}"),
    "half closed": ("```json\n{}\n``", "{}\n``"),
    "closed with four": ("```json\n{}\n````", "{}\n````"),
}


@pytest.mark.parametrize(("text", "inner"), FENCED.values(), ids=FENCED)
def test_a_fence_around_the_whole_goes(text: str, inner: str) -> None:
    assert [unfenced([text]), unfenced(text)] == [inner, inner]


@pytest.mark.parametrize("text", BARE.values(), ids=BARE)
def test_what_has_no_fence_stays(text: str) -> None:
    assert [unfenced([text]), unfenced(text)] == [text, text]


@pytest.mark.parametrize(("text", "inner"), CUT.values(), ids=CUT)
def test_what_is_not_closed_loses_its_opening_alone(text: str, inner: str) -> None:
    assert [unfenced([text]), unfenced(text)] == [inner, inner]


@given(st.text(st.sampled_from('`` \njson5{}[]"a\\1t'), max_size=40), st.data())
def test_every_cut_gives_the_same(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    assert unfenced(text[start:end] for start, end in pairwise([0, *cuts, len(text)])) == unfenced([text])


def test_a_long_text_is_held_back_no_longer_than_its_beginning() -> None:
    fence = StripFence()
    assert fence.feed("```json\n[" + " " * 10_000 + "1") == "[" + " " * 10_000 + "1"
    assert "".join(fence.feed(" ") for _ in range(MOST_HELD)) + fence.feed("]") == " " * MOST_HELD + "]"


def test_endless_space_is_not_held_for_ever() -> None:
    fence = StripFence()
    fence.feed("```\n[")
    assert fence.feed(" " * MOST_HELD) == ""
    assert [fence.feed(" "), fence.feed("]\n```"), fence.close()] == [" " * (MOST_HELD + 1), "]\n```", ""]
