"""Python's literals become JSON as they come: at every cut the same, and what is no literal is told."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError, ParserInput
from xenoglot.text.parser.scanner import MarkerScanner
from xenoglot.text.payloads import python_text

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
LITERALS = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def read(text: str, *, stride: int | None = None) -> tuple[str, str]:
    """Return the JSON that was made of the literal at the beginning of `text`, and what is behind it."""
    section = ParserInput(DeclaredTools({}), MarkerScanner(()))
    made: list[str] = []
    reading = python_text.value(section, python_text.JSONWriter(made.append))
    stride = stride or max(1, len(text))
    for end in range(stride, max(1, len(text)) + stride, stride):
        section.more(text[end - stride : end])
        section.ended = end >= len(text)
        if next(reading, "over") == "over":
            return "".join(made), section.rest + text[end:]
    raise AssertionError("it waits for more")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        pytest.param("'it\\'s'", '"it\'s"', id="L-W15 an apostrophe"),
        pytest.param('"a\'b"', '"a\'b"', id="the other quote inside"),
        pytest.param("''", '""', id="empty"),
        pytest.param('""', '""', id="empty in double quotes"),
        pytest.param("''''a'b''c\nd'''", "\"'a'b''c\\nd\"", id="triple quotes with quotes inside"),
        pytest.param('""""""', '""', id="empty in triple quotes"),
        pytest.param("'a\nb'", '"a\\nb"', id="a raw line break"),
        pytest.param(r"'\n\t\\\x41\u00e9\U0001F600\101\0'", '"\\n\\t\\\\Aé😀A\\u0000"', id="escapes"),
        pytest.param(r"'\ud83d\ude00'", '"😀"', id="two halves of a pair, as JSON has them"),
        pytest.param(r"'\ud83dx\udc00'", '"�x�"', id="halves alone"),
        pytest.param(
            r"'\d\N{DASH}\xZZ\u12'", r'"\\d\\N{DASH}\\xZZ\\u12"', id="no escapes of Python's, or none without a name"
        ),
        pytest.param("'a\\\nb'", '"ab"', id="a line that goes on"),
        pytest.param(r"r'\d\'x'", r'"\\d\\' + "'x\"", id="raw"),
        pytest.param("u'a'", '"a"', id="old"),
        pytest.param("'a' \"b\"\n'c'", '"abc"', id="strings behind each other are one"),
        pytest.param("0", "0", id="nothing"),
        pytest.param("1.50", "1.50", id="pitfall-128 a number as it is written"),
        pytest.param("1152921504606846977", "1152921504606846977", id="pitfall-128 a large one"),
        pytest.param("-1_000.5_0E+3", "-1000.50E+3", id="underscores"),
        pytest.param("+.5", "0.5", id="a bare point"),
        pytest.param("007", "7", id="zeros before it"),
        pytest.param("-0xFf", "-255", id="hexadecimal"),
        pytest.param("0b101", "5", id="binary"),
        pytest.param("0o17", "15", id="octal"),
        pytest.param("[1, [2,], {}]", "[1, [2], {}]", id="lists"),
        pytest.param("()", "[]", id="empty tuple"),
        pytest.param("(1,)", "[1]", id="tuple of one"),
        pytest.param("(1, (2, 3))", "[1, [2, 3]]", id="tuples"),
        pytest.param("('a' 'b')", '"ab"', id="parentheses alone"),
        pytest.param("((None))", "null", id="parentheses in parentheses"),
        pytest.param("{'a':1,\"b\" : [True,],}", '{"a": 1, "b": [true]}', id="an object"),
        pytest.param(
            "{1: 2, None: 3, True: 4, 1.5: 5}", '{"1": 2, "null": 3, "true": 4, "1.5": 5}', id="keys of other kinds"
        ),
        pytest.param("false", "false", id="JSON's words"),
        pytest.param("{1}", "[1]", id="a set"),
        pytest.param("{'a', (2, 3), 4,}", '["a", [2, 3], 4]', id="a set of several"),
    ],
)
def test_literal(text: str, made: str) -> None:
    assert [read(text), read(text, stride=1), read(f"{text},'", stride=1)] == [(made, ""), (made, ""), (made, ",'")]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "x",
            "Paris",
            "b'a'",
            "f'a'",
            "1.2.3",
            "1-2",
            "1e",
            "inf",
            "nan",
            "-",
            "1_",
            "1j",
            "{[1]: 2}",
            "{1 2}",
            "{1, 'a': 2}",
            "(1 2)",
        ),
        *("[1 2]", "{'a' 1}", "lambda: 1", ":", ")", "[" * 65, "1" * 600, "'a' b'c'"),
    ],
)
def test_no_literal(text: str) -> None:
    with pytest.raises(MismatchError):
        assert read(f"[{text}, 0]") is None


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("'ab", '"ab'),
        ("'ab\\", '"ab'),
        ("[1, ", "[1"),
        ('{"a": ', '{"a"'),
        ('{"a": "b', '{"a": "b'),
        ("(1, 2", "[1, 2"),
        ("[Tr", "["),
        (" ", ""),
    ],
)
def test_cut_off(text: str, made: str) -> None:
    """What was made before the answer broke off is the beginning of JSON."""
    section = ParserInput(DeclaredTools({}), MarkerScanner(()))
    section.more(text)
    section.ended = True
    said: list[str] = []
    with pytest.raises((IncompleteInputError, MismatchError)):
        next(python_text.value(section, python_text.JSONWriter(said.append)))
    assert "".join(said) == made


@given(LITERALS)
def test_what_python_writes_is_read(value: JSON) -> None:
    made, behind = read(repr(value) + ")")
    assert (json.loads(made), behind) == (json.loads(json.dumps(value)), ")")
    assert read(repr(value) + ")", stride=1) == (made, behind)


@given(st.text(alphabet="'\"\\rux019af\n[](){},: _.+-eTN", max_size=40))
def test_what_is_read_python_reads_too(text: str) -> None:
    """Where Python takes our text for a literal, it means what we make of it; else nothing but a mismatch comes out."""
    try:
        made, behind = read(text)
    except (IncompleteInputError, MismatchError):
        return
    try:
        meant = ast.literal_eval(text[: len(text) - len(behind)].strip().replace("\n", "\\n"))
        told = json.loads(json.dumps(meant))
    except (SyntaxError, ValueError, TypeError, MemoryError):
        return  # it is more than Python admits: zeros before a number, line breaks in a string
    if "\\\n" not in text:
        assert json.loads(made) == told
