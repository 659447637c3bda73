"""The value of unfinished JSON, at every cut of it."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import TYPE_CHECKING

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.text.json.partial import DEEPEST, LONGEST_NUMBER, PartialJSON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.json import JSON

CHARACTERS = st.characters(exclude_categories=["Cs"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS, max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS, max_size=4), inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.builds(
    lambda value, indent, ascii_only: json.dumps(value, indent=indent, ensure_ascii=ascii_only),
    VALUES,
    st.sampled_from([None, 1]),
    st.booleans(),
)
NEARLY = st.text(st.sampled_from(' \n{}[]:,"\\/u019dDfFe+-.tralsn\x01é\ud800'), max_size=24)


def read(pieces: Iterable[str], *, cut_numbers: bool = False) -> PartialJSON:
    reader = PartialJSON(cut_numbers=cut_numbers)
    for piece in pieces:
        reader.feed(piece)
    return reader


def grows(earlier: JSON, later: JSON) -> bool:
    """Whether `later` may be `earlier` with more behind it."""
    if isinstance(earlier, dict) and isinstance(later, dict):
        keys = list(earlier)
        settled = all(earlier[key] == later[key] for key in keys[:-1])
        return keys == list(later)[: len(keys)] and settled and all(grows(earlier[key], later[key]) for key in keys)
    if isinstance(earlier, list) and isinstance(later, list):
        settled = earlier[:-1] == later[: max(len(earlier) - 1, 0)]
        return settled and len(earlier) <= len(later) and all(map(grows, earlier, later))
    if isinstance(earlier, str) and isinstance(later, str):
        return later.startswith(earlier)
    return earlier is None or (type(earlier) is type(later) and earlier == later)


SEEN = {
    "nothing": ("", None),
    "space": ("  ", None),
    "an object": ("{", {}),
    "half a key": ('{"ci', {}),
    "a key": ('{"city"', {}),
    "a colon": ('{"city":', {}),
    "a quote": ('{"city":"', {"city": ""}),
    "half a string": ('{"city":"Par', {"city": "Par"}),
    "a backslash": ('{"a":"x\\', {"a": "x"}),
    "half an escape": ('{"a":"x\\u00e', {"a": "x"}),
    "an escape": ('{"a":"x\\u00e9', {"a": "xé"}),
    "half a pair": ('{"a":"x\\ud83d', {"a": "x"}),
    "half a pair and more": ('{"a":"x\\ud83d\\ude0', {"a": "x"}),
    "a pair": ('{"a":"x\\ud83d\\ude00', {"a": "x😀"}),
    "half a word": ('{"a":tru', {}),
    "a word": ('{"a":true', {"a": True}),
    "a null": ("[null", [None]),
    "a number": ('{"a":12', {}),
    "a number and its end": ("[12,", [12]),
    "a number alone": ("12", None),
    "a number and space": ("12 ", 12),
    "the second item": ('[{"a":1},{"b":[', [{"a": 1}, {"b": []}]),
    "the last of two": ('{"a":1,"a":"x', {"a": "x"}),
    "big": ("[1" + "0" * 40 + "]", [10**40]),
}


@pytest.mark.parametrize(("text", "value"), SEEN.values(), ids=SEEN)
def test_what_is_seen_of_a_text_that_is_cut(text: str, value: JSON) -> None:
    assert [read(pieces).value for pieces in ([text], text)] == [value, value]


CUT_NUMBERS = {
    "-": [],
    "-1": [-1],
    "12": [12],
    "12.": [12],
    "12.5": [12.5],
    "12.5e": [12.5],
    "12.5e-": [12.5],
    "12.5e-1": [1.25],
    "1e999": [],
}


@pytest.mark.parametrize(("text", "value"), CUT_NUMBERS.items(), ids=CUT_NUMBERS)
def test_numbers_may_be_seen_as_they_come(text: str, value: JSON) -> None:
    assert read(["[", text], cut_numbers=True).value == value


BROKEN = {
    "no word": ("[nul!", 4, []),
    "NaN": ("[1,NaN", 3, [1]),
    "Infinity": ("Infinity", 0, None),
    "a line break in a string": ('["a\n', 3, ["a"]),
    "no escape": ('["a\\x', 4, ["a"]),
    "no digit": ('["\\u00g', 6, [""]),
    "the second half": ('["\\udc00', 5, [""]),
    "the first half alone": ('["\\ud83dx', 8, [""]),
    "two first halves": ('["\\ud83d\\ud83d', 11, [""]),
    "half a character": ('["\ud83d', 2, [""]),
    "a trailing comma": ("[1,]", 3, [1]),
    "a trailing comma in an object": ('{"a":1,}', 7, {"a": 1}),
    "no colon": ('{"a" 1', 5, {}),
    "the wrong end": ("[1}", 2, [1]),
    "a bare key": ("{a", 1, {}),
    "single quotes": ("['a", 1, []),
    "a zero before": ("[01]", 3, []),
    "no number": ("[1.]", 3, []),
    "infinite": ("[1e999]", 6, []),
    "more": ('{"a":1} x', 8, {"a": 1}),
    "a byte order mark": ("\ufeff{}", 0, None),
    "prose": ("Sure! {", 0, None),
}


@pytest.mark.parametrize(("text", "place", "value"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_json_ends_the_reading(text: str, place: int, value: JSON) -> None:
    for pieces in ([text, '"more"'], [*text, '"more"']):
        reader = read(pieces)
        assert (reader.invalid_at, reader.value, reader.complete) == (place, value, False)


@given(TEXTS)
def test_the_whole_is_what_the_whole_says(text: str) -> None:
    reader = read([text])
    reader.close()
    assert (reader.complete, reader.invalid_at, reader.value) == (True, None, decode_json(text))
    assert type(reader.value) is type(decode_json(text))


@given(TEXTS, st.data())
def test_every_cut_gives_the_same(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    cut = read(text[start:end] for start, end in pairwise([0, *cuts, len(text)]))
    one = read([text])
    assert (cut.value, cut.complete, cut.invalid_at) == (one.value, one.complete, one.invalid_at)


@given(TEXTS)
def test_the_value_only_grows(text: str) -> None:
    reader, seen = PartialJSON(), []
    for char in text:
        reader.feed(char)
        seen.append(copy.deepcopy(reader.value))
    reader.close()
    assert [pair for pair in pairwise([*seen, reader.value]) if not grows(*pair)] == []


@given(st.text(CHARACTERS).map(json.dumps) | st.dictionaries(st.text(CHARACTERS), st.text(CHARACTERS)).map(json.dumps))
def test_another_reader_sees_the_same(text: str) -> None:
    """An oracle: jiter reads each prefix anew, and shows what it has of a string that is cut."""
    reader = PartialJSON()
    for place, char in enumerate(text, 1):
        reader.feed(char)
        prefix = text[:place].encode()
        assert reader.value == jiter.from_json(prefix, partial_mode="trailing-strings", catch_duplicate_keys=False)


@given(NEARLY)
def test_it_takes_what_the_decoder_takes(text: str) -> None:
    reader = read(text)
    reader.close()
    try:
        value = decode_json(text)
    except WireError:
        assert not reader.complete
    else:
        assert (reader.complete, reader.value) == (True, value)


@given(NEARLY)
def test_any_text_reads_alike_at_every_cut(text: str) -> None:
    one, each = read([text]), read(text)
    assert (one.value, one.complete, one.invalid_at) == (each.value, each.complete, each.invalid_at)


def test_what_is_nested_too_deeply_ends_the_reading() -> None:
    fits, deep = read(["[" * DEEPEST]), read(["[" * 1_000_000])
    assert (fits.invalid_at, deep.invalid_at) == (None, DEEPEST)


def test_a_number_too_long_ends_the_reading() -> None:
    fits, long = read(["9" * LONGEST_NUMBER, " "]), read(["9"] * (LONGEST_NUMBER + 1))
    assert (fits.value, long.invalid_at) == (10**LONGEST_NUMBER - 1, LONGEST_NUMBER)


def test_many_pieces_are_read() -> None:
    reader = read(["[", *(['"\\u00e9', 'x",'] * 100_000), "null]"])
    assert (reader.complete, reader.value) == (True, [*(["éx"] * 100_000), None])
