"""Badly written JSON as it was meant, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.json.json_io import decode_json
from xenoglot.text.json.repair import LONGEST, repaired

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

MEANT = {
    "valid": ('{"a": 1}', '{"a": 1}'),
    "single quotes": ("{'city': 'Lyon'}", '{"city":"Lyon"}'),
    "bare keys": ('{city: "Lyon"}', '{"city":"Lyon"}'),
    "Python's words": ('{"a": True, "b": None}', '{"a":true,"b":null}'),
    "a trailing comma": ('{"a": [1, 2,],}', '{"a":[1,2]}'),
    "a missing comma": ('{"a": "b" "c": 2}', '{"a":"b","c":2}'),
    "a line break": ('{"a": "x\ny"}', '{"a":"x\\ny"}'),
    "cut off": ('{"a": {"b": [1, 2', '{"a":{"b":[1,2]}}'),
    "a fence": ('```json\n{"a": 1}\n```', '{"a":1}'),
    "words around": ('Sure: {"a": 1} Done.', '{"a":1}'),
    "prose": ("no arguments", None),
    "nothing": ("", None),
    "a word": ("null", None),
    "half a pair": ('{"a": "\\ud83d"}', None),
    "too deep": ("{" * 50_000, None),
    "long": ("{'a': ['" + "x', 'y" * 8_000 + "']}", '{"a":["' + 'x","y' * 8_000 + '"]}'),
    "deep": ("[" * 60 + "{'a': 1}" + "]" * 60, "[" * 60 + '{"a":1}' + "]" * 60),
    "too long": ("{'a': '" + "x" * LONGEST + "'}", None),
}


ENDLESS = {
    "quotes behind words": "{" + 'u"' * 30_000,
    "quotes before words": '["' + 'a"' * 30_000,
    "brackets": "[{" * 2_000 + '"' * 50_000,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_what_would_take_too_long_is_left_alone(text: str) -> None:
    """The library takes minutes for each: it looks for the end of a string again at every quote."""
    assert repaired(text) is None


@pytest.mark.parametrize(("text", "meant"), MEANT.values(), ids=MEANT)
def test_what_is_written_badly_is_mended(text: str, meant: str | None) -> None:
    assert repaired(text) == meant


SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "items": {"type": "array", "items": {"type": "integer"}},
        "inner": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "name": {"type": "string"},
    },
}
TYPED = {
    "numbers": ("{'count': '12', 'share': '0.5'}", '{"count":12,"share":0.5}'),
    "words": ("{'sure': 'True'}", '{"sure":true}'),
    "lists": ("{'items': '[1, 2]'}", '{"items":[1,2]}'),
    "items": ("{'items': ['1', 'x']}", '{"items":[1,"x"]}'),
    "objects": ("{'inner': '{\"n\": \"3\"}'}", '{"inner":{"n":3}}'),
    "strings stay": ("{'name': '12', 'count': 'many'}", '{"name":"12","count":"many"}'),
    "valid, typed": ('{"count": "12"}', '{"count":12}'),
    "written twice": ('"{\\"count\\": 1}"', '{"count":1}'),
    "no object": ("[1, 2", None),
}


@pytest.mark.parametrize(("text", "meant"), TYPED.values(), ids=TYPED)
def test_a_schema_says_what_strings_mean(text: str, meant: str | None) -> None:
    assert repaired(text, SCHEMA) == meant


@given(st.text(st.sampled_from("{}[](),:'\"\\ \naTrue1.`/"), max_size=60))
def test_whatever_comes_is_json_or_nothing(text: str) -> None:
    mended = repaired(text)
    value: JSON = {} if mended is None else decode_json(mended)
    assert isinstance(value, dict | list)
