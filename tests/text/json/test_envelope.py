"""A value in an envelope, and out of it again, at every cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.text.json.envelope import FIELD, LONGEST_HEAD, Envelope, enveloped
from xenoglot.text.json.schema import JSONSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.json import JSON

LONG = "{" + " " * LONGEST_HEAD + '"answer": 1}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def opened(pieces: Iterable[str]) -> tuple[str, bool]:
    envelope = Envelope()
    text = "".join([*(envelope.feed(piece) for piece in pieces), envelope.close()])
    return text, envelope.surplus


READ = {
    "a list": ('{"answer": [1, 2]}', "[1, 2]", False),
    "a number": ('{"answer":12}', "12", False),
    "a string": ('{"answer":"a\\"},{"}', '"a\\"},{"', False),
    "an object": ('{"answer":{"answer":{}}}', '{"answer":{}}', False),
    "space": (' { "answer" : true } \n', "true ", False),
    "cut": ('{"answer": [1, {"a": "b', '[1, {"a": "b', False),
    "cut before": ('{"ans', '{"ans', False),
    "cut behind": ('{"answer": [1]', "[1]", False),
    "more": ('{"answer": 1, "why": "because"}', "1", True),
    "words behind": ('{"answer": 1} Done.', "1", True),
    "none": ("[1, 2]", "[1, 2]", False),
    "another": ('{"result": 1}', '{"result": 1}', False),
    "another behind": ('{"why": 1, "answer": 2}', '{"why": 1, "answer": 2}', False),
    "empty": ("{}", "{}", False),
    "nothing": ("", "", False),
    "endless space": (LONG, LONG, False),
    "prose": ("  Sure!", "  Sure!", False),
}


@pytest.mark.parametrize(("text", "inner", "surplus"), READ.values(), ids=READ)
def test_pitfall_47_an_envelope_is_opened(text: str, inner: str, surplus: bool) -> None:  # noqa: FBT001
    assert [opened([text]), opened(text)] == [(inner, surplus), (inner, surplus)]


@given(VALUES, st.sampled_from([None, 2]), st.data())
def test_every_cut_gives_the_value_as_it_was_written(value: JSON, indent: int | None, data: st.DataObject) -> None:
    text = json.dumps({FIELD: value}, indent=indent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    inner, surplus = opened(text[start:end] for start, end in pairwise([0, *cuts, len(text)]))
    assert (json.loads(inner), surplus) == (value, False)
    assert inner in text


@given(st.text(st.sampled_from('{}[]":, \nanswer\\1'), max_size=30).map(lambda tail: '{"answer":' + tail), st.data())
def test_any_text_is_read_alike_at_every_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    assert opened(text[start:end] for start, end in pairwise([0, *cuts, len(text)])) == opened([text])


NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
SCHEMAS: dict[str, tuple[JSON, JSON, JSON]] = {
    "a list": ({"type": "array", "items": {"type": "integer"}}, [1], ["x"]),
    "a reference to the root": ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]], [1]),
    "a definition": ({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, {"next": {"next": None}}, {"next": 1}),
    "an old definition": ({"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}}, 1, "x"),
    "a place": ({"anyOf": [{"type": "integer"}, {"items": {"$ref": "#/anyOf/0"}, "type": "array"}]}, [1], ["x"]),
    "a value that looks like a reference": ({"const": {"$ref": "#"}}, {"$ref": "#"}, {}),
    "a property of that name": ({"required": ["$ref"], "properties": {"$ref": {"type": "integer"}}}, {"$ref": 1}, {}),
    "a boolean": (True, 1, None),
}


@pytest.mark.parametrize(("schema", "valid", "invalid"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_says_the_same_in_an_envelope(schema: JSON, valid: JSON, invalid: JSON) -> None:
    inside = JSONSchema(enveloped(schema))
    assert list(inside.problems(json.dumps({FIELD: valid}))) == []
    assert list(inside.problems("{}")) != []
    if invalid is not None:
        assert list(inside.problems(json.dumps({FIELD: invalid}))) != []
