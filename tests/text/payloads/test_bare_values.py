"""Values written bare become JSON of the declared type, and nothing of them is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.text.payloads.bare_values import (
    MOST_STEPS,
    escaped,
    item_schema,
    kinds,
    only_text,
    property_schema,
    typed,
)

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

STRING = {"type": "string"}
NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}
ANYTHING: dict[str, JSON] = {}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        pytest.param("007", STRING, '"007"', id="a string that looks like a number"),
        pytest.param("null", STRING, '"null"', id="a string that looks like nothing"),
        pytest.param(' "a" ', STRING, '" \\"a\\" "', id="quotes and blanks are the string's"),
        pytest.param("7", {"type": "integer"}, "7", id="integer"),
        pytest.param(" 1.0\n", {"type": "number"}, "1.0", id="pitfall-128 a number as it is written"),
        pytest.param("1152921504606846977", {"type": "integer"}, "1152921504606846977", id="pitfall-128 a large one"),
        pytest.param("1e400", {"type": "number"}, "1e400", id="a number beyond a double"),
        pytest.param("7.5", {"type": "integer"}, "7.5", id="not an integer, but a number"),
        pytest.param("007", {"type": "integer"}, "7", id="zeros before a number"),
        pytest.param("-00.5", {"type": "number"}, "-0.5", id="zeros before a fraction"),
        pytest.param("007", {"type": ["integer", "string"]}, '"007"', id="zeros, where a string may stand"),
        pytest.param("x007", {"type": "integer"}, '"x007"', id="no number with zeros in it"),
        pytest.param("True", {"type": "boolean"}, "true", id="Python's boolean"),
        pytest.param("yes", {"type": "boolean"}, '"yes"', id="no boolean"),
        pytest.param("None", {"type": ["integer", "null"]}, "null", id="Python's nothing"),
        pytest.param("None", NULLABLE, '"None"', id="findings-C7-a word where a string may stand"),
        pytest.param("none", NULLABLE, '"none"', id="findings-C7-the same in small letters"),
        pytest.param("null", NULLABLE, "null", id="nullable"),
        pytest.param("nobody", NULLABLE, '"nobody"', id="nullable string"),
        pytest.param('"nobody"', NULLABLE, '"\\"nobody\\""', id="nullable string in quotes"),
        pytest.param("3", {"type": ["string", "integer"]}, "3", id="what it looks like, where that is admitted"),
        pytest.param("3.5", {"type": ["string", "integer"]}, '"3.5"', id="a string, where it is not"),
        pytest.param('["a", "b"]', {"type": "array"}, '["a", "b"]', id="list"),
        pytest.param("[1,  2]", {"type": "array"}, "[1,  2]", id="list with its blanks"),
        pytest.param(
            "['it\\'s', \"b\", 'a \"c\"', (1, None,),]",
            {"type": "array"},
            '["it\'s", "b", "a \\"c\\"", [1, null]]',
            id="Python's list",
        ),
        pytest.param("{'a': True}", {"type": "object"}, '{"a": true}', id="Python's dict"),
        pytest.param("[1, 2", {"type": "array"}, '"[1, 2"', id="an unfinished list is kept as a string"),
        pytest.param("['a", {"type": "array"}, '"[\'a"', id="an unfinished string of Python's"),
        pytest.param("f(1)", {"type": "object"}, '"f(1)"', id="no value at all"),
        pytest.param('"5"', {"type": "integer"}, "5", id="a number in quotes"),
        pytest.param('\\"5\\"', {"type": "number"}, "5", id="a number in quotes that are escaped"),
        pytest.param('"five"', {"type": "integer"}, '"five"', id="JSON of another type"),
        pytest.param('"null"', {"type": ["string", "null"]}, '"null"', id="quotes that tell a string from null"),
        pytest.param("1", {"type": "boolean"}, "true", id="one is true"),
        pytest.param("1", {"type": ["boolean", "integer"]}, "1", id="one is a number where numbers are allowed"),
        pytest.param("+1", {"type": "integer"}, "1", id="a number with a plus"),
        pytest.param("5.", {"type": "number"}, "5.0", id="a number without digits behind its point"),
        pytest.param("2", {"type": "number", "enum": [1, 2]}, "2", id="a number with an enum of integers"),
        pytest.param("7", {"enum": ["7", 8]}, '"7"', id="one of the strings of an enum"),
        pytest.param("", {"type": "integer"}, '""', id="nothing"),
        pytest.param("3", ANYTHING, "3", id="unknown: a number"),
        pytest.param("false", ANYTHING, "false", id="unknown: a boolean"),
        pytest.param("False", ANYTHING, '"False"', id="unknown: Python's is a word"),
        pytest.param('{"a": 1}', ANYTHING, '{"a": 1}', id="unknown: an object"),
        pytest.param('"a"', ANYTHING, '"\\"a\\""', id="unknown: a string keeps its quotes"),
        pytest.param("Paris", ANYTHING, '"Paris"', id="unknown: a string"),
        pytest.param("celsius", {"enum": ["celsius", "kelvin"]}, '"celsius"', id="one of some strings"),
        pytest.param("2", {"enum": [1, 2]}, "2", id="one of some numbers"),
        pytest.param("2", {"const": "2"}, '"2"', id="one string"),
        pytest.param("3", {"type": "STRING"}, '"3"', id="Google's spelling"),
        pytest.param("null", {"type": "string", "nullable": True}, "null", id="OpenAPI's nullable"),
        pytest.param("3", {"allOf": [{"type": ["string", "integer"]}, {"type": "string"}]}, '"3"', id="all of"),
        pytest.param("\ud800", STRING, '"\ud800"', id="half a surrogate pair"),
    ],
)
def test_a_value_takes_the_declared_type(text: str, schema: JSON, value: str) -> None:
    assert typed(text, schema, schema) == value


ROOT: JSON = {
    "$defs": {"name": STRING, "loop": {"$ref": "#/$defs/loop"}, "a/b": {"type": "null"}},
    "properties": {"who": {"$ref": "#/$defs/name"}, "what": {"type": "object", "additionalProperties": STRING}},
    "allOf": [{"properties": {"more": {"type": "boolean"}}}],
}


@pytest.mark.parametrize(
    ("schema", "admitted"),
    [
        pytest.param({"$ref": "#/$defs/name"}, {"string"}, id="reference"),
        pytest.param({"$ref": "#/$defs/a~1b"}, {"null"}, id="RFC 6901 escape"),
        pytest.param({"$ref": "#/$defs/none"}, None, id="dangling reference"),
        pytest.param({"$ref": "https://example.com/schema"}, None, id="foreign reference"),
        pytest.param({"$ref": "#/$defs/loop"}, None, id="endless reference"),
        pytest.param({"anyOf": [{"type": "string"}, {}]}, None, id="any of anything"),
        pytest.param({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"string", "null"}, id="one of"),
        pytest.param({"properties": {}}, {"object"}, id="properties without a type"),
        pytest.param({"items": {}}, {"array"}, id="items without a type"),
        pytest.param({"type": "file"}, None, id="unknown type"),
        pytest.param(True, None, id="true"),
        pytest.param(None, None, id="none"),
    ],
)
def test_a_schema_admits_types(schema: JSON, admitted: set[str] | None) -> None:
    assert kinds(schema, ROOT) == admitted


def test_a_schema_that_branches_without_end_admits_anything() -> None:
    branching: JSON = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}}
    assert kinds({"$ref": "#/$defs/a"}, branching) is None
    assert property_schema({"anyOf": [{"$ref": "#"}] * MOST_STEPS}, "a", branching) is None


def test_a_property_is_found_where_the_schema_keeps_it() -> None:
    found = {name: property_schema(ROOT, name, ROOT) for name in ("who", "more", "other")}
    assert found == {"who": {"$ref": "#/$defs/name"}, "more": {"type": "boolean"}, "other": None}
    assert property_schema(ROOT["properties"]["what"], "any", ROOT) == STRING
    assert item_schema({"type": "array", "items": STRING}, ROOT) == STRING
    assert item_schema({"type": "array"}, ROOT) is None
    assert only_text({"$ref": "#/$defs/name"}, ROOT)
    assert not only_text(NULLABLE, ROOT)


KNOWN = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SCHEMAS = st.one_of(st.just(None), st.builds(lambda names: {"type": names}, st.lists(KNOWN, min_size=1, unique=True)))
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet="\"'\\[]{}(),: 1aTrue", max_size=40),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ).map(repr),
)


@given(text=TEXTS, schema=SCHEMAS)
def test_whatever_was_written_becomes_json(text: str, schema: JSON) -> None:
    value = json.loads(typed(text, schema, schema))
    assert not isinstance(value, str) or value == text or schema is not None


@given(text=st.text())
def test_a_string_is_what_was_written(text: str) -> None:
    assert json.loads(typed(text, STRING, STRING)) == text
    assert json.loads(f'"{escaped(text)}"') == text


@given(text=st.text(), cut=st.integers(0, 50))
def test_a_string_is_escaped_in_pieces(text: str, cut: int) -> None:
    assert escaped(text[:cut]) + escaped(text[cut:]) == escaped(text)
