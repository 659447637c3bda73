"""Continued text loses the control tokens at its end, however it is cut."""

from __future__ import annotations

import pytest

from xenoglot.text import registry
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.output_pieces import TextPiece, joined
from xenoglot.text.parser.parser_input import LONGEST_HELD
from xenoglot.text.strip_control_tokens import ending


def read(row: str, *chunks: str) -> str:
    """Return what is left of `chunks`."""
    ended = ending(registry.get(row))
    assert ended is not None
    assert ended.own is not None
    parser = ended.own(DeclaredTools.of([]))
    pieces = [piece for chunk in chunks for piece in parser.feed(chunk)]
    return "".join(piece.text for piece in joined([*pieces, *parser.close()]) if isinstance(piece, TextPiece))


@pytest.mark.parametrize(
    ("row", "text", "left"),
    [
        pytest.param("llama3", "once upon<|eot_id|>", "once upon", id="L9-at-the-end"),
        pytest.param("llama3", "once upon<|eot_id|><|eom_id|>", "once upon", id="several"),
        pytest.param("llama3", "once upon<|eot_id|>\n <|eot_id|> \n", "once upon", id="spaces-behind"),
        pytest.param("llama3", "once upon \n<|eot_id|>", "once upon \n", id="spaces-before"),
        pytest.param("llama3", "once<|eot_id|> upon", "once<|eot_id|> upon", id="in-the-text"),
        pytest.param("llama3", "once<|eot_id|><|eot_i", "once<|eot_id|><|eot_i", id="begun"),
        pytest.param("llama3", "once <| upon <|", "once <| upon <|", id="none"),
        pytest.param("hermes", "<|im_end|>", "", id="nothing-else"),
        pytest.param("mistral", "so it goes.</s>", "so it goes.", id="a-tag"),
    ],
)
def test_control_tokens_go_from_the_end(row: str, text: str, left: str) -> None:
    assert read(row, text) == left
    assert read(row, *text) == left
    for place in range(len(text)):
        assert read(row, text[:place], text[place:]) == left


def test_calls_and_thoughts_of_continued_text_stay() -> None:
    text = '<think>a</think><tool_call>{"name": "now"}</tool_call>'
    assert read("hermes", text) == text


def test_a_family_without_tokens_changes_nothing() -> None:
    assert ending(registry.get("think")) is None
    assert ending(registry.get(registry.AUTO)) is None


def test_what_is_held_has_a_bound() -> None:
    text = "<|eot_id|>" * (LONGEST_HELD // 10 + 10)
    assert len(read("llama3", text)) > LONGEST_HELD


def test_each_token_is_looked_for_once() -> None:
    """A model that repeats its token costs a step for each."""
    looked = 0

    def steps(count: int) -> int:
        nonlocal looked
        looked = 0
        ended = ending(registry.get("llama3"))
        assert ended is not None
        assert ended.own is not None
        parser = ended.own(DeclaredTools.of([]))
        find = parser._tokens.find  # type: ignore[attr-defined]

        class Watched:
            absent = staticmethod(lambda _text: False)

            @staticmethod
            def find(text: str, at: int, *, ended: bool) -> tuple[int, str]:
                nonlocal looked
                looked += len(text) - at
                return find(text, at, ended=ended)  # type: ignore[no-any-return]

        parser._tokens = Watched()  # type: ignore[attr-defined]
        for _ in range(count):
            parser.feed("<|eot_id|>")
        return looked

    assert steps(2_000) <= 2.5 * steps(1_000)
