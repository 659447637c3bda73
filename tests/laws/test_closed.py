"""Closed streams: a stream cut anywhere ends with its finish reason and all that ends it, or it fails.

Every stream is cut at every byte, and its bytes end there as HTTP ends a body, or break off. The client reads by the
standard: it drops a frame that has no end, and a stream is over for it at the terminating event.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.exact import exact
from tests.faults.wire_responses import DIALECTS, HELLO
from xenoglot.backends.backend import monitored
from xenoglot.backends.http.client import TransportError
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.remote.operator_messages import OperatorMessages
from xenoglot.backends.remote.upstream_errors import ResponseErrors, unreachable
from xenoglot.backends.stream_guard import GuardedReader, PassthroughMonitor
from xenoglot.codec.framing.formats import EVENT_STREAM, JSON_LINES
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.gateway.relay.envelope import ResponseIds
from xenoglot.model.events import Failed, Finished
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure

BROKEN = TransportError("closed", "body", "closed")
ASKED = Request(model="m", stream=True, stream_usage=True)


class Cut(NamedTuple):
    """The bytes of a stream up to a place; `ends` is whether they end there as a whole body does."""

    data: bytes
    ends: bool

    @property
    def error(self) -> TransportError | None:
        """Why they end."""
        return None if self.ends else BROKEN


def cuts(name: str) -> list[tuple[Cut, bool]]:
    """Return a stream cut at every byte, in both ways, each with whether its answer is complete."""
    wire, lined = HELLO[name], get(name).framing is not EVENT_STREAM
    terminated = bool(wire.end_mark) or name in OVER
    frames = (*wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark)
    reason = next(index for index, frame in enumerate(frames) if any(mark in frame for mark in REASONS[name]))
    made: list[tuple[Cut, bool]] = []
    for at in range(len(wire.stream) + 1):
        data = wire.stream[:at]
        whole, opened = counted(data, frames, lined=lined)
        made.append((Cut(data, ends=True), whole > reason and not opened))
        made.append((Cut(data, ends=False), whole == len(frames) and terminated))
    return made


REASONS = {
    "chat": (b'"finish_reason":"stop"',),
    "completions": (b'"finish_reason":"stop"',),
    "gemini": (b'"finishReason"',),
    "interactions": (b'"interaction.completed"',),
    "llama_stack": (b'"complete"',),
    "llama_stack_completion": (b'"stop_reason":"end_of_turn"',),
    "messages": (b'"stop_reason":"end_turn"',),
    "ollama": (b'"done_reason"',),
    "ollama_generate": (b'"done_reason"',),
    "responses": (b'"response.completed"',),
}
OVER = ("llama_stack", "ollama", "ollama_generate")
"""Dialects whose streams end with the event that tells the reason."""


def counted(data: bytes, frames: Sequence[bytes], *, lined: bool) -> tuple[int, bool]:
    """Return how many frames `data` holds whole, with their end or without it, and whether it cuts one in its data."""
    count, at = 0, 0
    for frame in frames:
        rest = data[at:]
        if len(rest) >= len(frame.rstrip(b"\n")):
            count, at = count + 1, at + len(frame)
        else:
            said = rest if lined else rest.partition(b"data: ")[2]
            return count, bool(said)
    return count, False


@cache
def decoded_events(name: str, cut: Cut) -> tuple[Event, ...]:
    """Return the events of a stream that ends so."""
    reading = StreamReader(get(name).framing, get(name).stream_decoder())
    reader = GuardedReader(reading, reading, lambda failure: failure, Losses())
    events = reader.feed(cut.data) if cut.data else ()
    if events and type(events[-1]) is Failed:
        return tuple(events)
    return (*events, *(reader.close() if cut.error is None else reader.connection_lost(cut.error)))


def passed(name: str, cut: Cut) -> tuple[bytes, Failure | None]:
    """Return the bytes that a client of the same dialect gets, and the failure that breaks them off."""

    async def chunks() -> AsyncGenerator[bytes]:
        if cut.data:
            yield cut.data
        if cut.error is not None:
            raise FailureError(unreachable(cut.error))

    async def all_of() -> tuple[bytes, Failure | None]:
        watch = PassthroughMonitor(get(name), lambda failure: failure)
        pieces = [piece async for piece in monitored(chunks(), watch)]
        return b"".join(piece.data for piece in pieces), pieces[-1].failure if pieces else None

    return asyncio.run(all_of())


def received_events(dialect: Dialect, data: bytes) -> list[Event]:
    """Return what a client hears in `data` that drops what has no end, up to the terminating event."""
    framing, decoder = dialect.framing.decoder(), dialect.stream_decoder()
    events = [event for frame in framing.feed(data) for event in decoder.feed(frame)]
    assert framing.rests
    if dialect.terminator:
        assert decoder.terminated
        return events
    return [*events, *decoder.close()]


@pytest.mark.parametrize("name", DIALECTS)
def test_u13_u14_a_cut_stream_is_complete_or_fails(name: str) -> None:
    for cut, complete in cuts(name):
        events = decoded_events(name, cut)
        assert (type(events[-1]) is Failed) != complete, cut
        assert any(type(event) is Finished for event in events) or not complete, cut


@pytest.mark.parametrize("name", DIALECTS)
def test_u13_u14_bytes_that_pass_are_completed_or_fail(name: str) -> None:
    """findings-6: also where a frame has its data and no end, and where the terminating event is missing."""
    whole = HELLO[name].stream
    for cut, complete in cuts(name):
        data, failure = passed(name, cut)
        assert (failure is None) == complete, cut
        if failure is None:
            assert data.startswith(cut.data), cut
            events = received_events(get(name), data)
            assert any(type(event) is Finished for event in events), cut
            assert type(events[-1]) is not Failed, cut
        else:
            assert data == cut.data, cut
        if cut.data == whole:
            assert data == whole


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("upstream", DIALECTS)
def test_u13_u14_what_is_written_is_complete_or_an_error(upstream: str, client: str) -> None:
    written: dict[str, bool] = {}
    for cut, complete in cuts(upstream):
        events = decoded_events(upstream, cut)
        key = exact(events)
        if key in written:
            assert written[key] == complete, cut
            continue
        written[key] = complete
        dialect = get(client)
        data = b"".join(through([events], _Encoding(dialect)))
        framing, decoder = dialect.framing.decoder(), dialect.stream_decoder()
        said = [event for frame in framing.feed(data) for event in decoder.feed(frame)]
        assert framing.rests, cut
        if complete:
            said = received_events(dialect, data)
            assert any(type(event) is Finished for event in said), cut
            assert type(said[-1]) is not Failed, cut
        else:
            assert type(said[-1]) is Failed, cut
            assert not dialect.terminator or not data.endswith(dialect.terminator), cut


@pytest.mark.parametrize("name", DIALECTS)
def test_u13_a_cut_whole_answer_fails(name: str) -> None:
    """findings-6: wherever HTTP ends its body, also where that has no length."""
    dialect, whole = get(name), HELLO[name].whole
    url = "http://upstream.invalid"
    replies = ResponseErrors(dialect, Redactor(), OperatorMessages(url, url, Redactor()))
    assert dialect.decode_response(replies.parsed(whole)).candidates
    for at in range(len(whole)):
        with pytest.raises(FailureError):
            replies.parsed(whole[:at])
        assert dialect.glimpse is None or dialect.glimpse(whole[:at]) is None
        if dialect.framing is JSON_LINES:
            assert not replies.is_lines(whole[:at])


class _Encoding:
    """A stage from batches of events to bytes."""

    def __init__(self, dialect: Dialect) -> None:
        identify = ResponseIds("id", "m", "req", kept=False, early=None)
        self._writing = StreamWriter(identify, dialect.stream_encoder(ASKED, Losses()), dialect.framing)
        self._failed = False

    def feed(self, batch: Sequence[Event], /) -> Sequence[bytes]:
        self._failed = type(batch[-1]) is Failed
        return (self._writing.write(batch),)

    def close(self) -> Sequence[bytes]:
        return () if self._failed else self._writing.close()
