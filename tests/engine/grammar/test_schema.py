"""What the grammar of a schema lets pass is valid for the schema; and a wrong schema gets no grammar."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.grammar.derive import Grammar
from tests.engine.grammar.schemas import SCHEMAS
from tests.engine.grammar.validate import valid
from xenoglot.engine.grammar.gbnf import GrammarRules
from xenoglot.engine.grammar.schema import FORMATS, SchemaGrammar
from xenoglot.errors import FailureError
from xenoglot.model.json import JSON

TEXTS = 60


def compiled(schema: JSON) -> tuple[str, list[tuple[str, str]]]:
    """The grammar of a schema, and what it does not hold."""
    rules = GrammarRules()
    unheld: list[tuple[str, str]] = []
    root = SchemaGrammar(rules, schema, "$", lambda path, keyword: unheld.append((path, keyword))).root()
    return rules.text(root), unheld


@pytest.mark.parametrize("schema", [pytest.param(schema, id=name) for name, schema in SCHEMAS.items()])
def test_what_passes_is_valid(schema: JSON) -> None:
    text, unheld = compiled(schema)
    grammar = Grammar(text)
    derived = [grammar.derive(seed) for seed in range(TEXTS)]
    invalid = [text for text in derived if not valid(json.loads(text), schema, schema)]
    assert (invalid, unheld) == ([], [])


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_held(name: str) -> None:
    grammar = Grammar(compiled({"type": "string", "format": name})[0])
    derived = [json.loads(grammar.derive(seed)) for seed in range(TEXTS)]
    assert [text for text in derived if not re.fullmatch(FORMATS[name], text)] == []


def test_small_models_get_their_blanks() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": [2, {"c": "é"}]}},
        "required": ["a", "b"],
    }
    assert Grammar(compiled(schema)[0]).derive(0) == '{"a": 1, "b": [2, {"c": "é"}]}'


def test_properties_that_are_not_named_are_not_written() -> None:
    grammar = Grammar(compiled({"type": "object", "properties": {}})[0])
    assert {grammar.derive(seed) for seed in range(TEXTS)} == {"{}"}


OBJECT = {"type": "object"}
UNHELD = {
    "not": {"type": "string", "not": {"const": "x"}},
    "if": {**OBJECT, "if": {"required": ["a"]}},
    "patternProperties": {**OBJECT, "patternProperties": {"^x": {}}},
    "propertyNames": {**OBJECT, "propertyNames": {"maxLength": 3}},
    "contains": {"type": "array", "contains": {"const": 1}},
    "dependentRequired": {**OBJECT, "dependentRequired": {"a": ["b"]}},
    "dependentSchemas": {**OBJECT, "dependentSchemas": {"a": {}}},
    "dependencies": {**OBJECT, "dependencies": {"a": ["b"]}},
    "uniqueItems": {"type": "array", "uniqueItems": True},
    "multipleOf": {"type": "integer", "multipleOf": 7},
    "pattern": {"type": "string", "pattern": "^abc$", "minLength": 4},
}


@pytest.mark.parametrize("keyword", UNHELD)
def test_what_cannot_be_held_is_told(keyword: str) -> None:
    assert compiled(UNHELD[keyword])[1] == [(f"$.{keyword}", keyword)]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        pytest.param(False, "nothing is valid for `false`", id="false"),
        pytest.param("x", 'found "x", expected a schema: an object or a boolean', id="no-schema"),
        pytest.param(
            {"properties": {"a": 3}}, "properties.a: found 3, expected a schema: an object or a boolean", id="inside"
        ),
        pytest.param(
            {"type": "strng"},
            'type: found "strng", expected one of object, array, string, integer, number, boolean, null',
            id="type",
        ),
        pytest.param(
            {"type": []},
            "type: found [], expected one of object, array, string, integer, number, boolean, null",
            id="no-type",
        ),
        pytest.param(
            {"enum": []}, "nothing is valid for it: `enum` or `const` has no value of the right type", id="enum-empty"
        ),
        pytest.param({"enum": 3}, "enum: found 3, expected a list", id="enum-no-list"),
        pytest.param(
            {"type": "string", "enum": [1]},
            "nothing is valid for it: `enum` or `const` has no value of the right type",
            id="enum-type",
        ),
        pytest.param({"anyOf": []}, "anyOf: found [], expected a list of at least one schema", id="any-of-empty"),
        pytest.param({"$ref": "#/$defs/x"}, "$ref: `#/$defs/x` leads nowhere in the schema", id="ref-nowhere"),
        pytest.param(
            {"$ref": "http://x/y"},
            '$ref: found "http://x/y", expected a reference within the schema, like `#/$defs/name`',
            id="ref-elsewhere",
        ),
        pytest.param({"$ref": "#"}, "$ref: the schema refers to itself and to nothing else", id="ref-itself"),
        pytest.param(
            {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
            "anyOf[0].anyOf[0].$ref: the schema refers to itself and to nothing else",
            id="ref-left",
        ),
        pytest.param(
            {"pattern": "(?=a)"},
            "pattern: the embedded model cannot keep to it: looking around is not supported",
            id="pattern-look",
        ),
        pytest.param(
            {"pattern": "("},
            "pattern: the embedded model cannot keep to it: a group is not closed, or has an anchor inside",
            id="pattern-wrong",
        ),
        pytest.param(
            {"pattern": "a\\1"},
            "pattern: the embedded model cannot keep to it: `\\1` is not supported",
            id="pattern-memory",
        ),
        pytest.param(
            {"type": "string", "minLength": -1},
            "minLength: found -1, expected a whole number, 0 or more",
            id="length-negative",
        ),
        pytest.param(
            {"type": "string", "minLength": 5, "maxLength": 2},
            "minLength: found 5, expected at most 2",
            id="lengths-crossed",
        ),
        pytest.param(
            {"type": "integer", "minimum": 5, "maximum": 2},
            "no number is valid for it: its bounds exclude all",
            id="numbers-crossed",
        ),
        pytest.param({"type": "integer", "minimum": "5"}, 'minimum: found "5", expected a number', id="number-type"),
        pytest.param(
            {"type": "number", "multipleOf": 0}, "multipleOf: found 0, expected more than 0", id="multiple-of-nothing"
        ),
        pytest.param(
            {"type": "array", "items": False, "minItems": 1}, "minItems: found 1, expected at most 0", id="items-none"
        ),
        pytest.param(
            {"type": "object", "required": ["x"], "additionalProperties": False},
            "required: `x` is required, but may not be there",
            id="required-forbidden",
        ),
        pytest.param(
            {"type": "object", "required": "x"}, 'required: found "x", expected a list of names', id="required-type"
        ),
        pytest.param(
            {"type": "object", "properties": []},
            "properties: found [], expected an object of schemas",
            id="properties-type",
        ),
        pytest.param(
            {"properties": {"a": True}, "minProperties": 2},
            "found [2,null], expected `minProperties` and `maxProperties` that 1 properties can fulfil",
            id="too-few-properties",
        ),
    ],
)
def test_wrong_schemas_are_refused_by_their_path(schema: JSON, told: str) -> None:
    with pytest.raises(FailureError) as raised:
        compiled(schema)
    assert (str(raised.value), raised.value.failure.kind) == (told, "invalid_request")


def nested(depth: int) -> JSON:
    schema: JSON = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def test_deep_and_wide_schemas_are_bounded() -> None:
    with pytest.raises(FailureError, match="nested more than 48 deep"):
        compiled(nested(200))
    with pytest.raises(FailureError, match="too large"):
        compiled({"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(5000)}})


def test_a_small_schema_that_unfolds_without_end_is_bounded() -> None:
    many = {name: {"$ref": "#/$defs/a", "minProperties": 1} for name in "abcdefgh"}
    with pytest.raises(FailureError, match=r"nested more than 48 deep|too large"):
        compiled({"$defs": {"a": {"type": "object", "properties": many}}, "$ref": "#/$defs/a"})


NAMES = st.text(max_size=6)
LEAVES = st.sampled_from([schema for schema in SCHEMAS.values() if "$ref" not in str(schema)])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda named, needed: {"type": "object", "properties": named, "required": list(named)[:needed]},
            st.dictionaries(NAMES, inner, max_size=4),
            st.integers(0, 4),
        ),
        st.builds(
            lambda item, least: {"type": "array", "items": item, "minItems": least, "maxItems": 3},
            inner,
            st.integers(0, 3),
        ),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


@given(schema=TREES, seed=st.integers(0, 10**6))
def test_what_passes_a_schema_of_any_shape_is_valid(schema: JSON, seed: int) -> None:
    text = Grammar(compiled(schema)[0]).derive(seed)
    assert valid(json.loads(text), schema, schema)
