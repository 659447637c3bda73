"""The binary event stream: any events come back from any cutting, and botocore reads and writes the same bytes."""

from __future__ import annotations

from binascii import crc32
from struct import pack
from typing import TYPE_CHECKING

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.framing.binary_events import (
    BINARY_EVENTS,
    ERROR,
    EXCEPTION,
    BinaryEventDecoder,
    encode_message,
)
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.stage import through
from xenoglot.errors import WireError
from xenoglot.model.events import Event, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

HELLO = ServerSentEvent(b'{"contentBlockIndex":0,"delta":{"text":"Hello"}}', "contentBlockDelta")
THROTTLED = ServerSentEvent(b'{"message":"Too many requests"}', "throttlingException", EXCEPTION)

NAMES = st.text(min_size=1, max_size=9)
FRAMES = st.builds(ServerSentEvent, st.binary(max_size=40), NAMES, st.sampled_from([None, EXCEPTION])) | st.builds(
    lambda text, name: ServerSentEvent(encode_json({"message": text}), name, ERROR), st.text(max_size=9), NAMES
)


def written(*events: ServerSentEvent) -> bytes:
    return b"".join(through(events, BINARY_EVENTS.encoder()))


def message(headers: bytes, payload: bytes = b"", *, size: int | None = None, length: int | None = None) -> bytes:
    """Return a message of these bytes, with right checksums, whatever its prelude says of its lengths."""
    whole = len(headers) + len(payload) + 16
    prelude = pack("!II", whole if size is None else size, len(headers) if length is None else length)
    head = prelude + pack("!I", crc32(prelude)) + headers + payload
    return head + pack("!I", crc32(head))


def text_header(name: str, value: str) -> bytes:
    return bytes((len(name),)) + name.encode() + b"\7" + pack("!H", len(value.encode())) + value.encode()


@given(events=st.lists(FRAMES, max_size=4), size=st.integers(1, 30))
def test_events_come_back_from_any_cutting(events: list[ServerSentEvent], size: int) -> None:
    data = written(*events)
    decoder = BINARY_EVENTS.decoder()
    found: list[ServerSentEvent] = []
    for at in range(0, len(data), size):
        found += decoder.feed(data[at : at + size])
        assert decoder.rests is (decoder.held == 0)
        assert decoder.is_open is not decoder.rests
    assert ([*found, *decoder.close()], decoder.rests) == (events, True)


@given(events=st.lists(FRAMES, max_size=4), size=st.integers(1, 30))
def test_botocore_reads_what_is_written(events: list[ServerSentEvent], size: int) -> None:
    data, buffer = written(*events), EventStreamBuffer()
    for at in range(0, len(data), size):
        buffer.add_data(data[at : at + size])
    for event, read in zip(events, buffer, strict=True):
        kind = read.headers[":message-type"]
        if event.id == ERROR:
            named = read.headers[":error-code"], encode_json({"message": read.headers[":error-message"]})
        else:
            named = read.headers[f":{kind}-type"], read.payload
        assert (kind, *named) == (event.id or "event", event.event, event.data)


def test_every_type_of_header_is_read() -> None:
    odd = b"".join(
        bytes((2,)) + name + bytes((kind,)) + value
        for name, kind, value in (
            (b"h0", 0, b""),
            (b"h1", 1, b""),
            (b"h2", 2, b"\1"),
            (b"h3", 3, b"\1\2"),
            (b"h4", 4, b"\1\2\3\4"),
            (b"h5", 5, b"12345678"),
            (b"h6", 6, b"\0\3abc"),
            (b"h8", 8, b"12345678"),
            (b"h9", 9, b"1234567812345678"),
        )
    )
    data = message(odd + text_header(":event-type", "a") + text_header(":message-type", "event"), b"{}")
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    assert next(buffer).headers[":event-type"] == "a"
    assert list(through([data], BinaryEventDecoder())) == [ServerSentEvent(b"{}", "a")]


@pytest.mark.parametrize("place", range(len(written(HELLO))))
def test_damage_is_noticed_wherever_it_is(place: int) -> None:
    data = bytearray(written(HELLO))
    data[place] ^= 0x40
    with pytest.raises(WireError, match="checksum"):
        list(through([bytes(data)], BinaryEventDecoder()))


@pytest.mark.parametrize("size", [1, 7, 60, 1000])
@pytest.mark.parametrize("after", [b"", written(HELLO)], ids=["last", "not-last"])
def test_events_before_damage_are_the_same_however_the_bytes_are_cut(size: int, after: bytes) -> None:
    damaged = bytearray(written(HELLO))
    damaged[-1] ^= 0x40
    data = written(HELLO) * 2 + bytes(damaged) + after
    decoder = BinaryEventDecoder()
    found: list[ServerSentEvent] = []

    def read() -> None:
        for at in range(0, len(data), size):
            found.extend(decoder.feed(data[at : at + size]))
        found.extend(decoder.close())

    with pytest.raises(WireError, match="the checksum of an event is wrong"):
        read()
    assert found == [HELLO] * 2
    assert decoder.is_open  # nothing can be added to these bytes


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(message(b"", size=2**31), "larger than 33554432 bytes", id="too-large"),
        pytest.param(message(b"", size=15), "longer than allowed, or than the event", id="too-small"),
        pytest.param(message(b"", length=9), "longer than allowed, or than the event", id="headers-beyond-the-end"),
        pytest.param(message(b"a" * 131073), "longer than allowed", id="headers-too-long"),
        pytest.param(message(b"\5a"), "malformed", id="name-cut"),
        pytest.param(message(b"\1a\7\0\5ab"), "malformed", id="value-cut"),
        pytest.param(message(b"\1a\7\0"), "malformed", id="length-cut"),
        pytest.param(message(b"\1a\x0a"), "malformed", id="unknown-type"),
        pytest.param(message(b"\1a\7\0\1\xff"), "malformed", id="no-utf-8"),
        pytest.param(b'{"message":"Forbidden"}', "no event stream", id="json"),
        pytest.param(b"<html><body>Bad Gateway</body></html>", "no event stream", id="html"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        list(through([data], BinaryEventDecoder()))


def test_a_large_event_is_refused_by_its_prelude() -> None:
    decoder = BinaryEventDecoder(max_event_bytes=200)
    with pytest.raises(WireError, match="larger than 200 bytes"):
        decoder.feed(written(ServerSentEvent(b"a" * 200, "chunk"))[:12])


def test_a_message_byte_by_byte_is_joined_once() -> None:
    data = written(ServerSentEvent(b"a" * 100_000, "chunk"))
    decoder = BinaryEventDecoder()
    for at in range(len(data) - 1):
        assert not decoder.feed(data[at : at + 1])
    assert decoder.held == len(data) - 1
    assert [len(event.data) for event in decoder.feed(data[-1:])] == [100_000]


def test_a_cut_message_is_no_event() -> None:
    data = written(HELLO, THROTTLED)
    decoder = BinaryEventDecoder()
    assert (list(decoder.feed(data[:-1])), decoder.is_open, list(decoder.close())) == ([HELLO], True, [])


def test_a_comment_says_nothing() -> None:
    assert written(ServerSentEvent(b"", comment="on")) == b""


def test_an_error_without_a_payload() -> None:
    said = text_header(":message-type", ERROR) + text_header(":error-code", "500") + text_header(":error-message", "No")
    event = ServerSentEvent(b'{"message":"No"}', "500", ERROR)
    assert list(through([message(said)], BinaryEventDecoder())) == [event]
    assert list(through([encode_message(event)], BinaryEventDecoder())) == [event]


class _Pieces:
    """A decoder that could be foreseen."""

    terminated = False
    state = 0

    def feed(self, event: ServerSentEvent) -> Sequence[Event]:
        return (TextDelta(event.data.decode()),)

    def close(self) -> Sequence[Event]:
        return ()

    def lesson(self, _event: ServerSentEvent) -> None:
        raise AssertionError("a frame that has no mark of its end cannot be foreseen")


def test_a_stream_reader_reads_in_the_general_way() -> None:
    reader = StreamReader(BINARY_EVENTS, _Pieces())
    data = written(*(ServerSentEvent(text, "a") for text in (b"one", b"two", b"three")))
    pieces = [data[at : at + 7] for at in range(0, len(data), 7)]
    assert [event for piece in pieces for event in reader.feed(piece)] == [*map(TextDelta, ("one", "two", "three"))]
    assert reader.rests
