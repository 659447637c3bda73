"""Arguments that need not be an object: behaviour R3, where it ends, and what is held for it."""

from __future__ import annotations

from typing import Final

import pytest

from tests.text.vectors import declared
from xenoglot.text import registry
from xenoglot.text.output_pieces import ArgumentsPiece, CallEnded, CallStart, TextPiece, joined
from xenoglot.text.parser.parser_input import LONGEST_BLANK, LONGEST_HELD
from xenoglot.text.parser.text_parser import parser
from xenoglot.text.payloads.reframr import FreeText

WIDE: Final = " " * LONGEST_BLANK * 2
REFRAMR: Final = registry.get("reframr")


def arguments(text: str) -> str:
    """Return the arguments of the call to `search` with `text` behind the name, fed in two pieces."""
    stage = parser(REFRAMR, declared())
    whole = f"<tool_call>search {text}"
    pieces = joined([*stage.feed(whole[:20]), *stage.feed(whole[20:]), *stage.close(stopped=True)])
    begun, said, ended = pieces
    assert (begun, ended) == (CallStart("search"), CallEnded())
    assert isinstance(said, ArgumentsPiece)
    return said.text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("cats", '{"input": "cats"}', id="R3-words"),
        pytest.param("two  cats \n", '{"input": "two  cats"}', id="R3-stripped"),
        pytest.param('a "quote"\\', '{"input": "a \\"quote\\"\\\\"}', id="R3-escaped"),
        pytest.param("5", '{"input": 5}', id="R3-number"),
        pytest.param('"cats"', '{"input": "cats"}', id="R3-string"),
        pytest.param("null", '{"input": null}', id="R3-null"),
        pytest.param('["a"]', '{"input": ["a"]}', id="R3-list"),
        pytest.param("5 cats", '{"input": "5 cats"}', id="R3-words-that-begin-like-a-number"),
        pytest.param("[5 cats", '{"input": "[5 cats"}', id="R3-words-that-begin-like-a-list"),
        pytest.param("", "{}", id="R3-nothing"),
        pytest.param("a < b", '{"input": "a < b"}', id="a-character-of-the-marker"),
        pytest.param("[" + "x" * LONGEST_HELD, '{"input": "[' + "x" * LONGEST_HELD + '"}', id="more-than-is-held"),
        pytest.param(
            "a" + " " * LONGEST_BLANK * 2 + "b", '{"input": "a' + " " * LONGEST_BLANK * 2 + 'b"}', id="blanks"
        ),
    ],
)
def test_what_is_no_object_becomes_the_input(text: str, written: str) -> None:
    assert arguments(text) == written


def test_words_leave_as_they_come() -> None:
    stage = parser(REFRAMR, declared())
    assert [list(stage.feed(chunk)) for chunk in ("<tool_call>search ca", "ts and", " dogs")] == [
        [CallStart("search"), ArgumentsPiece('{"input": "ca')],
        [ArgumentsPiece("ts and")],
        [ArgumentsPiece(" dogs")],
    ]
    assert list(stage.close(stopped=True)) == [ArgumentsPiece('"}'), CallEnded()]


def test_words_that_were_cut_off_stay_open() -> None:
    stage = parser(REFRAMR, declared())
    pieces = joined([*stage.feed("<tool_call>search cats"), *stage.close()])
    assert pieces == [CallStart("search"), ArgumentsPiece('{"input": "cats'), CallEnded(whole=False)]


@pytest.mark.parametrize("text", ["<tool_call>", "<tool_call>\n", "<tool_call>ghost cats", "<tool_call>" + "x" * 600])
def test_what_calls_nobody_stays_text(text: str) -> None:
    stage = parser(REFRAMR, declared())
    assert joined([*stage.feed(text), *stage.close(stopped=True)]) == [TextPiece(text)]


def test_it_is_written_with_a_blank() -> None:
    form = FreeText(another="<tool_call>")
    assert form.write([("now", ""), ("add", '{"a": 1}')]) == ["now {}", 'add {"a": 1}']
