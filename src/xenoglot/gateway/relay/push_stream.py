"""A streamed answer without a task: each read of the upstream calls its relay, as events or as the bytes they are."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from xenoglot.backends.offload import LARGE
from xenoglot.backends.remote.upstream_errors import unreachable
from xenoglot.backends.stream_guard import GuardedReader, PassthroughMonitor
from xenoglot.codec.invalid_request import REFUSED, refusal
from xenoglot.codec.responses.answer_start import AnswerStart
from xenoglot.errors import FailureError
from xenoglot.gateway.relay.answer import AnswerRelay, parts
from xenoglot.gateway.upstream.preserve_reasoning import Recording
from xenoglot.model.events import TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.http.client import TransportError, UpstreamResponse
    from xenoglot.codec.features.stream_usage import UsageFilter
    from xenoglot.gateway.relay.push_response import Sink
    from xenoglot.gateway.upstream.preserve_reasoning import Recorder
    from xenoglot.model.events import Event
    from xenoglot.model.limits import RateLimits

Stage_ = TypeVar("Stage_", GuardedReader, PassthroughMonitor)


class _StreamRelay(Generic[Stage_]):
    """A stream as it is read: its start, which is looked at before it is consumed, and what follows it."""

    def __init__(self, sink: Sink, reply: UpstreamResponse, limits: RateLimits | None, stage: Stage_) -> None:
        self.begun: bool = False
        """Whether the answer has started; from then on it is consumed."""
        self._sink: Sink = sink
        self._reply = reply
        self._stage: Stage_ = stage
        self._reading = stage.reading
        """Knows whether a read is large, or may end a large frame: it is decoded in a thread, what follows it waits."""
        self._relay = AnswerRelay(sink.envelope, sink.client, sink.loop.time, sink.started, sink.interval)
        self._relay.answered(limits)
        self._start = AnswerStart()
        self._read: deque[Sequence[Event]] = deque()
        """What the stage made of the pieces that are not consumed yet."""
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """See whether the answer has started; leave one that fails before, or ends, to a task, which may retry."""
        reply = self._reply
        for piece in islice(reply.unread, len(self._read), None):
            if len(piece) + self._reading.held >= LARGE:
                self._sink.hand_over()
                return
            events = self._stage.feed(piece)
            self._read.append(events)
            state = self._started(events)
            if state == "failed":
                self._sink.hand_over()
                return
            if state == "started":
                self._begin()
                return
        if reply.is_idle:
            self._sink.hand_over()

    def stop(self) -> None:
        """Send no more; have all that was sent noted."""
        self._relay.note_pieces()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def closed(self, error: TransportError | None, /) -> None:
        """End as the upstream did."""
        try:
            self._end(error)
            self._sink.over()
        except Exception as refused:  # noqa: BLE001  as above
            self._fail(refused)

    def data_received(self, data: bytes, /) -> None:
        """Send what one read held."""
        raise NotImplementedError

    def _started(self, events: Sequence[Event]) -> str:
        return self._start.feed(events)

    def _end(self, error: TransportError | None) -> None:
        """Send what is left of the answer.

        Raises:
            FailureError: it cannot be sent. `LossError`, `WireError` and `RecursionError` alike.
        """
        raise NotImplementedError

    def _begin(self) -> None:
        sink, reply = self._sink, self._reply
        self.begun = True
        sink.began()
        self._timer = sink.loop.call_at(sink.started + sink.interval, self._beat)
        reply.push(self)
        if sink.client.paused:
            reply.pause()

    def _beat(self) -> None:
        self._timer = self._sink.loop.call_at(self._relay.heartbeat(), self._beat)

    def _over(self) -> None:
        """Stop reading: the answer has ended in a failure that it reported itself."""
        self._reply.close()
        self._sink.over()

    def _fail(self, error: Exception) -> None:
        """Report an error to the client; leave it to a task where nothing has been sent, or where it is a bug."""
        if not isinstance(error, REFUSED):
            self._sink.break_down(error)
            return
        self._reply.close()
        try:
            self._relay.fail(refusal(error))
        except REFUSED as again:
            self._sink.break_down(FailureError(refusal(again)))
        except Exception as bug:  # noqa: BLE001  as above
            self._sink.break_down(bug)
        else:
            self._sink.over()


class EventStreamRelay(_StreamRelay[GuardedReader]):
    """The answer of a server of another dialect, or one whose bytes must change.

    A `recorder` stores what the client may strip of it.
    """

    def __init__(
        self,
        sink: Sink,
        reply: UpstreamResponse,
        limits: RateLimits | None,
        stage: GuardedReader,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(sink, reply, limits, stage)
        relay = self._relay
        self._write = relay.write_events
        if recorder is not None:
            recording = Recording(recorder)
            relay.keep = recording.words
            self._write = partial(_write_recorded, relay, recording)

    def data_received(self, data: bytes, /) -> None:
        """Send what one read held."""
        try:
            if self._read:
                events = self._read.popleft()
            elif len(data) < LARGE and (piece := self._stage.piece(data)) is not None:
                if not self._relay.write_piece(piece):
                    self._write((piece,))
                return
            elif len(data) + self._reading.held < LARGE:
                events = self._stage.feed(data)
            else:
                self._reply.wait_for(self._send_large(data))
                return
            if events and not self._write(events):
                self._over()
        except Exception as error:  # noqa: BLE001  the task that is given a bug reports it in the log
            self._fail(error)

    async def _send_large(self, data: bytes) -> None:
        """Send what a large read held, a few events at a time."""
        try:
            for part in parts(await self._stage.read(data)):
                await self._reply.unpaused()
                if part and not self._write(part):
                    self._over()
                    return
                await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error)

    def _started(self, events: Sequence[Event]) -> str:
        return self._start.feed(events) if events else "waiting"

    def _end(self, error: TransportError | None) -> None:
        events = self._stage.close() if error is None else self._stage.connection_lost(error)
        if not events or self._write(events):
            self._relay.finish()


class ByteStreamRelay(_StreamRelay[PassthroughMonitor]):
    """The answer of a server of the client's own dialect: its bytes, which are watched."""

    def __init__(
        self, sink: Sink, reply: UpstreamResponse, limits: RateLimits | None, stage: PassthroughMonitor
    ) -> None:
        super().__init__(sink, reply, limits, stage)
        self._relay.passes_bytes()
        self._ends = sink.envelope.framing.ends

    def data_received(self, data: bytes, /) -> None:
        """Send what one read held."""
        try:
            if self._read:
                events = self._read.popleft()
            elif len(data) < LARGE and (piece := self._stage.piece(data)) is not None:
                if not self._relay.write_piece(piece, data):
                    self._relay.write_bytes(data, (piece,))
                return
            elif len(data) + self._reading.held < LARGE:
                events = self._stage.feed(data)
            else:
                self._reply.wait_for(self._send_large(data))
                return
            if not self._relay.write_bytes(data, events, not data.endswith(self._ends) and self._stage.incomplete):
                self._over()
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error)

    async def _send_large(self, data: bytes) -> None:
        """Send a large read."""
        try:
            self._read.append(await self._stage.read(data))
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error)
        else:
            self.data_received(data)

    def _end(self, error: TransportError | None) -> None:
        completing, events = self._stage.close(None if error is None else unreachable(error))
        self._relay.write_bytes(completing, events)
        self._relay.finish_bytes()


class UsageFilterRelay(ByteStreamRelay):
    """The same, without usage that the client did not request: `unasked` takes it out."""

    def __init__(
        self,
        sink: Sink,
        reply: UpstreamResponse,
        limits: RateLimits | None,
        stage: PassthroughMonitor,
        unasked: UsageFilter,
    ) -> None:
        super().__init__(sink, reply, limits, stage)
        self._unasked = unasked

    def data_received(self, data: bytes, /) -> None:
        """Send the whole frames of what one read held."""
        try:
            if self._read:
                events = self._read.popleft()
            elif len(data) + self._reading.held < LARGE:
                events = self._stage.feed(data)
            else:
                self._reply.wait_for(self._send_large(data))
                return
            if not self._relay.write_bytes(self._unasked.feed(data), events):
                self._over()
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error)

    def _end(self, error: TransportError | None) -> None:
        completing, events = self._stage.close(None if error is None else unreachable(error))
        if error is None:
            completing = self._unasked.close() + completing
        self._relay.write_bytes(completing, events)
        self._relay.finish_bytes()


def relay_bytes(
    sink: Sink,
    reply: UpstreamResponse,
    limits: RateLimits | None,
    stage: PassthroughMonitor,
    unasked: UsageFilter | None,
) -> ByteStreamRelay:
    """Return what relays a stream's bytes, without what `unasked` takes out of them."""
    if unasked is None:
        return ByteStreamRelay(sink, reply, limits, stage)
    return UsageFilterRelay(sink, reply, limits, stage, unasked)


def _write_recorded(relay: AnswerRelay, recording: Recording, events: Sequence[Event]) -> bool:
    relay.note_pieces()
    if len(events) == 1 and type(alone := events[0]) is TextDelta:
        recording.words(alone.text)
    else:
        recording.look(events)
    return relay.write_events(events)
