"""Streams of JSON as lines and as one array: any events come back, from any cutting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.framing.formats import EVENT_STREAM, JSON_ARRAY, JSON_LINES, ArrayDecoder, Framing, LineDecoder
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.stage import through
from xenoglot.errors import WireError

FRAMINGS = [
    pytest.param(EVENT_STREAM, id="sse"),
    pytest.param(JSON_LINES, id="lines"),
    pytest.param(JSON_ARRAY, id="array"),
]
OBJECTS = st.dictionaries(st.text(max_size=4), st.text() | st.integers() | st.lists(st.text('{}[]"\\,\n', max_size=5)))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("framing", FRAMINGS)
@given(objects=st.lists(OBJECTS, max_size=4), size=st.integers(1, 7))
def test_events_come_back_from_any_cutting(framing: Framing, objects: list[object], size: int) -> None:
    events = [ServerSentEvent(encode_json(item)) for item in objects]
    data = b"".join(through(events, framing.encoder()))
    assert list(through(cut(data, size), framing.decoder())) == events


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_frame_ends_where_it_says(framing: Framing) -> None:
    encoder = framing.encoder()
    for _ in range(2):
        assert b"".join(encoder.feed(ServerSentEvent(b"{}"))).endswith(framing.ends)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_comment_says_nothing(framing: Framing) -> None:
    data = b"".join(through([ServerSentEvent(b"{}"), ServerSentEvent(b"", comment="on")], framing.encoder()))
    assert list(through([data], framing.decoder())) == [ServerSentEvent(b"{}")]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        pytest.param(b'{"a":1}\r\n\r\n{"a":2}', [b'{"a":1}', b'{"a":2}'], id="carriage-returns-and-no-last-end"),
        pytest.param(b"\n\n", [], id="empty-lines"),
    ],
)
def test_lines(data: bytes, events: list[bytes]) -> None:
    assert [event.data for event in through([data], LineDecoder())] == events


@pytest.mark.parametrize(
    ("data", "events"),
    [
        pytest.param(b'[{"a":[{}]}\r\n,\r\n{"b":"]}\\""}]', [b'{"a":[{}]}', b'{"b":"]}\\""}'], id="google"),
        pytest.param(b"[]", [], id="empty"),
        pytest.param(b'[{"a":1},{"b":', [b'{"a":1}'], id="cut"),
        pytest.param(b' \n[{"a":"\\\\","b":"\\\\\\"}"}] ', [b'{"a":"\\\\","b":"\\\\\\"}"}'], id="backslashes"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_array(data: bytes, events: list[bytes], size: int) -> None:
    assert [event.data for event in through(cut(data, size), ArrayDecoder())] == events


@pytest.mark.parametrize("data", [b'{"a":1}', b"[1]", b"x"])
def test_no_array(data: bytes) -> None:
    with pytest.raises(WireError):
        ArrayDecoder().feed(data)


@pytest.mark.parametrize("decoder", [LineDecoder(10), ArrayDecoder(10)])
def test_an_event_is_bounded(decoder: LineDecoder | ArrayDecoder) -> None:
    """U19: a piece without end is not held for ever."""
    decoder.feed(b'[{"a":1' if isinstance(decoder, ArrayDecoder) else b'{"a":1')
    with pytest.raises(WireError):
        decoder.feed(b"2345678")
