"""Calls in Python's syntax: read at every cut, written and read again, refused before they are sure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import Declaration, declared, made
from xenoglot.text.payloads.python_text import LETTERS
from xenoglot.text.payloads.pythonic import Pythonic
from xenoglot.text.syntax import CallSyntax, Syntax
from xenoglot.text.tools.render import in_form

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

LIST = CallSyntax(begin=("<c>",), end=("</c>",), payload=Pythonic(starts="[" + LETTERS))
LINES = CallSyntax(begin=("<c>",), end=("</c>",), payload=Pythonic(listed=False, words=False, starts=LETTERS))
METHOD = CallSyntax(open=("<c>",), payload=Pythonic(listed=False, method=".call", starts=LETTERS))

_SCALARS = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
NAMES = st.sampled_from(["city", "unit", "from", "class", "a.b", "x-y", "_1"])


def read(form: CallSyntax, text: str, *, finish: str = "stop", cut: bool = False) -> list[dict[str, str]]:
    """Return the parts that `form` makes of `text`, cut into characters or whole."""
    syntax = Syntax(name="test", title="", source="", calls=(form,))
    return made(syntax, declared(), list(text) if cut else [text], "length" if finish == "length" else "stop").parts


@pytest.mark.parametrize("form", [LIST, LINES], ids=["list", "lines"])
@given(st.lists(st.tuples(st.sampled_from(["search", "now"]), st.dictionaries(NAMES, VALUES)), min_size=1, max_size=3))
def test_what_is_written_is_read(form: CallSyntax, calls: list[tuple[str, dict[str, JSON]]]) -> None:
    said = [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls]
    text = in_form(form, said)
    expected = [{"call": name, "arguments": arguments} for name, arguments in calls]
    for cut in (False, True):
        parts = [{**part, "arguments": json.loads(part["arguments"])} for part in read(form, text, cut=cut)]
        assert parts == expected


def test_method() -> None:
    text = in_form(METHOD, [("search", '{"query": "it\'s", "exact": true}')])
    assert text == '<c>search.call(query="it\'s", exact=True)'
    assert read(METHOD, text, cut=True) == [{"call": "search", "arguments": '{"query": "it\'s", "exact": true}'}]


def test_words_inside_strings_stay() -> None:
    text = in_form(LIST, [("search", '{"query": "true \\"null\\" false", "tags": [null, "None"], "limit": 1.50}')])
    assert text == '<c>[search(query="true \\"null\\" false", tags=[None, "None"], limit=1.50)]</c>'


def test_no_object_is_given_back() -> None:
    assert in_form(LIST, [("search", '{"query": "a')]) == '<c>[search({"query": "a)]</c>'


@pytest.mark.parametrize(
    "text",
    [
        *("<c>[search(query)]</c>", "<c>[search query]</c>", "<c>[3]</c>", "<c>[] x</c>", "<c>[search(*a)]</c>"),
        *("<c>[search(query=f(1))]</c>", "<c>[search[0](a=1)]</c>", "<c>[now('too', 'many')]</c>", "<c>search</c>"),
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert [read(LIST, text), read(LIST, text, cut=True)] == [[{"text": text}]] * 2


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(
            '<c>[now(), search(query="a", limit=two, exact=True)]</c> x',
            [
                {"call": "now", "arguments": "{}"},
                {"call": "search", "arguments": '{"query": "a", "limit": two, "exact": true}'},
                {"text": " x"},
            ],
            id="what is no literal stays what it is in a call that has begun",
        ),
        pytest.param(
            "<c>[write_file(path='it's', content='sed -n '3p' f(x, y)')]</c>",
            [{"call": "write_file", "arguments": '{"path": "it"s\', "content": "sed -n "3p\' f(x, y)\'}'}],
            id="L-W15 quotes in quotes",
        ),
        pytest.param(
            "<c>[search('a', 1, True, [], {}, None, extra, (1, (b, c)), **more)]</c>",
            [
                {
                    "call": "search",
                    "arguments": '{"query": "a", "limit": 1, "exact": true, "tags": [], "options": {}, "since": null, '
                    "extra, (1, (b, c)), **more}",
                }
            ],
            id="more than the schema has names for",
        ),
        pytest.param(
            '<c>[now(), rm(path="/"), now()]</c>',
            [
                {"call": "now", "arguments": "{}"},
                {"text": ', rm(path="/"), '},
                {"call": "now", "arguments": "{}"},
            ],
            id="an undeclared call between declared ones",
        ),
        pytest.param(
            "<c>[search(query=b'(\\')'), now()]</c>",
            [{"text": "<c>[search(query=b'(\\')'), "}, {"call": "now", "arguments": "{}"}],
            id="a first call that cannot be read",
        ),
        pytest.param(
            "<c>[search(query=b'z), now()]</c>",
            [{"text": "<c>[search(query=b'z), now()]</c>"}],
            id="one whose string has no end",
        ),
        pytest.param(
            "<c>[now(), and then</c>",
            [{"call": "now", "arguments": "{}"}, {"text": ", and then</c>"}],
            id="prose behind a call",
        ),
        pytest.param(
            "<c>now()\nDone.",
            [{"call": "now", "arguments": "{}"}, {"text": "\nDone."}],
            id="words where another call may begin",
        ),
    ],
)
def test_broken(text: str, parts: list[dict[str, str]]) -> None:
    assert [read(LIST, text), read(LIST, text, cut=True)] == [parts, parts]


@pytest.mark.parametrize(
    ("text", "stopped", "cut_off"),
    [
        ('<c>[search(query="a"', '{"query": "a"}', '{"query": "a"'),
        ('<c>[search(query="a", ', '{"query": "a"}', '{"query": "a"'),
        ('<c>[search(query="a', '{"query": "a', '{"query": "a'),
    ],
)
def test_a_stop_closes_what_is_whole(text: str, stopped: str, cut_off: str) -> None:
    assert read(LIST, text, cut=True) == [{"call": "search", "arguments": stopped}]
    assert read(LIST, text, finish="length", cut=True) == [{"call": "search", "arguments": cut_off}]


def test_positions_need_a_schema() -> None:
    bare = Syntax(name="test", title="", source="", calls=(LIST,))
    known = declared([Declaration("f")])
    assert made(bare, known, ["<c>[f(1)]</c>"]).parts == [{"text": "<c>[f(1)]</c>"}]


def test_names_are_resolved() -> None:
    assert read(LIST, "<c>[functions.now()]</c>") == [{"call": "now", "arguments": "{}"}]
