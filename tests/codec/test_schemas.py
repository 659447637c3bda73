"""What servers ask of schemas that they hold answers to."""

import pytest

from xenoglot.codec.schemas import closed, is_strict
from xenoglot.model.json import JSON, JSONObject

NAMED: JSONObject = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
OPTIONAL: JSONObject = {**NAMED, "required": []}
OPEN: JSONObject = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        pytest.param(NAMED, True, id="pitfall-29-whole"),
        pytest.param(OPTIONAL, False, id="pitfall-29-optional"),
        pytest.param(OPEN, False, id="pitfall-29-open"),
        pytest.param({**NAMED, "$defs": {"d": OPEN}}, False, id="in-a-definition"),
        pytest.param({"type": "array", "items": OPTIONAL}, False, id="in-an-array"),
        pytest.param({"anyOf": [{"type": "null"}, NAMED]}, True, id="in-a-choice"),
        pytest.param({"type": ["object", "null"]}, False, id="or-null"),
        pytest.param({"type": "object", "properties": 1, "additionalProperties": False}, False, id="malformed"),
        pytest.param({"type": "string"}, True, id="no-object"),
        pytest.param(None, True, id="none"),
    ],
)
def test_strict(schema: JSON, *, strict: bool) -> None:
    assert is_strict(schema) is strict


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        pytest.param(NAMED, NAMED, id="closed"),
        pytest.param(OPEN, NAMED, id="pitfall-47-open"),
        pytest.param(OPTIONAL, OPTIONAL, id="optional"),
        pytest.param(
            {"type": "array", "items": OPEN, "minItems": 1, "maxItems": 3},
            {"type": "array", "items": NAMED, "minItems": 1, "description": '{"maxItems":3}'},
            id="items",
        ),
        pytest.param(
            {"anyOf": [OPEN, {"$ref": "#/$defs/d"}], "$defs": {"d": OPEN}},
            {"anyOf": [NAMED, {"$ref": "#/$defs/d"}], "$defs": {"d": NAMED}},
            id="choice-and-definition",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1, "maximum": 9, "description": "D"},
            {"type": "integer", "description": 'D\n\n{"minimum":1,"maximum":9}'},
            id="bounds",
        ),
        pytest.param(
            {**OPEN, "properties": {"minimum": {"type": "integer"}}},
            {**NAMED, "properties": {"minimum": {"type": "integer"}}},
            id="a-property-called-minimum",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
            id="open-in-so-many-words",
        ),
        pytest.param({"type": "object"}, {"type": "object"}, id="no-properties"),
        pytest.param({"allOf": [OPEN]}, {"allOf": [OPEN]}, id="all-of"),
    ],
)
def test_closed(schema: JSONObject, made: JSONObject) -> None:
    before = repr(schema)
    assert closed(schema) == made
    assert repr(schema) == before
