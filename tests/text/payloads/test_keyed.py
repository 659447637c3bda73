"""Calls with bare keys and quotes of their own: read at every cut, written and read again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text.payloads.keyed import DEEPEST, Keyed
from xenoglot.text.syntax import CallSyntax, Syntax
from xenoglot.text.tools.render import in_form

if TYPE_CHECKING:
    from xenoglot.model.json import JSON
    from xenoglot.model.response import FinishReason

FORM: Final = CallSyntax(open=("<c>",), close=("</c>",), payload=Keyed(quote="<q>"))
SYNTAX: Final = Syntax(name="test", title="", source="", calls=(FORM,))

WORDS: Final = st.text(st.sampled_from("ab1 \n\"'\\{}[],:<>é"), max_size=8).filter(lambda text: "<" not in text)
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False, width=16) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def read(text: str, *, finish: FinishReason = "stop", cut: bool = False) -> list[dict[str, str]]:
    """Return the parts made of `text`, cut into characters or whole."""
    return made(SYNTAX, declared(), list(text) if cut else [text], finish).parts


@given(st.dictionaries(WORDS.map(lambda word: f"_{word}"), VALUES, max_size=3))
def test_what_is_written_is_read(arguments: dict[str, JSON]) -> None:
    text = in_form(FORM, [("now", json.dumps(arguments)), ("now", "")])
    for cut in (False, True):
        parts = read(text, cut=cut)
        assert [(part["call"], json.loads(part["arguments"])) for part in parts] == [("now", arguments), ("now", {})]


def test_as_it_is_written() -> None:
    said = in_form(FORM, [("now", '{"a": ["x", 1.5, true, null], "b c": {}}')])
    assert said == "<c>call:now{a:[<q>x<q>,1.5,true,null],<q>b c<q>:{}}</c>"
    assert in_form(FORM, [("now", "no")]) == "<c>call:now{no}</c>"


CASES = [
    pytest.param("<c>call:now", "stop", [{"text": "<c>call:now"}], id="cut in the name"),
    pytest.param("<c>now{}</c>", "stop", [{"text": "<c>now{}</c>"}], id="no prefix"),
    pytest.param(
        "<c>call:ghost{a:<q></c><q>}</c>!", "stop", [{"text": "<c>call:ghost{a:<q></c><q>}</c>!"}], id="undeclared"
    ),
    pytest.param("<c>call:now{", "stop", [{"call": "now", "arguments": "{}"}], id="stopped behind the brace"),
    pytest.param("<c>call:now{", "length", [{"call": "now", "arguments": "{"}], id="cut behind the brace"),
    pytest.param("<c>call:now{a:1,", "stop", [{"call": "now", "arguments": '{"a": 1}'}], id="stopped behind a value"),
    pytest.param("<c>call:now{a:<q>x<q", "length", [{"call": "now", "arguments": '{"a": "x<q'}], id="cut in a string"),
    pytest.param(
        "<c>call:now{a:<q>x}</c>", "stop", [{"call": "now", "arguments": '{"a": "x"}'}], id="no closing quote"
    ),
    pytest.param("<c>call:now{a:<q>x}</c>", "length", [{"call": "now", "arguments": '{"a": "x}</c>'}], id="cut there"),
    pytest.param(
        "<c>call:now{a:<q>x}</c> y<q>}</c>",
        "stop",
        [{"call": "now", "arguments": '{"a": "x}</c> y"}'}],
        id="the end of a call in a string",
    ),
    pytest.param(
        f"<c>call:now{{a:<q>{'}' * 99}<q>}}</c>",
        "stop",
        [{"call": "now", "arguments": f'{{"a": "{"}" * 99}"}}'}],
        id="many braces at the end of a string",
    ),
    pytest.param("<c>call:now{a:'x'}</c>", "stop", [{"call": "now", "arguments": '{"a": "x"}'}], id="single quotes"),
    pytest.param(
        "<c>call:now{a:[<q>x<q>", "stop", [{"call": "now", "arguments": '{"a": ["x"'}], id="stopped in a list"
    ),
    pytest.param("<c>call:now{a:1</c>", "stop", [{"call": "now", "arguments": '{"a": 1}'}], id="no brace at the end"),
    pytest.param("<c>call:now{:1}</c>", "stop", [{"call": "now", "arguments": "{"}, {"text": ":1}</c>"}], id="no key"),
    pytest.param(
        "<c>call:now{a: ,}</c>", "stop", [{"call": "now", "arguments": '{"a": '}, {"text": ",}</c>"}], id="no value"
    ),
    pytest.param(
        '<c>call:now{"a": "x\\n", <q>b<q>: y z}</c>',
        "stop",
        [{"call": "now", "arguments": '{"a": "x\\n", "b": "y z"}'}],
        id="other quotes",
    ),
    pytest.param(
        "<c>call:add{a:<q>1<q>,b:x}</c>",
        "stop",
        [{"call": "add", "arguments": '{"a": 1, "b": "x"}'}],
        id="typed by the schema",
    ),
    pytest.param(
        "<c>call:get_weather{city:007}</c>",
        "stop",
        [{"call": "get_weather", "arguments": '{"city": "007"}'}],
        id="a string by the schema",
    ),
    pytest.param(
        "<c>call:now{a:" + "[" * (DEEPEST + 1),
        "stop",
        [{"call": "now", "arguments": '{"a": ' + "[" * DEEPEST}, {"text": "["}],
        id="nested too deeply",
    ),
]


@pytest.mark.parametrize(("text", "finish", "parts"), CASES)
def test_what_is_written_otherwise(text: str, finish: FinishReason, parts: list[dict[str, str]]) -> None:
    assert [read(text, finish=finish, cut=cut) for cut in (False, True)] == [parts, parts]
