"""Calls in which tags stand in tags: read at every cut, written and read again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import Declaration, declared, made
from xenoglot.text.payloads.nested import DEEPEST, Nested
from xenoglot.text.syntax import CallSyntax, Syntax
from xenoglot.text.tools.render import in_form

if TYPE_CHECKING:
    from xenoglot.model.json import JSON
    from xenoglot.model.response import FinishReason

FORM: Final = CallSyntax(begin=("!<c>",), end=("!</c>",), payload=Nested(mark="!"))
SYNTAX: Final = Syntax(name="test", title="", source="", calls=(FORM,))

NAMES: Final = st.sampled_from(["a", "b", "item", "x-y"])
WORDS: Final = st.text(st.sampled_from('ab1 \n"\\<>/'), max_size=8)
TREE: Final[JSON] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/pair"}},
        "pair": {"$ref": "#/$defs/pair"},
        "count": {"type": "integer"},
    },
    "$defs": {"pair": {"type": "object", "additionalProperties": {"type": "string"}}},
}
TOOLS: Final = [Declaration(name="tree", parameters=TREE), Declaration(name="any")]
PAIRS: Final = st.dictionaries(NAMES, WORDS, min_size=1, max_size=3)


def read(text: str, *, finish: FinishReason = "stop", cut: bool = False) -> list[dict[str, str]]:
    """Return the parts made of `text`, cut into characters or whole."""
    return made(SYNTAX, declared(TOOLS), list(text) if cut else [text], finish).parts


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "text": WORDS,
            "list": st.lists(PAIRS, min_size=1, max_size=3),
            "pair": PAIRS,
            "count": st.integers(),
        },
    )
)
def test_what_is_written_is_read(arguments: dict[str, JSON]) -> None:
    text = in_form(FORM, [("tree", json.dumps(arguments)), ("any", "{}")])
    for cut in (False, True):
        parts = read(text, cut=cut)
        assert [(part["call"], json.loads(part["arguments"])) for part in parts] == [("tree", arguments), ("any", {})]


def test_as_it_is_written() -> None:
    said = in_form(FORM, [("tree", '{"list": [{"a": "x"}, {}], "count": 2, "none": null}')])
    assert said == (
        '!<c>!<invoke name="tree">!<list>!<item>!<a>x!</a>!</item>!<item>{}!</item>!</list>!<count>2!</count>'
        "!<none>null!</none>!</invoke>!</c>"
    )
    assert in_form(FORM, [("any", "{no")]) == '!<c>!<invoke name="any">{no!</invoke>!</c>'


DEEP: Final = '!<c>!<invoke name="any">' + "!<a>" * (DEEPEST + 2)

CASES = [
    pytest.param(
        '!<c> !<invoke name="any"> !<a> !<b>1!</b> !</a> !</invoke> !</c>',
        "stop",
        [{"call": "any", "arguments": '{"a": {"b": 1}}'}],
        id="blanks between tags",
    ),
    pytest.param(
        '!<c>!<invoke name="any">!<a>!<item>1!</item>!<item>x!</item>!</a>!</invoke>!</c>',
        "stop",
        [{"call": "any", "arguments": '{"a": [1, "x"]}'}],
        id="a list that no schema tells of",
    ),
    pytest.param(
        '!<c>!<invoke name="tree">!<pair>!<item>1!</item>!</pair>!</invoke>!</c>',
        "stop",
        [{"call": "tree", "arguments": '{"pair": {"item": "1"}}'}],
        id="an object by its schema",
    ),
    pytest.param('!<c>!<invoke name="any"', "stop", [{"text": '!<c>!<invoke name="any"'}], id="no end of the name"),
    pytest.param('!<c>!<invoke name="any">no', "stop", [{"text": '!<c>!<invoke name="any">no'}], id="words, no tag"),
    pytest.param(
        '!<c>!<invoke name="any">', "stop", [{"call": "any", "arguments": "{}"}], id="stopped behind the name"
    ),
    pytest.param('!<c>!<invoke name="any">', "length", [{"call": "any", "arguments": ""}], id="cut behind the name"),
    pytest.param(
        '!<c>!<invoke name="tree">!<text>x!',
        "length",
        [{"call": "tree", "arguments": '{"text": "x!'}],
        id="cut in a text",
    ),
    pytest.param(
        '!<c>!<invoke name="any">!<a>1!</a>',
        "stop",
        [{"call": "any", "arguments": '{"a": 1}'}],
        id="stopped behind a value",
    ),
    pytest.param(
        '!<c>!<invoke name="any">!<a>1!</a>',
        "length",
        [{"call": "any", "arguments": '{"a": 1'}],
        id="cut behind a value",
    ),
    pytest.param(
        DEEP,
        "stop",
        [{"call": "any", "arguments": '{"a": ' * (DEEPEST + 1)}, {"text": "!<a>"}],
        id="nested too deeply",
    ),
]


@pytest.mark.parametrize(("text", "finish", "parts"), CASES)
def test_what_is_written_otherwise(text: str, finish: FinishReason, parts: list[dict[str, str]]) -> None:
    assert [read(text, finish=finish, cut=cut) for cut in (False, True)] == [parts, parts]
