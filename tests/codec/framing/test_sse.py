"""Server-sent events: the WHATWG rules, at every cutting, in bounded memory and linear time."""

import re
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xenoglot.codec.framing.sse import ServerSentEvent, SSEDecoder, SSEEncoder, encode_event
from xenoglot.codec.stage import through
from xenoglot.errors import WireError

Event = ServerSentEvent

# The examples of https://html.spec.whatwg.org/multipage/server-sent-events.html section 9.2.6, and the cases of ours.
VECTORS: dict[str, tuple[bytes, list[Event]]] = {
    "whatwg-stocks": (
        b"data: YHOO\ndata: +2\ndata: 10\n\n",
        [Event(b"YHOO\n+2\n10")],
    ),
    "whatwg-four-blocks": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [Event(b"first event", id="1"), Event(b"second event", id=""), Event(b" third event", id="")],
    ),
    "whatwg-empty-data": (b"data\n\ndata\ndata\n\n", [Event(b""), Event(b"\n")]),
    "whatwg-one-space": (b"data:test\n\ndata: test\n\n", [Event(b"test"), Event(b"test")]),
    "pitfall-116-no-space-after-colon": (b'event:delta\ndata:{"a":1}\n\n', [Event(b'{"a":1}', "delta")]),
    "pitfall-116-comments": (b": ping\n\n:\n\n: a: b\ndata: x\n: between\ndata: y\n\n", [Event(b"x\ny")]),
    "pitfall-116-bom": (b"\xef\xbb\xbfdata: x\n\n", [Event(b"x")]),
    "U21-bom-only-at-the-head": (b"data: x\n\n\xef\xbb\xbfdata: y\n\ndata: z\n\n", [Event(b"x"), Event(b"z")]),
    "U21-two-boms": (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\ndata: y\n\n", [Event(b"y")]),
    "U21-a-bom-begun-and-not-ended": (b"\xef\xbbdata: x\n\ndata: y\n\n", [Event(b"y")]),
    "U21-empty-data": (b"event: a\ndata:\n\nevent: b\ndata: \n\n", [Event(b"", "a"), Event(b"", "b")]),
    "U21-no-data-no-event": (b"event: lost\n\nid: 7\n\ndata: x\n\n", [Event(b"x", id="7")]),
    "U21-all-fields": (
        b"retry: 10\nid: a\nevent: e\ndata: x\n\ndata: y\n\n",
        [Event(b"x", "e", "a", 10), Event(b"y", id="a")],
    ),
    "U21-the-last-name-counts": (b"event: a\nevent: b\ndata: x\n\n", [Event(b"x", "b")]),
    "U21-an-empty-name-is-none": (b"event: a\nevent:\ndata: x\n\n", [Event(b"x")]),
    "U21-bad-retry-and-id": (
        b"retry: 1.5\nretry:\nretry: -1\nid: a\0b\ndata: x\n\n",
        [Event(b"x")],
    ),
    "U21-retry-of-5000-digits": (b"retry: " + b"9" * 5000 + b"\ndata: x\n\n", [Event(b"x")]),
    "U21-retry-in-other-digits": ("retry: \u0661\u0662\u00b2\ndata: x\n\n".encode(), [Event(b"x")]),
    "U21-unknown-fields": (b"database: y\ndata\n :x\ndata : z\nData: z\ndata: x\n\n", [Event(b"\nx")]),
    "U21-blank-lines": (b"\n\n\ndata: x\n\n\n\n", [Event(b"x")]),
    "U19-utf-8": (
        'data: {"t":"häß \U0001f600 \u4e2d"}\n\n'.encode(),
        [Event('{"t":"häß \U0001f600 \u4e2d"}'.encode())],
    ),
    "U18-not-utf-8": (b"event: \xff\ndata: \xff\xfe\n\n", [Event(b"\xff\xfe", "\ufffd")]),
    "C-W11-no-last-blank-line": (b"data: x\n\ndata: y\n", [Event(b"x"), Event(b"y")]),
    "C-W11-no-last-line-end": (b"data: x\n\nevent: e\ndata: y", [Event(b"x"), Event(b"y", "e")]),
    "U14-cut-inside-a-name": (b"data: x\n\nevent: err", [Event(b"x")]),
    "A-W1-nothing": (b"", []),
    "pitfall-105-bare-json": (
        b'data: x\n\n{\n  "a": 1\n}\n\ndata: y\n\n',
        [Event(b"x"), Event(b'{\n  "a": 1\n}'), Event(b"y")],
    ),
    "pitfall-105-bare-array-at-the-end": (b'data: x\n\n[{"a": 1}]', [Event(b"x"), Event(b'[{"a": 1}]')]),
    "done": (b"data: [DONE]\n\n", [Event(b"[DONE]")]),
}
TOLERANT: dict[str, tuple[bytes, list[Event]]] = {
    **VECTORS,
    "C13-one-space": (b' data: {"a":1}\n\n', [Event(b'{"a":1}')]),
    "C13-spaces-and-tabs": (b" \t event: e\n\tid: 1\n  retry: 10\n   data: x\n\n", [Event(b"x", "e", "1", 10)]),
    "C13-no-space-after-colon": (b"  data:x\n  data\n\n", [Event(b"x\n")]),
    "C13-space-of-the-data-is-kept": (b"  data:  x \n\n", [Event(b" x ")]),
    "C13-indented-blank-lines": (b"  data: x\n  \n  data: y\n\t\n", [Event(b"x"), Event(b"y")]),
    "C13-indented-comments": (b"  : ping\n data: x\n  :\n\n", [Event(b"x")]),
    "C13-only-some-lines": (b"data: x\n data: y\n\n", [Event(b"x\ny")]),
    "C13-bare-json-keeps-its-form": (
        b'[\n  {\n    "data: ": 1\n  }\n]\n\n data: y\n\n',
        [Event(b'[\n  {\n    "data: ": 1\n  }\n]'), Event(b"y")],
    ),
    "C13-indented-json-is-no-field": (b' {"data": 1}\n [1]\n\ndata: x\n\n', [Event(b"x")]),
}
TOLERANT_CASES = [pytest.param(wire, events, id=name) for name, (wire, events) in TOLERANT.items()]
CASES = [pytest.param(wire, events, id=name) for name, (wire, events) in VECTORS.items()]


def decoded(pieces: Iterable[bytes], max_event_bytes: int = 1 << 20) -> list[Event]:
    return list(through(pieces, SSEDecoder(max_event_bytes)))


@pytest.mark.parametrize(("wire", "events"), CASES)
def test_events(wire: bytes, events: list[Event]) -> None:
    assert decoded([wire]) == events


@pytest.mark.parametrize(("wire", "events"), TOLERANT_CASES)
def test_a_tolerant_decoder_accepts_blanks_before_fields_at_every_split_point(wire: bytes, events: list[Event]) -> None:
    for end in (b"\n", b"\r\n"):
        lines = wire.replace(b"\n", end)
        for at in range(min(len(lines), 200) + 1):
            assert list(through([lines[:at], lines[at:]], SSEDecoder(tolerant=True))) == events, at
        assert list(through([lines[at : at + 1] for at in range(len(lines))], SSEDecoder(tolerant=True))) == events


@pytest.mark.parametrize(("wire", "events"), CASES)
def test_every_split_point_gives_the_same(wire: bytes, events: list[Event]) -> None:
    for at in range(min(len(wire), 200) + 1):
        assert decoded([wire[:at], wire[at:]]) == events, at
        assert decoded([wire[:at], b"", wire[at : at + 1], wire[at + 1 :]]) == events, at


@pytest.mark.parametrize(("wire", "events"), CASES)
@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"], ids=["U20-cr", "U20-crlf", "U20-lf"])
def test_every_line_end_gives_the_same_byte_by_byte(wire: bytes, events: list[Event], end: bytes) -> None:
    lines = wire.replace(b"\n", end)
    assert decoded([lines]) == events
    assert decoded(lines[at : at + 1] for at in range(len(lines))) == events


def test_mixed_line_ends_at_every_split_point() -> None:
    """U20: LF, CR and CRLF in one stream; a cut between CR and LF makes no blank line."""
    wire = b"event: a\rdata: 1\r\ndata: 2\n\r\ndata: 3\r\rdata: 4\n\ndata: 5\r\n\r"
    events = [Event(b"1\n2", "a"), Event(b"3"), Event(b"4"), Event(b"5")]
    for first in range(len(wire) + 1):
        for second in range(first, len(wire) + 1):
            assert decoded([wire[:first], wire[first:second], wire[second:]]) == events


def test_an_event_is_out_as_soon_as_its_blank_line_is() -> None:
    """U20: a CR at the end of a read dispatches at once, the LF that may follow is swallowed then."""
    decoder = SSEDecoder()
    assert decoder.feed(b"data: x\r\n\r") == [Event(b"x")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: y\n\n") == [Event(b"y")]
    assert decoder.close() == []


WIRE_LIKE = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"data", b"data:", b"data: ", b"event: a", b":", b"id: 1"]),
        st.sampled_from([b"\xef\xbb\xbf", b"\xef", b"\xbb\xbf", b"retry: 5", b" ", b"\0", b"x" * 9]),
        st.binary(max_size=3),
    ),
    max_size=12,
).map(b"".join)


@st.composite
def cuttings(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    wire = draw(WIRE_LIKE)
    cuts = sorted(draw(st.sets(st.integers(0, len(wire)), max_size=6)))
    return wire, [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]


def outcome(pieces: Iterable[bytes], max_event_bytes: int) -> list[Event] | str:
    try:
        return decoded(pieces, max_event_bytes)
    except WireError as error:
        return str(error)


@settings(max_examples=400)
@given(cuttings(), st.integers(0, 24))
def test_any_cutting_of_any_bytes_gives_the_same(case: tuple[bytes, list[bytes]], max_event_bytes: int) -> None:
    wire, pieces = case
    assert outcome(pieces, max_event_bytes) == outcome([wire], max_event_bytes)


TOO_LARGE = {
    "U36-one-line": [b"data: " + b"x" * 200],
    "U36-one-line-in-pieces": [b"data: ", *[b"x"] * 200],
    "U36-many-lines": [b"data: xxxx\n"] * 20,
    "U36-many-empty-lines": [b"data:\n"] * 40,
    "U36-many-bare-lines": [b"data\n"] * 40,
    "U36-a-comment": [b":", b"x" * 200],
    "U36-a-name": [b"event: " + b"x" * 200 + b"\n"],
}


@pytest.mark.parametrize("pieces", [pytest.param(pieces, id=name) for name, pieces in TOO_LARGE.items()])
def test_an_endless_event_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(WireError, match=r"^\$: a server-sent event is larger than 100 bytes$"):
        decoded(pieces, 100)


FITTING = {
    "U36-many-events": ([b"data: xxxx\n\n"] * 40, [Event(b"xxxx")] * 40),
    "U36-a-line-in-pieces-counts-once": ([b"data: ", *[b"x"] * 90, b"\n\n"], [Event(b"x" * 90)]),
    "U36-comments-without-blank-lines": ([b": a p", b"ing\n"] * 40 + [b"data: x\n\n"], [Event(b"x")]),
}


@pytest.mark.parametrize(
    ("pieces", "events"), [pytest.param(pieces, events, id=name) for name, (pieces, events) in FITTING.items()]
)
def test_what_fits_is_not_refused(pieces: list[bytes], events: list[Event]) -> None:
    assert decoded(pieces, 100) == events


class Counted(bytes):
    """Bytes that count how many of them are searched, compared at the ends, or copied by slicing."""

    work = 0

    def split(self, *arguments: Any) -> list[bytes]:  # noqa: ANN401  those of bytes.split
        Counted.work += len(self)
        return [Counted(piece) for piece in super().split(*arguments)]

    def __contains__(self, sought: Any) -> bool:  # noqa: ANN401  as in bytes
        Counted.work += len(self)
        return super().__contains__(sought)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401  as in bytes
        found = super().__getitem__(key)
        Counted.work += len(found) if isinstance(found, bytes) else 1
        return found


def work(pieces: list[bytes]) -> int:
    """Return the steps of the interpreter, and the bytes looked at, that decoding takes."""
    steps = 0

    def step(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401  a trace function returns itself
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return step

    Counted.work = 0
    counted = [Counted(piece) for piece in pieces]
    decoder = SSEDecoder()
    before = sys.gettrace()
    sys.settrace(step)
    try:
        for piece in counted:
            decoder.feed(piece)
        decoder.close()
    finally:
        sys.settrace(before)
    return steps + Counted.work


def floods(size: int) -> Iterator[tuple[str, list[bytes]]]:
    yield "a line that never ends, byte by byte", [b"x"] * size
    yield "an event that never ends", [b"data: x\n"] * size
    yield "tiny events", [b"data: x\n\n"] * size
    yield "tiny events at once", [b"data: x\n\n" * size]
    yield "carriage returns", [b"\r"] * size
    yield "a line at once", [b"data: " + b"x" * size + b"\n\n"]


@pytest.mark.parametrize("kind", range(6), ids=[f"U36-{name.replace(' ', '-')}" for name, _ in floods(0)])
def test_the_work_grows_with_the_bytes(kind: int) -> None:
    """Linear time, by the count of steps: four times the bytes take four times the work, within a twentieth."""
    once, four_times = (work(list(floods(size))[kind][1]) for size in (200, 800))
    assert four_times <= 4.2 * once


def test_a_growing_line_is_joined_once() -> None:
    """What has come of a line is kept as it came, not copied again at each read."""
    decoder = SSEDecoder()
    for _ in range(100):
        assert decoder.feed(b"xy") == []
    assert decoder._pending == [b"xy"] * 100


FRAMES = {
    "data": (Event(b"x"), b"data: x\n\n"),
    "empty": (Event(b""), b"data: \n\n"),
    "named": (Event(b"{}", "ping"), b"event: ping\ndata: {}\n\n"),
    "all": (Event(b"x", "e", "1", 5), b"event: e\nid: 1\nretry: 5\ndata: x\n\n"),
    "lines": (Event(b"a\nb\r\nc\rd"), b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
    "pitfall-107-comment": (Event(b"", comment="ping"), b": ping\n\n"),
    "C22-line-ends-in-a-name": (Event(b"x", "e\ndata: y\r\n", "1\r2"), b"event: e data: y  \nid: 1 2\ndata: x\n\n"),
    "C22-line-ends-in-a-comment": (Event(b"", comment="a\n\ndata: y"), b": a  data: y\n\n"),
    "C12-half-a-pair-in-a-name": (Event(b"x", "\ud800"), b"event: ?\ndata: x\n\n"),
}


@pytest.mark.parametrize(("event", "frame"), [pytest.param(*case, id=name) for name, case in FRAMES.items()])
def test_frames(event: Event, frame: bytes) -> None:
    assert encode_event(event) == frame
    assert list(through([event], SSEEncoder())) == [frame]


NAMES = st.none() | st.text(min_size=1, max_size=8).filter(lambda text: not re.search(r"[\r\n\0\ud800-\udfff]", text))
EVENTS = st.builds(
    Event,
    st.binary(max_size=20).filter(lambda data: b"\r" not in data),
    NAMES,
    st.just("1"),  # the last id said stays, so all have one
    st.none() | st.integers(0, 10**9),
)


@given(st.lists(EVENTS, max_size=5))
def test_what_is_written_is_read(events: list[Event]) -> None:
    assert decoded(through(events, SSEEncoder())) == events
