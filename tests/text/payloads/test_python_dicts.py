"""Calls as a list of Python's dicts: written and read again, read at every cut, refused before they are sure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text.parser.parser_input import LONGEST_HELD
from xenoglot.text.payloads.python_dicts import PythonDicts
from xenoglot.text.syntax import CallSyntax, Syntax
from xenoglot.text.tools.render import in_form

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

FORM: Final = CallSyntax(begin=("<c>",), end=("</c>",), payload=PythonDicts())
NOW: Final = {"call": "now", "arguments": "{}"}

_SCALARS: Final = st.none() | st.booleans() | st.integers() | st.text()
VALUES: Final = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def read(text: str, *, cut: bool = False) -> list[dict[str, str]]:
    """Return the parts that are made of `text`, cut into characters or whole."""
    syntax = Syntax(name="test", title="", source="", calls=(FORM,))
    return made(syntax, declared(), list(text) if cut else [text]).parts


@given(
    st.lists(st.tuples(st.sampled_from(["search", "now"]), st.dictionaries(st.text(), VALUES)), min_size=1, max_size=3)
)
def test_what_is_written_is_read(calls: list[tuple[str, dict[str, JSON]]]) -> None:
    said = [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls]
    text = in_form(FORM, said)
    parts = read(text)
    assert parts == read(text, cut=True)
    assert [(part["call"], json.loads(part["arguments"])) for part in parts] == calls


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("<c>[{'name': 'now'}]</c>", [NOW], id="no arguments"),
        pytest.param('<c>[{"name": "now", "arguments": {}, },]</c>', [NOW], id="as JSON, with commas too many"),
        pytest.param("<c>[{'type': 'x', 'arguments': {}, 'name': 'now'}]</c>", [NOW], id="the name last"),
        pytest.param("<c>[{'name': 'now', 'arguments': [1]}]</c>", None, id="arguments that are a list"),
        pytest.param("<c>[{'name': 1}]</c>", None, id="a name that is no string"),
        pytest.param("<c>[{'city': 'Paris'}]</c>", None, id="another key"),
        pytest.param("<c>[{'arguments': {'a': x}, 'name': 'now'}]</c>", None, id="no literal, and no name yet"),
        pytest.param(
            "<c>[{'name': 'now', 'arguments': {'a': [x, (y)], 'b': 1}}]</c>",
            [{"call": "now", "arguments": "{\"a\": [x, (y)], 'b': 1}"}],
            id="no literal",
        ),
        pytest.param(
            f"<c>[{{'arguments': {{'a': '{'b' * LONGEST_HELD}'}}, 'name': 'now'}}]</c>", None, id="too much held"
        ),
    ],
)
def test_how_calls_are_read(text: str, parts: list[dict[str, str]] | None) -> None:
    expected = [{"text": text}] if parts is None else parts
    assert read(text) == expected
    assert len(text) > LONGEST_HELD or read(text, cut=True) == expected
