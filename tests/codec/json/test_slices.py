"""Large JSON in slices: how much the library is given at once, and how many values there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.json import json_io, slices
from xenoglot.codec.json.json_io import decode_answer, decode_json, encode_json, encode_large
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject

VALUES = 100_000
DEEP: JSON = 0
for _ in range(100):
    DEEP = [DEEP, *[{}] * 1000]

LARGE: dict[str, JSON] = {
    "R51-objects": [{}] * VALUES,
    "R51-members": {f"key{number}": number for number in range(VALUES)},
    "R51-members-of-one-member": {"x": {"y": {f"key{number}": [] for number in range(VALUES)}}},
    "R51-numbers": {"x": [0.5] * VALUES, "y": 1},
    "R51-rows": {"data": [{"embedding": [0.25] * 1536}] * 100},
    "R51-messages": {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi, you"}]}] * 20_000},
    "R51-deep": DEEP,
    "R51-texts": ['a,b{"[\\' * 10] * VALUES,
}
MOST_BYTES = 2 * slices.WINDOW + slices.SLICE_BYTES


class Counting:
    """Calls a function of the library, and notes the most that it is given at once, or gives."""

    def __init__(self, call: Callable[..., object]) -> None:
        self.call = call
        self.bytes = self.calls = 0

    def __call__(self, given: object) -> object:
        made = self.call(given)
        data = given if isinstance(given, bytes) else made
        assert isinstance(data, bytes)
        self.bytes, self.calls = max(self.bytes, len(data)), self.calls + 1
        return made


@pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in LARGE.items()])
def test_no_call_decodes_more_than_a_slice(value: JSON, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_json(value)
    assert len(data) > slices.SLICE_BYTES
    counting = Counting(slices._decode)
    monkeypatch.setattr(slices, "_decode", counting)
    monkeypatch.setattr(json_io, "_decode", counting)
    assert decode_json(data) == value
    assert counting.bytes <= MOST_BYTES
    assert counting.calls <= len(data) // 1000


@pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in LARGE.items()])
def test_no_call_encodes_more_than_a_slice(value: JSON, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_json(value)
    counting = Counting(slices._encode)
    monkeypatch.setattr(slices, "_encode", counting)
    assert encode_large(value) == data
    assert counting.bytes <= 2 * slices.SLICE_BYTES


def test_a_long_text_is_encoded_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(slices._encode)
    monkeypatch.setattr(slices, "_encode", counting)
    value: JSONObject = {"content": '\\\n"' * 500_000, "b": 1}
    assert encode_large(value) == encode_json(value)
    assert counting.bytes <= 2 * slices.SLICE_BYTES + 2


@pytest.mark.parametrize("text", ["long " * 1_000_000, 'a, b, {c} [d] "e" ' * 100_000])
def test_few_values_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    counting = Counting(json_io._decode)
    monkeypatch.setattr(json_io, "_decode", counting)
    value: JSON = {"messages": [text]}
    assert decode_json(encode_json(value)) == value
    assert counting.calls == 1


MANY = {
    "C11-objects": b"[" + b",".join([b"{}"] * 600) + b"]",
    "C11-numbers": b"[" + b",".join([b"0"] * 1100) + b"]",
    "C11-duplicates-of-a-key": b"{" + b",".join([b'"k":0'] * 1100) + b"}",
    "C11-members-of-an-unknown-field": b'{"x":{' + b",".join(b'"%d":0' % number for number in range(1100)) + b"}}",
    "C11-behind-a-text-with-escapes": b'["\\\\\\"",' + b",".join([b"[]"] * 600) + b"]",
}
TOLD = "$.x: the JSON holds more than 1000 values (each item, member, list and object is one): send fewer at once"


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in MANY.items()])
def test_more_values_than_allowed_are_refused_before_they_are_made(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(json_io._decode)
    monkeypatch.setattr(json_io, "_decode", counting)
    for decode in (decode_json, decode_answer):
        with pytest.raises(WireError) as caught:
            decode(data, "$.x", 1000)
        assert str(caught.value) == TOLD
    assert counting.calls == 0
    assert decode_json(data, most=2000) is not None


def test_commas_and_brackets_in_texts_are_no_values() -> None:
    text = 'a,b[c{"d\\,' * 2000
    data = encode_json({"a": text, "b": [1, 2, 3]})
    assert slices.count_values(data, 100) == 5
    assert decode_json(data, most=100) == {"a": text, "b": [1, 2, 3]}


def test_c11_deep_json_is_refused() -> None:
    with pytest.raises(WireError, match="nested too deeply"):
        decode_json(b"[" * 400_000 + b"]" * 400_000)
