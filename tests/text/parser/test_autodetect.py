"""What a text begins with tells a format of its own, and nothing is held longer than that takes."""

from __future__ import annotations

from typing import Final

import pytest

from tests.text.vectors import declared, made
from xenoglot.text import registry
from xenoglot.text.formats.harmony import HarmonyParser
from xenoglot.text.output_pieces import TextPiece
from xenoglot.text.parser.autodetect import Autodetect
from xenoglot.text.parser.parser_input import LONGEST_BLANK

AUTO: Final = registry.get(registry.AUTO)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("<|channel|>final<|message|>ok<|return|>", [{"text": "ok"}], id="a channel"),
        pytest.param(" \n<|start|>assistant<|channel|>final<|message|>ok", [{"text": "ok"}], id="blanks before"),
        pytest.param("<|start|>ok", [{"text": "<|start|>ok"}], id="half of it"),
        pytest.param(
            "ok <|channel|>final<|message|>", [{"text": "ok <|channel|>final<|message|>"}], id="not at the start"
        ),
        pytest.param("<|chan", [{"text": "<|chan"}], id="the text ends in it"),
        pytest.param("<think>a</think>b", [{"reasoning": "a"}, {"text": "b"}], id="the usual forms"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_the_beginning_tells(text: str, parts: list[dict[str, str]]) -> None:
    assert [made(AUTO, declared(), chunks).parts for chunks in ([text], list(text))] == [parts, parts]


def test_nothing_is_held_that_is_decided() -> None:
    stage = Autodetect(AUTO, (("<|channel|>", HarmonyParser),), declared())
    assert [stage.feed(chunk) for chunk in ("<|", "cat", " and")] == [(), [TextPiece("<|cat")], (TextPiece(" and"),)]


def test_blanks_are_held_only_so_long() -> None:
    blanks = " " * LONGEST_BLANK
    text = f"{blanks}<|channel|>"
    assert made(AUTO, declared(), [text]).parts == [{"text": text}]
