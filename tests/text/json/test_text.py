"""JSON read as it is written, and strings as what they say, at every cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.parser.test_parser_input import drive, section
from xenoglot.text.json import text as json_text
from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.text.parser.parser_input import ParserInput, Reading

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def raw(text: str, *stops: str) -> tuple[str, str, bool]:
    """Return what was read of `text`, what is left, and whether the value came to its end."""
    said: list[str] = []
    part = section(*stops)
    whole = drive(part, json_text.raw_value(part, said.append), text)
    return "".join(said), part.rest, whole


def spoken(text: str, read: Callable[[ParserInput, Callable[[str], None]], Reading] = json_text.string) -> str:
    """Return what the string that `text` is says."""
    said: list[str] = []
    part = section()
    part.more(text[:1])
    drive(part, read(part, said.append), text[1:])
    return "".join(said)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_a_value_stays_as_it_was_written(value: object, indent: int | None, escaped: bool) -> None:  # noqa: FBT001
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert raw(f"{text},") == (text, ",", True)


@pytest.mark.parametrize(
    ("text", "read", "rest", "whole"),
    [
        pytest.param('{"a": </s>"}', '{"a": ', '</s>"}', False, id="a-stop-outside-of-strings"),
        pytest.param('{"a": "</s>"}', '{"a": "</s>"}', "", True, id="a-stop-in-a-string"),
        pytest.param("{'a': (1]}", "{'a': (1]", "}", True, id="what-is-no-json-is-not-checked"),
        pytest.param('"a\\"b" c', '"a\\"b"', " c", True, id="an-escaped-quote"),
        pytest.param("12 ", "12", " ", True, id="a-number"),
    ],
)
def test_where_a_value_ends(text: str, read: str, rest: str, whole: bool) -> None:  # noqa: FBT001  a parameter
    assert raw(text, "</s>") == (read, rest, whole)


@pytest.mark.parametrize("text", ["}", ",", "<", ")"])
def test_what_begins_no_value(text: str) -> None:
    with pytest.raises(MismatchError):
        raw(text)


@pytest.mark.parametrize("text", ["", '{"a"', '"a', '"a\\', "[[]"])
def test_a_value_that_breaks_off(text: str) -> None:
    with pytest.raises(IncompleteInputError):
        raw(text)


@given(st.text(), st.booleans())
def test_a_string_says_what_it_says(said: str, escaped: bool) -> None:  # noqa: FBT001  generated
    assert spoken(json.dumps(said, ensure_ascii=escaped)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(r'"\ud83c\udf26"', "\N{WHITE SUN BEHIND CLOUD WITH RAIN}", id="a-pair"),
        pytest.param(r'"\ud83c"', "\N{REPLACEMENT CHARACTER}", id="half-of-a-pair"),
        pytest.param(r'"\ud83cx"', "\N{REPLACEMENT CHARACTER}x", id="half-of-a-pair-and-more"),
        pytest.param(r'"\q"', r"\q", id="no-escape"),
        pytest.param(r'"\u12"', r"\u12", id="half-of-an-escape"),
        pytest.param('"a\nb"', "a\nb", id="a-line-break"),
    ],
)
def test_what_is_broken_in_a_string_stays(text: str, said: str) -> None:
    assert spoken(text) == said


@pytest.mark.parametrize("text", ["now", '"' + "x" * (json_text.LONGEST_NAME + 1) + '"'])
def test_what_is_no_name(text: str) -> None:
    part = section()
    with pytest.raises(MismatchError):
        drive(part, json_text.name(part), text)


def test_a_name() -> None:
    part = section()
    assert drive(part, json_text.name(part), r'"get_\u0077eather"') == "get_weather"
