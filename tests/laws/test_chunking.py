"""Chunking: any cutting of the bytes of a stream gives the same events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.mutations import cuttings
from tests.laws.vectors import Case, decoded, each
from xenoglot.codec.framing import EVENT_STREAM, JSON_LINES


@each("stream.*")
def test_byte_by_byte(case: Case) -> None:
    """pitfall-116, U19: also inside a UTF-8 sequence and inside a line end."""
    stream = case.stream
    assert decoded(case.dialect, [stream[at : at + 1] for at in range(len(stream))]) == decoded(case.dialect, [stream])


@each("stream.*")
@settings(max_examples=5)
@given(data=st.data())
def test_cut_anywhere(case: Case, data: st.DataObject) -> None:
    pieces = data.draw(cuttings(case.stream))
    assert decoded(case.dialect, pieces) == decoded(case.dialect, [case.stream])


@each("stream.*", where=lambda case: case.dialect.framing is EVENT_STREAM)
@pytest.mark.parametrize("end", [b"\r", b"\r\n"], ids=["U20-cr", "U20-crlf"])
def test_other_line_ends(case: Case, end: bytes) -> None:
    lines = case.stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", end)
    whole = decoded(case.dialect, [case.stream])
    assert decoded(case.dialect, [lines]) == whole
    assert decoded(case.dialect, [b"\xef\xbb\xbf" + lines.removeprefix(b"\xef\xbb\xbf")]) == whole


@each("stream.*", where=lambda case: case.dialect.framing is JSON_LINES)
def test_lines_of_json_may_end_in_two_characters(case: Case) -> None:
    lines = case.stream.replace(b"\n", b"\r\n")
    assert decoded(case.dialect, [lines]) == decoded(case.dialect, [case.stream])
