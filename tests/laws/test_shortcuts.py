"""Shortcuts: what is read and written in one step is what the general way makes of it, wherever a stream is cut.

The general way is the same code with all shortcuts off. The streams are shaped like those of the vendors, because the
shape is what a shortcut learns. Each position of a short stream is cut by itself; long streams are cut in samples.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.mutations import cuttings
from tests.laws.vendor_streams import VENDORS, Vendor, each_vendor
from tests.shortcuts import switched, without
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.errors import FailureError, WireError
from xenoglot.model.events import PIECES, Event, Failed
from xenoglot.model.request import Request
from xenoglot.shortcuts import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.shortcuts import Group

ODD = (
    '{"created":"x","choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"created":-1,"choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"created":null,"choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"id":-1,"choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"model":3,"choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"service_tier":null,"choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"object":"error","choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"obfuscation":3,"choices":[{"index":0,"delta":{"content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":false}]}',
    '{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":0}]}',
    '{"choices":[{"index":0,"delta":{"content":"b"},"logprobs":null}]}',
    '{"choices":[{"index":0,"delta":{"content":"b"},"logprobs":false}]}',
    '{"choices":[{"index":0,"delta":{"role":3,"content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"x":null,"content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"x":false,"content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"x":0,"content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"x":"","content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"content":0,"reasoning_content":"b"}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","tool_calls":false}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","tool_calls":""}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","tool_calls":[]}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","function_call":{}}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","refusal":false}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","audio":0}}]}',
    '{"choices":[{"index":0,"delta":{"content":"b","audio":{}}}]}',
    '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":0,"arguments":"b"}}]}}]}',
    '{"choices":[{"index":0,"delta":{"content":0,"tool_calls":[{"index":0,"function":{"arguments":"b"}}]}}]}',
    '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
    '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2},"timings":{"n":1}}',
    '{"choices":[],"usage":{"prompt_tokens":9},"error":{"message":"b"}}',
    '{"choices":[],"usage":{"prompt_tokens":9},"error":null}',
    '{"choices":[],"usage":{"prompt_tokens":9},"object":"error"}',
    '{"choices":[],"usage":{"prompt_tokens":9},"id":7}',
    '{"choices":[],"usage":{"prompt_tokens":9},"created":-1}',
    '{"choices":[],"usage":{"prompt_tokens":-9}}',
    '{"choices":[],"usage":{}}',
    '{"choices":[],"usage":7}',
    '{"choices":null,"usage":{"prompt_tokens":9}}',
    '{"usage":{"prompt_tokens":9}}',
)
"""Chunks of chat that hold one piece or usage, and something odd beside it."""
FEW, MANY = 5, 130
"""Pieces of text in a stream: counts grow from 8 beyond 9, and from 8 beyond 99."""
STRIDE = 3
"""Of the cuts, one in so many is tried with a client, too."""
ASKED = Request(model="m", stream=True, stream_usage=True)
READS = (1, 2, 3, 7, 64, 700, 1448, 4096, 16384)
"""Bytes of each read of a stream: as small as can be, and as large as packets and buffers are."""

Written = tuple[bytes, str | None, list[Loss]]


def read(vendor: Vendor, pieces: Iterable[bytes]) -> list[Event]:
    """Return the events, as a gateway reads them."""
    return list(through(pieces, StreamReader(vendor.dialect.framing, vendor.dialect.stream_decoder())))


def translated(vendor: Vendor, client: str, pieces: Iterable[bytes]) -> Written:
    """Return what a client of a dialect is sent for these reads, how it failed if it did, and what was lost."""
    losses, dialect = Losses(), get(client)
    reading = StreamReader(vendor.dialect.framing, vendor.dialect.stream_decoder())
    writing = StreamWriter(Pipeline(), dialect.stream_encoder(ASKED, losses), dialect.framing)
    sent: list[bytes] = []
    try:
        sent += [writing.write(events) for piece in pieces if (events := reading.feed(piece))]
        sent.append(writing.write(reading.close()))
        sent += writing.close()
    except (FailureError, WireError) as error:
        return b"".join(sent), str(error), [*losses]
    return b"".join(sent), None, [*losses]


@cache
def expected(vendor: Vendor, pieces: int, client: str) -> Written:
    with switched(on=False):
        return translated(vendor, client, [vendor.stream(pieces)])


@cache
def expected_events(vendor: Vendor, pieces: int) -> list[Event]:
    with switched(on=False):
        return read(vendor, [vendor.stream(pieces)])


def cut(data: bytes, size: int) -> Sequence[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@each_vendor
def test_each_stream_is_an_answer(vendor: Vendor) -> None:
    """The rows say what they are meant to: words that grow, and an end."""
    events = expected_events(vendor, MANY)
    assert not any(isinstance(event, Failed) for event in events)
    assert sum(isinstance(event, PIECES) for event in events) > MANY * 9 // 11


@each_vendor
def test_read_with_one_cut_anywhere(vendor: Vendor) -> None:
    """findings-A1: also behind the last digit of a count, and within it."""
    stream, events = vendor.stream(FEW), expected_events(vendor, FEW)
    with switched(on=True):
        for at in range(len(stream)):
            assert (at, read(vendor, (stream[:at], stream[at:]))) == (at, events)


@each_vendor
def test_translated_with_one_cut_anywhere(vendor: Vendor) -> None:
    stream, clients = vendor.stream(FEW), names()
    with switched(on=True):
        for at in range(0, len(stream), STRIDE):
            client = clients[at // STRIDE % len(clients)]
            sent = translated(vendor, client, (stream[:at], stream[at:]))
            assert (at, client, sent) == (at, client, expected(vendor, FEW, client))


@each_vendor
def test_in_reads_of_any_size(vendor: Vendor) -> None:
    stream, clients = vendor.stream(MANY), names()
    with switched(on=True):
        for place, size in enumerate(READS):
            pieces = cut(stream, size)
            assert (size, read(vendor, pieces)) == (size, expected_events(vendor, MANY))
            client = clients[place % len(clients)]
            assert (size, translated(vendor, client, pieces)) == (size, expected(vendor, MANY, client))


@pytest.mark.parametrize("client", names())
@each_vendor
def test_in_packets_for_each_client(vendor: Vendor, client: str) -> None:
    with switched(on=True):
        assert translated(vendor, client, cut(vendor.stream(MANY), 1448)) == expected(vendor, MANY, client)


@pytest.mark.parametrize("group", GROUPS)
@each_vendor
def test_with_one_group_off(vendor: Vendor, group: Group) -> None:
    with without({group}):
        assert translated(vendor, "messages", cut(vendor.stream(FEW), 64)) == expected(vendor, FEW, "messages")


@settings(max_examples=400)
@given(data=st.data())
def test_cut_many_times(data: st.DataObject) -> None:
    vendor, client = data.draw(st.sampled_from(VENDORS)), data.draw(st.sampled_from(names()))
    few = data.draw(st.integers(0, 12))
    pieces = data.draw(cuttings(vendor.stream(few), most=24))
    with switched(on=True):
        assert read(vendor, pieces) == expected_events(vendor, few)
        assert translated(vendor, client, pieces) == expected(vendor, few, client)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("last", ['{"index":0,"delta":{},"finish_reason":"stop"}', '{"index":0,"delta":{}}'])
def test_what_stands_beside_a_piece_is_not_passed_over(odd: str, last: str) -> None:
    """It is kept or lost, or fails the answer, as in the general way; also where it comes again and again."""
    piece = '{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}'
    chunks = [piece, odd, odd, piece, odd, odd, odd, f'{{"choices":[{last}]}}', "[DONE]"]
    told: list[list[Event]] = []
    for on in (True, False):
        with switched(on=on):
            reading = StreamReader(get("chat").framing, get("chat").stream_decoder())
            told.append(list(through([f"data: {chunk}\n\n".encode() for chunk in chunks], reading)))
    assert told[0] == told[1]
