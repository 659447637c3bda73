"""Calls in tags: read at every cut, written and read again, ended where the model or the limit ended them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text.payloads.markup import Markup
from xenoglot.text.syntax import CallSyntax, Syntax
from xenoglot.text.tools.render import in_form

if TYPE_CHECKING:
    from tests.text.vectors import Outcome
    from xenoglot.model.json import JSON
    from xenoglot.model.response import FinishReason

TAGS: Final = Markup(call=("<f=",), call_end=("</f>",), parameter=("<p=",), parameter_end=("</p>",))
PADDED: Final = Markup(call=("<f=",), call_end=("</f>",), parameter=("<p=",), parameter_end=("</p>",), padded=True)
PAIRS: Final = Markup(
    call_name_end=(),
    parameter=("<k>",),
    name_end=("</k>",),
    value=("<v>",),
    parameter_end=("</v>",),
    trim="nothing",
)
SAID: Final = Markup(
    call=("<f=",),
    call_end=("</f>",),
    parameter=('<p="',),
    name_end=('" s>', '" j>', '">'),
    texts=('" s>',),
    jsons=('" j>',),
    parameter_end=("</p>",),
    trim="nothing",
    object=True,
)
LOOSE: Final = Markup(
    parameter=("<p=",), parameter_end=("</p>",), call_end=("</f>",), trim="blanks", loose=True, line=""
)
WRAPPED: Final = Markup(
    call=("<f=",), call_end=("</f>",), parameter=("<p=",), parameter_end=("</p>",), wrapped=("{{", "}}")
)

FORMS: Final = {
    "tags": CallSyntax(open=("<c>",), close=("</c>",), payload=TAGS),
    "padded": CallSyntax(open=("<c>",), close=("</c>",), payload=PADDED),
    "pairs": CallSyntax(open=("<c>",), close=("</c>",), payload=PAIRS),
    "said": CallSyntax(begin=("<c>",), end=("</c>",), payload=SAID),
    "loose": CallSyntax(open=("* <f=",), payload=LOOSE),
    "wrapped": CallSyntax(open=("<c>",), close=("</c>",), payload=WRAPPED),
}


def read(form: str, text: str, *, finish: FinishReason = "stop", cut: bool = False) -> Outcome:
    """Return what `form` makes of `text`, cut into characters or whole."""
    syntax = Syntax(name="test", title="", source="", calls=(FORMS[form],))
    return made(syntax, declared(), list(text) if cut else [text], finish)


WORDS = st.text(st.sampled_from("ab1 \n\"'\\{}[]é\U0001f600<>/=,:"), max_size=12).filter(lambda text: "</" not in text)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "query": WORDS,
        "limit": st.integers(),
        "exact": st.booleans(),
        "tags": st.lists(WORDS, max_size=3),
        "options": st.dictionaries(st.sampled_from(["lang", "safe"]), WORDS),
    },
)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "loose"])
@given(st.lists(st.tuples(st.just("search"), ARGUMENTS) | st.just(("now", {})), min_size=1, max_size=3))
def test_what_is_written_is_read(form: str, calls: list[tuple[str, dict[str, JSON]]]) -> None:
    text = in_form(FORMS[form], [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls])
    expected = [{"call": name, "arguments": arguments} for name, arguments in calls]
    for cut in (False, True):
        parts = [{**part, "arguments": json.loads(part["arguments"])} for part in read(form, text, cut=cut).parts]
        assert parts == expected


def test_forms_as_they_are_written() -> None:
    calls = [("search", '{"query": "a\\nb", "tags": ["x"], "limit": 1.50}'), ("now", "")]
    assert {name: in_form(form, calls) for name, form in FORMS.items()} == {
        "tags": '<c><f=search>\n<p=query>a\nb</p>\n<p=tags>["x"]</p>\n<p=limit>1.5</p>\n</f></c>\n<c><f=now>\n</f></c>',
        "padded": (
            '<c><f=search>\n<p=query>\na\nb\n</p>\n<p=tags>\n["x"]\n</p>\n<p=limit>\n1.5\n</p>\n</f></c>\n'
            "<c><f=now>\n</f></c>"
        ),
        "pairs": (
            '<c>search\n<k>query</k>\n<v>a\nb</v>\n<k>tags</k>\n<v>["x"]</v>\n<k>limit</k>\n<v>1.5</v>\n</c>\n<c>now\n</c>'
        ),
        "said": (
            '<c><f=search>\n<p="query" s>a\nb</p>\n<p="tags" j>["x"]</p>\n<p="limit" j>1.5</p>\n</f>\n<f=now>\n</f></c>'
        ),
        "loose": '* <f=search><p=query>a\nb</p><p=tags>["x"]</p><p=limit>1.5</p></f>\n* <f=now></f>',
        "wrapped": (
            '<c><f=search>\n<p=query>a\nb</p>\n<p=tags>["x"]</p>\n<p=limit>1.5</p>\n</f></c>\n<c><f=now>\n</f></c>'
        ),
    }


def test_arguments_that_are_no_object_stand_as_they_are() -> None:
    assert in_form(FORMS["tags"], [("search", '{"query": "a')]) == '<c><f=search>\n{"query": "a\n</f></c>'


CASES = [
    pytest.param("tags", "<c><f=now", "length", [{"text": "<c><f=now"}], id="cut in the name"),
    pytest.param("tags", "<c><f=now>", "length", [{"call": "now", "arguments": ""}], id="cut behind the name"),
    pytest.param("tags", "<c><f=now>", "stop", [{"call": "now", "arguments": "{}"}], id="stopped behind the name"),
    pytest.param("tags", "<c><f=add><p=a>1", "length", [{"call": "add", "arguments": '{"a": '}], id="cut in a number"),
    pytest.param(
        "tags", "<c><f=add><p=a>1", "stop", [{"call": "add", "arguments": '{"a": 1}'}], id="stopped in a number"
    ),
    pytest.param(
        "tags", "<c><f=add><p=a>1</p>", "length", [{"call": "add", "arguments": '{"a": 1'}], id="cut behind one"
    ),
    pytest.param(
        "tags", "<c><f=add><p=a>1</p>", "stop", [{"call": "add", "arguments": '{"a": 1}'}], id="stopped behind"
    ),
    pytest.param(
        "tags", "<c><f=add><p=a>1</p> </", "stop", [{"call": "add", "arguments": '{"a": 1}'}], id="half a tag"
    ),
    pytest.param(
        "tags",
        "<c><f=write_file><p=path>a</p><p=content>\nx\n",
        "length",
        [{"call": "write_file", "arguments": '{"path": "a", "content": "x'}],
        id="a line break that may be the tag's is held",
    ),
    pytest.param(
        "tags",
        "<c><f=write_file><p=path>a</p><p=content>x\n</p></f></c>",
        "stop",
        [{"call": "write_file", "arguments": '{"path": "a", "content": "x\\n"}'}],
        id="a line break at the end of a value in its tags' line",
    ),
    pytest.param("tags", "<c><f=now><p=a<b>", "stop", [{"call": "now", "arguments": ""}, {"text": "<b>"}], id="no key"),
    pytest.param("tags", "<c><f=now> well", "stop", [{"text": "<c><f=now> well"}], id="words behind the name"),
    pytest.param("tags", "<c><f=a b>", "stop", [{"text": "<c><f=a b>"}], id="no name"),
    pytest.param("tags", f"<c><f={'n' * 600}>", "stop", [{"text": f"<c><f={'n' * 600}>"}], id="a name without end"),
    pytest.param("pairs", "<c>now", "stop", [{"text": "<c>now"}], id="a name that may go on"),
    pytest.param("pairs", "<c>now</c>", "stop", [{"call": "now", "arguments": "{}"}], id="a name and nothing else"),
    pytest.param("said", "<c><f=now>{}</f></c>", "stop", [{"call": "now", "arguments": "{}"}], id="an object"),
    pytest.param(
        "said", '<c><f=now>{"a": "</c>', "length", [{"call": "now", "arguments": '{"a": "</c>'}], id="cut in an object"
    ),
    pytest.param(
        "said",
        '<c><f=get_weather><p="city" j>3</p><p="unit" s>3</p></f></c>',
        "stop",
        [{"call": "get_weather", "arguments": '{"city": 3, "unit": "3"}'}],
        id="the model says what is a string",
    ),
    pytest.param(
        "wrapped",
        "<c><f=get_weather><p=city>{{a</p><f=now>}}</p></f></c>",
        "stop",
        [{"call": "get_weather", "arguments": '{"city": "a</p><f=now>"}'}],
        id="inner tags",
    ),
    pytest.param(
        "loose", "* <f=now>\nDone.", "stop", [{"call": "now", "arguments": "{}"}, {"text": "\nDone."}], id="words"
    ),
    pytest.param(
        "loose",
        "* <f=get_weather><p=city> a </p> b",
        "stop",
        [{"call": "get_weather", "arguments": '{"city": "a"}'}, {"text": " b"}],
        id="blanks around a value, words behind",
    ),
]


@pytest.mark.parametrize(("form", "text", "finish", "parts"), CASES)
def test_what_is_not_whole(form: str, text: str, finish: FinishReason, parts: list[dict[str, str]]) -> None:
    assert [read(form, text, finish=finish, cut=cut).parts for cut in (False, True)] == [parts, parts]
