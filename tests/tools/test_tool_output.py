"""What tools give back, and what the model gets of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from decimal import Decimal
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import msgspec
import pydantic
import pytest

from xenoglot.model.content import File, Image, Inline, Stored, Text, ToolCall
from xenoglot.tools.arguments import read_arguments
from xenoglot.tools.tool_output import MOST_MEDIA, ToolError, ToolOutput, as_output, raised, truncate

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int


class Model(pydantic.BaseModel):
    """A model of pydantic's."""

    x: int


class Number:
    """As NumPy's are."""

    def item(self) -> float:
        """Return it."""
        return 1.5


class Wicked:
    """Fails where it is written."""

    def model_dump(self) -> object:
        """Fail."""
        raise ZeroDivisionError("by zero")


class MuteError(Exception):
    """An exception that cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "null", id="none"),
        pytest.param("words", "words", id="text"),
        pytest.param("", "", id="empty"),
        pytest.param(True, "true", id="bool"),
        pytest.param({"a": [1, "é"]}, '{"a": [1, "é"]}', id="json"),
        pytest.param([], "[]", id="no-items"),
        pytest.param((1, 2), "[1, 2]", id="tuple"),
        pytest.param({1: 2}, '{"1": 2}', id="keys-that-are-numbers"),
        pytest.param({"x"}, '["x"]', id="set"),
        pytest.param(Colour.RED, '"red"', id="enum"),
        pytest.param(Point(1), '{"x": 1}', id="dataclass"),
        pytest.param([Model(x=1)], '[{"x": 1}]', id="pydantic"),
        pytest.param(Number(), "1.5", id="numpy"),
        pytest.param(Decimal("1.10"), '"1.10"', id="decimal"),
        pytest.param(dt.date(2026, 1, 2), '"2026-01-02"', id="date"),
        pytest.param(b"hi", '"aGk="', id="bytes"),
        pytest.param("half \ud800", "half \ufffd", id="half-a-character"),
        pytest.param(Text(text="part"), "part", id="a-part"),
        pytest.param(ToolOutput(content=(Text(text="mine"),)), "mine", id="an-output"),
    ],
)
def test_what_can_be_told(value: object, text: str) -> None:
    output = as_output(value)
    assert (output.text, output.is_error) == (text, False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(object(), "a `object` is no JSON", id="object"),
        pytest.param((item for item in "ab"), "a `generator` is no JSON", id="generator"),
        pytest.param({"x": float("inf")}, "Out of range float values are not JSON compliant", id="infinity"),
        pytest.param(10**5000, "Exceeds the limit", id="a-huge-number"),
        pytest.param({(1, 2): 3}, "Only dicts with str-like or number-like keys", id="keys"),
        pytest.param(Wicked(), "ZeroDivisionError: by zero", id="wicked"),
        pytest.param(ToolCall(id="1", name="x"), "", id="a-call"),
        pytest.param(
            ToolOutput(content=(ToolCall(id="1", name="x"),)), "a `ToolCall`, which is no content", id="in-output"
        ),
    ],
)
def test_what_cannot_be_told_is_an_error(value: object, text: str) -> None:
    output = as_output(value)
    assert text in output.text
    assert output.is_error or text == ""


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ToolError("not so"), "not so", id="told"),
        pytest.param(ToolError(""), "the tool failed", id="told-nothing"),
        pytest.param(ValueError("x"), "ValueError: x", id="r-w9-kind-and-words"),
        pytest.param(ValueError(), "ValueError", id="r-w9-without-words"),
        pytest.param(MuteError(), "MuteError", id="r-w9-mute"),
        pytest.param(KeyError("k" * 9000), "KeyError: '" + "k" * 1999 + " ...", id="long"),
        pytest.param(SystemExit(2), "SystemExit: 2", id="exit"),
    ],
)
def test_what_is_raised_is_told(error: BaseException, text: str) -> None:
    assert raised(error) == ToolOutput(content=(Text(text=text),), is_error=True)


def test_the_data_of_an_error_is_for_programs() -> None:
    assert raised(ToolError("no", data={"code": 1})).data == {"code": 1}


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefghi", 3, "ab\n[... 6 characters left out ...]\ni"),
        ("abc", 1, "\n[... 2 characters left out ...]\nc"),
    ],
)
def test_k20_beginning_and_end_of_what_is_too_long(text: str, limit: int, expected: str) -> None:
    assert truncate(text, limit) == expected


def test_the_limit_is_for_all_parts_together() -> None:
    image = Image(source=Inline(data="aGk="))
    output = as_output([Text(text="abcd"), image, Text(text="efgh"), Text(text="ijkl")], 6)
    assert output.content == (Text(text="abcd"), image, Text(text="e\n[... 2 characters left out ...]\nh"))


def test_media_that_are_too_large_are_left_out() -> None:
    huge, stored = Image(source=Inline(data="a" * (MOST_MEDIA + 1))), File(source=Stored(id="f"))
    assert as_output([huge, stored]).content == (Text(text="[image left out: it is too large]"), stored)


ONE: JSONObject = {"type": "object", "properties": {"path": {"type": "string"}}}
TWO: JSONObject = {"type": "object", "properties": {"a": {}, "b": {}}}


@pytest.mark.parametrize(
    ("arguments", "schema", "expected"),
    [
        pytest.param("", ONE, {}, id="empty"),
        pytest.param(" \n", ONE, {}, id="blank"),
        pytest.param("null", ONE, {}, id="null"),
        pytest.param('{"path": "x"}', ONE, {"path": "x"}, id="object"),
        pytest.param('"{\\"path\\": \\"x\\"}"', ONE, {"path": "x"}, id="an-object-in-a-string"),
        pytest.param('"x"', ONE, {"path": "x"}, id="the-only-argument"),
        pytest.param("[1]", ONE, {"path": [1]}, id="a-list-for-the-only-argument"),
        pytest.param("[1]", TWO, "found `[1]`; expected one JSON object", id="r11-no-object"),
        pytest.param('"' + "x" * 99 + '"', TWO, f'found `"{"x" * 59} ...`', id="long"),
        pytest.param('{"a": NaN}', TWO, "not valid JSON", id="nan"),
        pytest.param("{'a': 1}", TWO, "not valid JSON", id="c-w12-python"),
        pytest.param("[" * 5000, TWO, "nested too deeply", id="deep"),
        pytest.param('{"a": "\ud800"}', TWO, "it is not UTF-8", id="half-a-character"),
        pytest.param("3", None, "found `3`", id="no-schema"),
    ],
)
def test_arguments_are_read(arguments: str, schema: JSONObject | None, expected: JSONObject | str) -> None:
    made = ToolCall(id="1", name="x", arguments=arguments)
    if isinstance(expected, dict):
        assert read_arguments(made, schema) == expected
        return
    with pytest.raises(ToolError) as caught:
        read_arguments(made, schema)
    assert expected in str(caught.value)


def test_an_output_travels() -> None:
    output = ToolOutput(content=(Text(text="x"),), data={"a": 1})
    assert msgspec.json.decode(msgspec.json.encode(output), type=ToolOutput) == output


def test_a_value_that_tells_itself_in_its_own_kind_is_no_json() -> None:
    assert "a `MagicMock` is no JSON" in as_output(MagicMock()).text


def test_half_characters_at_the_cut_are_whole_or_replaced() -> None:
    text = as_output("\ud83d\ude00" * 10, 7).text
    assert text.encode()
    assert text.startswith("\U0001f600")
