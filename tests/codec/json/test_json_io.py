"""JSON on the wire: what is refused, what is mended, and that nothing else changes."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.json.json_io import decode_answer, decode_json, encode_json, to_text
from xenoglot.errors import WireError
from xenoglot.model.json import JSON

EXACT: dict[str, tuple[str, JSON]] = {
    "pitfall-128-above-53-bits": ("9007199254740993", 9007199254740993),
    "pitfall-128-above-64-bits": ("1180591620717411303424", 2**70),
    "pitfall-128-negative": ("-1180591620717411303424", -(2**70)),
    "pitfall-128-a-float-stays-one": ("1.0", 1.0),
    "pitfall-129-a-pair": ('"\\ud83d\\ude00"', "\U0001f600"),
    "pitfall-129-a-backslash-before-u": ('"\\\\ud800"', "\\ud800"),
    "C13-of-duplicate-keys-the-last": ('{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
    "the-order-of-keys": ('{"b":1,"a":2}', {"b": 1, "a": 2}),
}


@pytest.mark.parametrize(("text", "value"), [pytest.param(*case, id=name) for name, case in EXACT.items()])
def test_values_are_exact(text: str, value: JSON) -> None:
    for decode in (decode_json, decode_answer):
        for data in (text, text.encode()):
            found = decode(data)
            assert (found, type(found)) == (value, type(value))
    if isinstance(value, dict):
        assert list(decode_json(text)) == list(value)


REFUSED: dict[str, tuple[bytes | str, str]] = {
    "nothing": (b"", "not valid JSON: Input data was truncated"),
    "U17-truncated": (b'{"a":', "not valid JSON: Input data was truncated"),
    "C14-nan": (b"[NaN]", "not valid JSON: invalid character (byte 1)"),
    "C14-nan-beside-an-escape": (b'[NaN,"\\u0041"]', "not valid JSON: invalid character (byte 1)"),
    "C14-infinity": (b"[-Infinity]", "not valid JSON: invalid character (byte 2)"),
    "C14-1e400": (b"1e400", "not valid JSON: Number out of range"),
    "C14-5000-digits": (b"9" * 5000, "not valid JSON: Integer value out of range"),
    "C12-a-byte-order-mark": (b"\xef\xbb\xbf{}", "not valid JSON: invalid character (byte 0)"),
    "C12-utf-16": ("{}".encode("utf-16"), "not valid JSON: invalid character (byte 0)"),
    "C11-depth-100000": (b"[" * 100_000, "the JSON is nested too deeply"),
    "two-values": (b"1 2", "not valid JSON: trailing characters (byte 3)"),
    "html": (b"<html>", "not valid JSON: invalid character (byte 0)"),
}


@pytest.mark.parametrize(("data", "problem"), [pytest.param(*case, id=name) for name, case in REFUSED.items()])
def test_what_is_no_json_is_refused(data: bytes | str, problem: str) -> None:
    for decode in (decode_json, decode_answer):
        with pytest.raises(WireError) as caught:
            decode(data, "$.x")
        assert str(caught.value) == f"$.x: {problem}"


@pytest.mark.parametrize("data", [b'["\\ud800",1e400]', b'["\\ud800",NaN]', b'["\\ud800"'])
def test_mending_a_character_allows_nothing_else(data: bytes) -> None:
    with pytest.raises(WireError, match=r"^\$: not valid JSON: "):
        decode_answer(data)


MENDED: dict[str, tuple[bytes | str, JSON]] = {
    "pitfall-129-the-first-half": (b'{"a":"x\\ud83d"}', {"a": "x\ufffd"}),
    "pitfall-129-the-second-half": (b'{"a":"\\uDE00x"}', {"a": "\ufffdx"}),
    "pitfall-129-half-before-a-pair": (b'"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
    "pitfall-129-halves-the-wrong-way-round": (b'"\\ude00\\ud83d"', "\ufffd\ufffd"),
    "pitfall-129-half-in-a-key": (b'{"\\ud83d":[{"\\ud83d":1.0}]}', {"\ufffd": [{"\ufffd": 1.0}]}),
    "pitfall-129-half-after-a-backslash": (b'"\\\\\\ud83d\\\\ud83d"', "\\\ufffd\\ud83d"),
    "U18-half-a-utf-8-sequence": (b'{"a":"x\xf0\x9f"}', {"a": "x\ufffd"}),
    "U18-a-wild-byte": (b'{"a":"\xff","b":9007199254740993}', {"a": "\ufffd", "b": 9007199254740993}),
    "C12-half-a-pair-in-a-str": ('"\ud83dx"', "\ufffdx"),
}


@pytest.mark.parametrize(("data", "value"), [pytest.param(*case, id=name) for name, case in MENDED.items()])
def test_broken_characters_are_mended_in_answers_alone(data: bytes | str, value: JSON) -> None:
    assert decode_answer(data) == value
    with pytest.raises(WireError, match=r"^\$: not valid JSON: "):
        decode_json(data)


def test_an_answer_keeps_its_depth() -> None:
    """What can be read strictly can be mended: no second, smaller limit of depth."""
    text = "[" * 400 + '"\\ud800"' + "]" * 400
    value = decode_answer(text)
    for _ in range(400):
        (value,) = value
    assert value == "\ufffd"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=10)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_written_is_read(value: JSON) -> None:
    text = to_text(value)
    assert text.encode() == encode_json(value)
    for found in (decode_json(text), decode_answer(text), json.loads(text)):
        assert found == value
        assert repr(found) == repr(value)  # 1 is not 1.0, 0.0 is not -0.0


@given(st.binary(max_size=30) | st.text(max_size=20).map(lambda text: f'"{text}"') | st.text(max_size=20))
def test_anything_else_is_a_wire_error(data: bytes | str) -> None:
    for decode in (decode_json, decode_answer):
        with contextlib.suppress(WireError):
            encode_json(decode(data))


def test_text_is_compact_and_not_escaped() -> None:
    assert to_text({"ä": [1.0, None, True, "\U0001f600\n"]}) == '{"ä":[1.0,null,true,"\U0001f600\\n"]}'
