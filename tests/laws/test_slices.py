"""Slices: decoding and encoding JSON in slices gives what doing it in one call gives, and refuses what that refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.strategies import VALUES
from xenoglot.codec.json import json_io, slices

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

SIZES = ((1, 8, 4), (2, 24, 16), (3, 1 << 20, 1 << 16))
"""Values, bytes and bytes of a window: so few that short texts are cut everywhere."""

WHOLE = msgspec.json.Decoder().decode
SIGNS = st.sampled_from(
    ["[", "]", "{", "}", ",", ":", '"', "\\", '\\"', "\\\\", '"a":', '""', '"b"', "1", "-2.5e3", "null", " ", "\n"]
)
SPACED = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")])


@pytest.fixture(params=SIZES, ids=str)
def small_slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make slices small."""
    for name, size in zip(("SLICE_VALUES", "SLICE_BYTES", "WINDOW"), request.param, strict=True):
        monkeypatch.setattr(slices, name, size)


def tried(data: bytes, *, sliced: bool) -> tuple[JSON, str] | None:
    """Return the value, and its keys in order; `None` where there is none."""
    try:
        value = slices.decode(data) if sliced else WHOLE(data)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return value, repr(value)


@pytest.mark.usefixtures("small_slices")
@given(value=VALUES, spaced=SPACED, ascii_only=st.booleans())
def test_a_value_is_decoded_alike(value: JSON, spaced: tuple[str, str], *, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, separators=spaced).encode(errors="surrogatepass")
    assert tried(data, sliced=True) == tried(data, sliced=False)


@pytest.mark.usefixtures("small_slices")
@given(value=VALUES, at=st.integers(0, 500), put=SIGNS, cut=st.integers(0, 3))
def test_what_is_nearly_json_is_decoded_or_refused_alike(value: JSON, at: int, put: str, cut: int) -> None:
    text = json.dumps(value)
    at %= len(text) + 1
    data = (text[:at] + put + text[at + cut :]).encode()
    assert tried(data, sliced=True) == tried(data, sliced=False)


@pytest.mark.usefixtures("small_slices")
@given(signs=st.lists(SIGNS, max_size=40), around=st.sampled_from(["%s", "[%s]", "{%s}", '[[1,2],{"a":[%s]},3]']))
def test_any_signs_are_decoded_or_refused_alike(signs: list[str], around: str) -> None:
    data = (around % "".join(signs)).encode()
    assert tried(data, sliced=True) == tried(data, sliced=False)


@pytest.mark.usefixtures("small_slices")
@given(value=VALUES)
def test_a_value_is_encoded_alike(value: JSON) -> None:
    assert slices.encode(value) == msgspec.json.encode(value)


@given(value=VALUES)
def test_no_value_is_left_out_of_the_count(value: JSON) -> None:
    assert slices.count_values(msgspec.json.encode([value]), 0) >= 1
    data = msgspec.json.encode(value)
    assert slices.count_values(data, 1 << 30) >= counted(value)


def counted(value: JSON) -> int:
    """Return how many items and members there are."""
    if isinstance(value, dict):
        return len(value) + sum(map(counted, value.values()))
    return len(value) + sum(map(counted, value)) if isinstance(value, list) else 0


ESCAPES = st.sampled_from(
    ["\\ud83d", "\\ude00", "\\\\", "\\", "\\n", "u", "ud83d", "\ud83d", "a", "a longer text", "\U0001f600"]
)


@given(pieces=st.lists(ESCAPES, max_size=60), size=st.integers(len(r"\ud83d\ude00"), 40))
def test_half_characters_are_mended_alike(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    whole = json_io._mend(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "SLICE_BYTES", size)
        assert json_io._mend(text) == whole
