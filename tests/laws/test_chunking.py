"""Chunking: any cutting of the bytes of a stream gives the same events."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.mutations import cuttings
from tests.laws.vectors import Case, decoded, each
from xenoglot.backends.stream_guard import PassthroughMonitor
from xenoglot.codec.framing.formats import EVENT_STREAM, JSON_LINES
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.stage import through
from xenoglot.model.events import Ping


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


@each("stream.*", where=lambda case: case.dialect.framing is EVENT_STREAM)
@pytest.mark.parametrize("blanks", [b" ", b"\t  "], ids=["C13-space", "C13-blanks"])
def test_indented_events(case: Case, blanks: bytes) -> None:
    """Where bytes are translated; what watches bytes that pass reads them as their client does: not at all."""
    lines = case.stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    indented = re.sub(rb"(?m)^(?=data|event|id|retry|:|$)", blanks, lines.removeprefix(b"\xef\xbb\xbf"))
    whole = decoded(case.dialect, [lines])
    for size in (len(indented), 1, 97):
        pieces = [indented[at : at + size] for at in range(0, len(indented), size)]
        assert list(through(pieces, StreamReader(case.dialect.framing, case.dialect.stream_decoder()))) == whole
    if not re.search(rb"(?m)^[{\[]", lines):
        assert [
            event
            for event in PassthroughMonitor(case.dialect, lambda failure: failure).feed(indented)
            if event != Ping()
        ] == []


@each("stream.*", where=lambda case: case.dialect.framing is JSON_LINES)
def test_lines_of_json_may_end_in_two_characters(case: Case) -> None:
    lines = case.stream.replace(b"\n", b"\r\n")
    assert decoded(case.dialect, [lines]) == decoded(case.dialect, [case.stream])
