"""Events before one that is too large or invalid are kept, whatever the framing and however the bytes are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from xenoglot.codec.framing.binary_events import BinaryEventDecoder, encode_message
from xenoglot.codec.framing.formats import ArrayDecoder, LineDecoder
from xenoglot.codec.framing.sse import ServerSentEvent, SSEDecoder
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.events import TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xenoglot.codec.framing.sse import EventDecoder
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event

T = TypeVar("T")
MAX = 60
SMALL = [ServerSentEvent(b'{"n":%d}' % number) for number in range(3)]
LARGE = b'{"n":"' + b"x" * 3 * MAX + b'"}'
CASES: dict[str, tuple[Callable[[], EventDecoder], bytes]] = {
    "sse": (lambda: SSEDecoder(MAX), b"".join(b"data: %b\n\n" % one.data for one in SMALL) + b"data: " + LARGE),
    "sse-cr": (lambda: SSEDecoder(MAX), b"".join(b"data: %b\r\r" % one.data for one in SMALL) + b"data: " + LARGE),
    "sse-lines": (
        lambda: SSEDecoder(MAX),
        b"".join(b"data: %b\n\n" % one.data for one in SMALL) + b"data: 123456789\n" * 9,
    ),
    "lines": (lambda: LineDecoder(MAX), b"".join(one.data + b"\n" for one in SMALL) + LARGE),
    "array": (lambda: ArrayDecoder(MAX), b"[" + b",".join(one.data for one in SMALL) + b"," + LARGE),
    "array-of-numbers": (lambda: ArrayDecoder(MAX), b"[" + b",".join(one.data for one in SMALL) + b",7"),
    "binary": (
        lambda: BinaryEventDecoder(2 * MAX),
        b"".join(encode_message(one) for one in SMALL) + encode_message(ServerSentEvent(LARGE)),
    ),
}


def read_all(decoder: Stage[bytes, T], pieces: Iterable[bytes], found: list[T]) -> None:
    """Add to `found` what a decoder makes of these pieces."""
    for piece in pieces:
        found.extend(decoder.feed(piece))
    found.extend(decoder.close())


@pytest.mark.parametrize("after", [b"", b"\n\n"], ids=["open", "whole"])
@pytest.mark.parametrize("name", CASES)
def test_events_before_it_are_kept_at_every_cut(name: str, after: bytes) -> None:
    make, data = CASES[name]
    data += after
    for place in range(len(data) + 1):
        decoder = make()
        found: list[ServerSentEvent] = []
        with pytest.raises(WireError):
            read_all(decoder, (data[:place], data[place:]), found)
        assert [event.data for event in found] == [event.data for event in SMALL], place
        assert decoder.is_open, "nothing can be added"
        assert not decoder.rests
        with pytest.raises(WireError):
            decoder.feed(b"data: {}\n\n")


CHUNK = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%b}]}\n\n'
)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_stream_reader_keeps_them_too(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads frame by frame until it has learned what a piece of text looks like."""
    chat = get("chat")
    pieces = [CHUNK % (b'{"content":"%d"}' % number) for number in range(9)]
    data = CHUNK % b'{"role":"assistant","content":""}' + b"".join(pieces) + b"data: " + b"x" * 1000
    reader = StreamReader(chat.framing, chat.stream_decoder())
    monkeypatch.setattr(reader, "_framing", SSEDecoder(500))
    found: list[Event] = []
    with pytest.raises(WireError, match="larger than 500 bytes"):
        read_all(reader, (data[at : at + size] for at in range(0, len(data), size)), found)
    assert "".join(event.text for event in found if isinstance(event, TextDelta)) == "012345678"
    with pytest.raises(WireError):
        reader.feed(pieces[0])
    with pytest.raises(WireError):
        reader.close()
