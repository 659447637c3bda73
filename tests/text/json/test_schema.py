"""What is wrong with a text, told without the text; and nothing is opened, or goes on for ever, to find out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import WireError
from xenoglot.text.json.schema import MOST_PROBLEMS, JSONSchema, SchemaProblem
from xenoglot.text.json.schema_cost import too_costly

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

SECRET = "a secret of the model's, which nobody else is told"
TOLD: dict[str, tuple[JSON, str, str]] = {
    "type": ({"type": "integer"}, json.dumps(SECRET), "$: expected integer, found a string of length 50"),
    "types": ({"type": ["integer", "null"]}, "true", "$: expected null or integer, found true"),
    "a place": (
        {"properties": {"a": {"items": {"type": "string"}}}},
        '{"a": ["x", 7]}',
        "$.a[1]: expected string, found a number",
    ),
    "a strange name": (
        {"additionalProperties": {"type": "null"}},
        '{"a b\\n\\u2028": []}',
        "$['a b\\n\\u2028']: expected null, found an array of length 0",
    ),
    "required": ({"required": ["age"]}, "{}", "$: expected the property `age`, found an object without it"),
    "surplus": (
        {"properties": {"a": {}}, "additionalProperties": False},
        '{"a": 1, "b": 2}',
        "$: expected no properties but those named, found `b`",
    ),
    "enum": ({"enum": ["a", "b"]}, json.dumps(SECRET), '$: expected `enum` ["a","b"], found a string of length 50'),
    "const": ({"const": 1}, "null", "$: expected `const` 1, found null"),
    "minimum": ({"minimum": 3}, "1", "$: expected `minimum` 3, found a number"),
    "pattern": ({"pattern": "^a+$"}, json.dumps(SECRET), '$: expected `pattern` "^a+$", found a string of length 50'),
    "anyOf": (
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "{}",
        "$: expected one of 2 forms (`anyOf`), found an object",
    ),
    "oneOf": ({"oneOf": [{}, {}]}, "1", "$: expected exactly one of 2 forms (`oneOf`), found a number"),
    "not": ({"not": {}}, "1", "$: expected no value of the form that `not` says, found a number"),
    "false": ({"properties": {"a": False}}, '{"a": 1}', "$.a: expected nothing here, found a number"),
    "an older draft": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]},
        "[1]",
        "$[0]: expected null, found a number",
    ),
    "no JSON": ({}, '{"a": ' + SECRET, "$: expected JSON, found not valid JSON: invalid character (byte 6)"),
    "nothing": ({}, " ", "$: expected JSON, found no JSON"),
    "NaN": ({}, "NaN", "$: expected JSON, found not valid JSON: invalid character (byte 0)"),
    "no JSON of any form": (None, "{", "$: expected JSON, found not valid JSON: Input data was truncated"),
}


@pytest.mark.parametrize(("schema", "text", "told"), TOLD.values(), ids=TOLD)
def test_a_problem_is_told_without_the_text(schema: JSON, text: str, told: str) -> None:
    assert [str(problem) for problem in JSONSchema(schema).problems(text)] == [told]


VALID: dict[str, tuple[JSON, str]] = {
    "any JSON": (None, "[1]"),
    "true": (True, "1"),
    "format is not checked": ({"format": "email"}, '"nobody"'),
    "a large number": ({"type": "integer"}, "9" * 400),
    "a tree": ({"properties": {"a": {"$ref": "#"}}, "required": []}, '{"a":' * 200 + "{}" + "}" * 200),
    "a loop": ({"$ref": "#"}, "1"),
    "an id of its own": ({"$id": "https://x.test/s", "$defs": {"a": {}}, "$ref": "#/$defs/a"}, "1"),
}


@pytest.mark.parametrize(("schema", "text"), VALID.values(), ids=VALID)
def test_what_is_valid_has_no_problem(schema: JSON, text: str) -> None:
    assert list(JSONSchema(schema).problems(text)) == []


def test_a_few_problems_are_told_at_once() -> None:
    names = "abcdefgh"
    problems = JSONSchema({"required": list(names)}).problems("{}")
    assert list(problems) == [
        SchemaProblem("$", f"the property `{name}`", "an object without it") for name in names[:MOST_PROBLEMS]
    ]


def test_what_is_told_is_short() -> None:
    schema = {"additionalProperties": {"enum": ["a" * 1000]}}
    told = [str(problem) for problem in JSONSchema(schema).problems(json.dumps({"b" * 1000: SECRET}))]
    assert told == [
        "$['" + "b" * 40 + "...']: expected " + '`enum` ["' + "a" * 151 + "..., found a string of length 50"
    ]


REFUSED: dict[str, tuple[JSON, str]] = {
    "a list": ([], "$.s: expected a JSON Schema: an object or a boolean"),
    "no type": (
        {"properties": {"a": {"type": "x"}}},
        "$.s.properties.a.type: no JSON Schema: expected one of 2 forms (`anyOf`)",
    ),
    "no pattern": ({"pattern": "("}, '$.s.pattern: no JSON Schema: expected `format` "regex"'),
    "an address": ({"$ref": "http://127.0.0.1:9/x"}, "$.s: it refers to what is not in it; nothing else is looked up"),
    "a file": ({"$ref": "file:///etc/hosts"}, "$.s: it refers to what is not in it; nothing else is looked up"),
    "a name": ({"$ref": "other.json"}, "$.s: it refers to what is not in it; nothing else is looked up"),
    "nowhere": ({"$ref": "#/$defs/a"}, "$.s: it refers to what is not in it; nothing else is looked up"),
    "a dialect": (
        {"$schema": "http://127.0.0.1:9/x"},
        "$.s: it refers to what is not in it; nothing else is looked up",
    ),
}


@pytest.mark.parametrize(("schema", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_schema_is_refused(schema: JSON, told: str) -> None:
    with pytest.raises(WireError) as error:
        JSONSchema(schema, "$.s")
    assert str(error.value) == told


WATCHED = """
import sys
from xenoglot.errors import WireError
from xenoglot.text.json.schema import JSONSchema
JSONSchema({"type": "object"}).problems("{}")
seen = []
watched = ("socket.", "open", "os.")
sys.addaudithook(lambda event, args: seen.append((event, args)) if event.startswith(watched) else None)
for schema in (
    {"$ref": "http://127.0.0.1:9/x"}, {"$ref": "https://x.test/y#/z"}, {"$ref": "file:///etc/hosts"},
    {"$schema": "http://127.0.0.1:9/x"}, {"$id": "http://127.0.0.1:9/x", "$ref": "y"},
    {"$dynamicRef": "http://127.0.0.1:9/x"},
):
    try:
        JSONSchema(schema)
    except WireError:
        continue
    raise SystemExit("compiled")
print(seen)
"""


def test_nothing_is_opened_to_find_a_schema() -> None:
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def nested(depth: int) -> JSON:
    value: JSON = 1
    for _ in range(depth):
        value = {"a": value}
    return value


TWICE = {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "type": "object"}
CHAIN = {
    "$ref": "#/$defs/s0",
    "$defs": {
        **{f"s{i}": {"allOf": [{"$ref": f"#/$defs/s{i + 1}"}] * 2} for i in range(40)},
        "s40": {"type": "string"},
    },
}
EXPRESSION = {
    "$ref": "#/$defs/e",
    "$defs": {
        "e": {"anyOf": [{"$ref": "#/$defs/number"}, {"$ref": "#/$defs/sum"}, {"$ref": "#/$defs/minus"}]},
        "number": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
        "sum": {"properties": {"l": {"$ref": "#/$defs/e"}, "r": {"$ref": "#/$defs/e"}}, "required": ["l", "r"]},
        "minus": {"properties": {"x": {"$ref": "#/$defs/e"}}, "required": ["x"]},
    },
}


def expression(depth: int) -> JSON:
    if not depth:
        return {"n": 1}
    inner = expression(depth - 1)
    return {"l": inner, "r": {"x": {"n": 2}}} if depth % 2 else {"x": inner}


COSTS: dict[str, tuple[JSON, JSON, bool]] = {
    "each level twice": (TWICE, nested(60), True),
    "each level twice, a few levels": (TWICE, nested(8), False),
    "each reference twice": (CHAIN, 1, True),
    "a tree": ({"properties": {"a": {"$ref": "#"}}}, nested(400), False),
    "an expression": (EXPRESSION, expression(40), False),
    "a long list": ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "integer"}}}, [1] * 100_000, False),
    "a loop": ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1, False),
    "an anchor": (
        {"$defs": {"a": {"$anchor": "a", "properties": {"a": {"allOf": [{"$ref": "#a"}] * 2}}}}, "$ref": "#a"},
        nested(60),
        True,
    ),
    "no references": ({"anyOf": [{"items": {}}] * 50}, [[]] * 100, False),
}


@pytest.mark.parametrize(("schema", "value", "costly"), COSTS.values(), ids=COSTS)
def test_what_would_take_too_long_is_not_begun(schema: JSON, value: JSON, costly: bool) -> None:  # noqa: FBT001
    assert too_costly(schema, value) is costly
    told = [] if not costly else ["one that takes too many steps under this schema"]
    found = [problem.found for problem in JSONSchema(schema).problems(json.dumps(value))] if costly else []
    assert found == told
