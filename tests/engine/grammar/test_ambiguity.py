"""What would keep the runtime busy is told from what merely has many ways."""

import pytest

from tests.engine.grammar.schemas import SCHEMAS
from xenoglot.engine.grammar.ambiguity import too_ambiguous
from xenoglot.engine.grammar.gbnf import GrammarRules
from xenoglot.engine.grammar.schema import SchemaGrammar
from xenoglot.errors import FailureError
from xenoglot.model.json import JSON


def union(count: int, **more: JSON) -> JSON:
    branches = [
        {"type": "object", "properties": {"a": {"type": "string", **more}, f"b{index}": {}}, "required": ["a"]}
        for index in range(count)
    ]
    return {"anyOf": branches}


def matched(pattern: str) -> JSON:
    return {"type": "string", "pattern": pattern}


LISTS: JSON = {
    "$ref": "#/$defs/a",
    "$defs": {
        "a": {"anyOf": [{"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in "ab"]},
        "b": {"anyOf": [{"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in "ab"]},
    },
}
"""Each bracket may begin either: twice as many places with each."""


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(union(150), id="branches-that-begin-alike"),
        pytest.param(LISTS, id="brackets-that-begin-alike"),
        pytest.param(matched("^([a-z ]?[a-z ]?[a-z ]?[a-z ]?[a-z ]?[a-z ]?[a-z ]?){0,100}$"), id="empty-repeated"),
        pytest.param(matched("^(a?){900}$"), id="empty-repeated-often"),
        pytest.param({"properties": {"x": {"items": union(150)}}}, id="deep-in-it"),
    ],
)
def test_what_the_runtime_would_follow_for_minutes_is_refused(schema: JSON) -> None:
    with pytest.raises(FailureError) as raised:
        SchemaGrammar(GrammarRules(), schema, "$", lambda _path, _keyword: None).root()
    problem = "too much of the schema begins alike for the embedded model: what to write has to be clear sooner"
    assert (raised.value.failure.param, raised.value.failure.message) == ("$", problem)


@pytest.mark.parametrize(
    "schema",
    [
        *(pytest.param(schema, id=name) for name, schema in SCHEMAS.items()),
        pytest.param(union(20), id="some-branches-that-begin-alike"),
        pytest.param(union(100, const="x"), id="many-branches-that-begin-alike-for-a-while"),
        pytest.param({"enum": [f"number {number}" for number in range(900)]}, id="long-list"),
        pytest.param({"const": "x" * 100_000}, id="long-text"),
        pytest.param({"anyOf": [{"type": "string"}, {"type": "null"}]}, id="or-nothing"),
        pytest.param(matched("foo"), id="somewhere-in-it"),
        pytest.param(matched("^(a|aa|aaa){0,60}$"), id="ambiguous"),
    ],
)
def test_what_has_many_ways_is_not(schema: JSON) -> None:
    SchemaGrammar(GrammarRules(), schema, "$", lambda _path, _keyword: None).root()


@pytest.mark.parametrize(
    ("rules", "root", "expected"),
    [
        pytest.param({}, '""', False, id="nothing"),
        pytest.param({"a": '"x" a | "x" a | "x"'}, "a", False, id="the-same-place-twice"),
        pytest.param({"a": '"x" a "y" | "x" a "z" | "x"'}, "a", True, id="twice-as-many-with-each"),
        pytest.param({}, r"([\x09\x0A\U0001F600] | [a-c\-]){2,3} (" + '"é"' + r")?", False, id="notation"),
    ],
)
def test_grammars(rules: dict[str, str], root: str, *, expected: bool) -> None:
    assert too_ambiguous(rules, root) is expected
