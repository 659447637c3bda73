"""Of members with one name the last counts, for us and for whoever reads the bytes after us (C13)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.json.json_io import decode_json, encode_json, unambiguous

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

UNTOUCHED = {
    "compact": b'{"a":1,"b":[{"a":2}]}',
    "blanks": b' {\n "a" : 1 ,\t"b" : [ { "a" : 2 } ] } ',
    "escapes": rb'{"a":"\u00e9\/\"a\":1","\u0062":2}',
    "a-float-with-zeros": b'{"a":1.50,"b":1e2,"c":-0.0}',
    "many-digits": b'{"a":' + b"9" * 300 + b"}",
    "what-looks-like-a-key": rb'{"a":"\"a\":1","b":"\\\"b\":"}',
    "no-object": b"[1,1]",
}
WRITTEN_ANEW = {
    "at-the-top": (b'{"a":1,"a":2}', b'{"a":2}'),
    "deep": (b'{"m":[{"c":{"x":1,"y":3,"x":2}}]}', b'{"m":[{"c":{"x":2,"y":3}}]}'),
    "another-spelling": (rb'{"model":"a","mod\u0065l":"b"}', b'{"model":"b"}'),
    "made-up-for": (rb'{"a":1,"a":2,"b":"\u0022:"}', rb'{"a":2,"b":"\":"}'),
    "three": (b'{"a":1, "b":2.0, "a":2, "a":3}', b'{"a":3,"b":2.0}'),
}


@pytest.mark.parametrize("data", [pytest.param(data, id=f"C13-{name}") for name, data in UNTOUCHED.items()])
def test_bytes_that_all_read_alike_stay_as_they_are(data: bytes) -> None:
    assert unambiguous(data, decode_json(data)) is data


@pytest.mark.parametrize(
    ("data", "written"), [pytest.param(*case, id=f"C13-{name}") for name, case in WRITTEN_ANEW.items()]
)
def test_bytes_that_some_read_otherwise_are_written_anew(data: bytes, written: bytes) -> None:
    assert unambiguous(data, decode_json(data)) == written


def test_c13_what_is_too_deep_to_be_looked_at_is_written_anew() -> None:
    data = b'{ "a":' * 300 + b"1.50" + b"}" * 300
    value = decode_json(data)
    assert decode_json(unambiguous(data, value)) == value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_c13_without_duplicates_nothing_changes(value: JSON, ascii_only: bool, indent: int | None) -> None:  # noqa: FBT001  drawn
    try:
        data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    except UnicodeEncodeError:  # half a pair is no JSON that goes over a wire
        return
    assert unambiguous(data, decode_json(data)) is data


MEMBERS = st.lists(st.tuples(st.sampled_from("abc"), VALUES), min_size=1, max_size=5)


@given(MEMBERS)
def test_c13_whoever_reads_it_reads_the_last(members: list[tuple[str, JSON]]) -> None:
    data = b"{" + b",".join(encode_json(name) + b":" + encode_json(value) for name, value in members) + b"}"
    value = decode_json(data)
    told = json.loads(unambiguous(data, value), object_pairs_hook=list)
    assert sorted(name for name, _ in told) == sorted({name for name, _ in members})
    assert decode_json(unambiguous(data, value)) == value == dict(members)


MANY = b",".join(b'"k%d": {"a": 1.50, "b": []}' % number for number in range(20_000))


@pytest.mark.parametrize(
    ("data", "ambiguous"),
    [
        pytest.param(b"{%b}" % MANY, False, id="none"),
        pytest.param(b'{"x":{%b}}' % MANY, False, id="none-deeper"),
        pytest.param(b'{%b,"k0":1}' % MANY, True, id="C13-far-apart"),
        pytest.param(b'{%b,"y":{"a":1,"a":2}}' % MANY, True, id="C13-near-and-deeper"),
        pytest.param(b'{"x":{%b},"x":1}' % MANY, True, id="C13-behind-a-large-one"),
    ],
)
def test_duplicates_in_a_large_body_are_found_in_slices(data: bytes, ambiguous: bool) -> None:  # noqa: FBT001  a case
    value = decode_json(data)
    assert unambiguous(data, value) == (encode_json(value) if ambiguous else data)
