"""Reading: the short way past the decoders gives what the decoders give, whatever the stream and wherever it is cut."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.mutations import cuttings
from tests.laws.vectors import Case, decoded, each
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.stage import through

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.events import Event

pytestmark = pytest.mark.usefixtures("with_shortcuts")

_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"(?! *:)|\b\d+\b')
"""A string that is no key, or a number."""

_OTHERS = (
    b'" more"',
    b'"\xc3\xa4\xe2\x82\xac"',
    b'"\\u00e4 \\"}},\\n\\\\"',
    b'""',
    b'"\\ud83d"',
    b'"\xff"',
    b'"\x01"',
    b' "blank before"',
    b'\n"line before"',
    b'"end',
    b"8",
    b"08",
    b"null",
    b'{"x": "y"}',
)
"""What may stand in the place of a value; some of it is no JSON."""


def has_shortcuts(case: Case) -> bool:
    """Whether frames can be foreseen: those that no mark ends (binary ones) are read in the general way alone."""
    return bool(case.dialect.framing.ends)


@st.composite
def changed(draw: st.DrawFn, frame: bytes) -> bytes:
    """Return `frame` with some of its values replaced."""
    for found in reversed([*_VALUE.finditer(frame)]):
        if draw(st.integers(0, 3)) == 0:
            frame = frame[: found.start()] + draw(st.sampled_from(_OTHERS)) + frame[found.end() :]
    return frame


@st.composite
def drawn_out(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """Return the frames of `stream`, some of them said again and again, with other values in them."""
    frames: list[bytes] = []
    for frame in re.split(rb"(?<=\n\n)" if b"\n\n" in stream else rb"(?<=\n)", stream):
        frames.append(frame)
        if draw(st.integers(0, 3)) == 0:
            again = draw(changed(frame))
            frames += draw(st.lists(st.one_of(st.just(frame), st.just(again), changed(frame)), max_size=5))
    return frames


def by_pieces(reading: StreamReader, chunks: Iterable[bytes]) -> list[Event]:
    """Read each chunk as a piece of text alone, if it is one."""
    events: list[Event] = []
    for chunk in chunks:
        piece = reading.piece(chunk)
        events += reading.feed(chunk) if piece is None else (piece,)
    return [*events, *reading.close()]


@each("stream.*", where=has_shortcuts)
@settings(max_examples=4)
@given(data=st.data())
def test_as_the_decoders_read_it(case: Case, data: st.DataObject) -> None:
    frames = data.draw(drawn_out(case.stream))
    pieces = frames if data.draw(st.booleans()) else data.draw(cuttings(b"".join(frames)))
    reading = StreamReader(case.dialect.framing, case.dialect.stream_decoder())
    expected = decoded(case.dialect, pieces)
    assert list(through(pieces, reading)) == expected
    assert by_pieces(StreamReader(case.dialect.framing, case.dialect.stream_decoder()), pieces) == expected


@each("stream.*", where=has_shortcuts)
@settings(max_examples=3)
@given(data=st.data())
def test_many_alike_in_one_read(case: Case, data: st.DataObject) -> None:
    """One of many frames that are alike has other values, wherever it stands among them."""
    frames = re.split(rb"(?<=\n\n)" if b"\n\n" in case.stream else rb"(?<=\n)", case.stream)
    at, count = data.draw(st.integers(0, len(frames) - 1)), data.draw(st.integers(8, 40))
    alike = [frames[at]] * count
    alike.insert(data.draw(st.integers(0, count)), data.draw(changed(frames[at])))
    stream = b"".join([*frames[: at + 1], *alike, *frames[at + 1 :]])
    reading = StreamReader(case.dialect.framing, case.dialect.stream_decoder())
    assert list(through([stream], reading)) == decoded(case.dialect, [stream])


@each("stream.*", where=has_shortcuts)
def test_frame_by_frame(case: Case) -> None:
    frames = re.split(rb"(?<=\n\n)" if b"\n\n" in case.stream else rb"(?<=\n)", case.stream)
    reading = StreamReader(case.dialect.framing, case.dialect.stream_decoder())
    expected = decoded(case.dialect, frames)
    assert list(through(frames, reading)) == expected
    assert by_pieces(StreamReader(case.dialect.framing, case.dialect.stream_decoder()), frames) == expected
