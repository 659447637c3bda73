"""A streamed answer as it passes without a task: read by read, as events in other words or as the bytes they are."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from xenoglot.backends.remote.upstream_errors import unreachable
from xenoglot.backends.stream_guard import GuardedReader, PassthroughMonitor
from xenoglot.codec.invalid_request import refusal
from xenoglot.codec.responses.answer_start import AnswerStart
from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.gateway.relay.envelope import OK
from xenoglot.gateway.upstream.preserve_reasoning import Recording
from xenoglot.model.events import Failed, Ping, Started, TextDelta

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from xenoglot.backends.http.client import TransportError, UpstreamResponse
    from xenoglot.gateway.relay.push_sink import Sink
    from xenoglot.gateway.upstream.preserve_reasoning import Recorder
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure
    from xenoglot.model.limits import RateLimits

Stage_ = TypeVar("Stage_", GuardedReader, PassthroughMonitor)

_REFUSED = (FailureError, LossError, WireError, RecursionError)
"""What says that an answer cannot be told."""


class _StreamRelay(Generic[Stage_]):
    """What all streams have in common: their beginning, their silences, and how they fail."""

    _tells_events: ClassVar[bool]
    """Whether the client is told the events; else the bytes that they are seen in, which begin by themselves."""

    def __init__(self, passage: Sink, reply: UpstreamResponse, limits: RateLimits | None, stage: Stage_) -> None:
        self.begun: bool = False
        """Whether the answer has begun; from then on it is consumed."""
        self._passage: Sink = passage
        self._client = passage.client
        self._record = passage.record
        self._telling = passage.telling
        self._reply = reply
        self._limits = limits
        self._stage: Stage_ = stage
        self._encoder = passage.telling.encoder(passage.telling.identify(early=self._tells_events))
        self._read: deque[Sequence[Event]] = deque()
        """What the stage made of the pieces that are not consumed yet."""
        self._start = AnswerStart()
        self._opened = False
        self._last = passage.started
        """When something was written last, by the loop's clock."""
        self._clock = passage.loop.time
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """See whether the answer has begun; leave one that fails before, or ends, to those who can try again."""
        reply = self._reply
        for piece in islice(reply.unread, len(self._read), None):
            events = self._stage.feed(piece)
            self._read.append(events)
            if not events and self._tells_events:
                continue
            state = self._start.feed(events)
            if state == "failed":
                self._passage.hand_over()
                return
            if state == "started":
                self._begin()
                return
        if reply.stands_still:
            self._passage.hand_over()

    def stop(self) -> None:
        """Bridge no more silences."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def fed(self, data: bytes, /) -> None:
        """Pass on what one read held."""
        try:
            events = self._read.popleft() if self._read else self._stage.feed(data)
            self._pass(data, events)
        except Exception as error:  # noqa: BLE001  the task that is given a bug tells the log
            self._stumble(error)

    def ended(self, error: TransportError | None, /) -> None:
        """End as the upstream did."""
        try:
            self._end(error)
        except Exception as refused:  # noqa: BLE001  as above
            self._stumble(refused)

    def _pass(self, data: bytes, events: Sequence[Event]) -> None:
        """Write what one read held.

        Raises:
            FailureError: it cannot be told. `LossError`, `WireError` and `RecursionError` alike.
        """
        raise NotImplementedError

    def _end(self, error: TransportError | None) -> None:
        """Write what is left to be said; raises as above."""
        raise NotImplementedError

    def _begin(self) -> None:
        passage, reply = self._passage, self._reply
        self.begun = True
        passage.began()
        self._timer = passage.loop.call_at(self._last + passage.interval, self._look_for_silence)
        reply.push(self)
        if self._client.paused:
            reply.pause()

    def _write(self, data: bytes) -> None:
        client = self._client
        if not self._opened:
            self._opened = True
            client.open(OK, self._telling.begin_stream(self._limits, sure=True))
        elif not data:  # events that make no bytes leave the client in silence
            return
        if data:
            client.put(data)
        self._last = self._clock()

    def _stumble(self, error: Exception) -> None:
        """Tell the client what went wrong here, or leave it to a task to own up to a bug."""
        if not isinstance(error, _REFUSED):
            self._passage.break_down(error)
            return
        try:
            self._fail(refusal(error))
        except _REFUSED as again:
            self._passage.break_down(FailureError(refusal(again)))
        except Exception as bug:  # noqa: BLE001  as above
            self._passage.break_down(bug)

    def _fail(self, failure: Failure) -> None:
        """Say that the answer is broken, and break off; behind half a frame there is no saying it."""
        self._reply.close()
        if not self._opened:
            self._passage.break_down(FailureError(failure))
            return
        self._record.failed(failure)
        if not self._record.cut:
            self._write(self._encoder.write((Failed(failure=failure),)))
        self._break_off()

    def _break_off(self) -> None:
        """End as nothing whole ends."""
        self._reply.close()
        self._client.abort()
        self._passage.over()

    def _look_for_silence(self) -> None:
        """Send a sign of life if nothing was written for an interval; look again when the next could be due."""
        now, interval = self._passage.loop.time(), self._passage.interval
        due = self._last + interval
        if now >= due:
            due = now + interval
            if not self._record.cut and not self._client.paused:
                self._write(self._sign())
        self._timer = self._passage.loop.call_at(due, self._look_for_silence)

    def _sign(self) -> bytes:
        return self._encoder.write((Ping(),))


class EventStreamRelay(_StreamRelay[GuardedReader]):
    """The answer of a server of another dialect, or one whose bytes must change.

    A `recorder` stores what the client may strip of it.
    """

    _tells_events = True

    def __init__(
        self,
        passage: Sink,
        reply: UpstreamResponse,
        limits: RateLimits | None,
        stage: GuardedReader,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(passage, reply, limits, stage)
        self._recording = None if recorder is None else Recording(recorder)

    def _pass(self, data: bytes, events: Sequence[Event]) -> None:  # noqa: ARG002  they were read
        if not events:
            return
        ending, recording = events[-1], self._recording
        last = type(ending)
        if type(ending) is TextDelta and len(events) == 1:  # nearly all reads: nothing to be noted
            if recording is not None:
                recording.words(ending.text)
        else:
            self._telling.observe(events)
            if recording is not None:
                recording.look(events)
        self._write(self._encoder.write(events))
        if last is Failed:
            self._break_off()

    def _end(self, error: TransportError | None) -> None:
        events = self._stage.close() if error is None else self._stage.broken(error)
        if events:
            if self._recording is not None:
                self._recording.look(events)
            self._telling.observe(events)
            self._write(self._encoder.write(events))
            if type(events[-1]) is Failed:
                self._break_off()
                return
        self._telling.must_have_finished()
        data = b"".join(self._encoder.close())
        if not self._opened:
            self._write(b"")
        self._client.finish(data + self._telling.late_losses())
        self._passage.over()


class ByteStreamRelay(_StreamRelay[PassthroughMonitor]):
    """The answer of a server of the client's own dialect: its bytes, and somebody who watches."""

    _tells_events = False

    def __init__(
        self, passage: Sink, reply: UpstreamResponse, limits: RateLimits | None, stage: PassthroughMonitor
    ) -> None:
        super().__init__(passage, reply, limits, stage)
        self._ends = self._telling.framing.ends
        self._told = False
        """Whether the bytes have told of the answer's beginning."""

    def _pass(self, data: bytes, events: Sequence[Event]) -> None:
        failure = None
        if events:
            self._telling.observe(events)
            last = events[-1]
            if type(last) is Failed:
                failure = last.failure
                if failure.dialect is None:
                    raise FailureError(failure)
            if not self._told:
                self._told = any(type(event) is Started for event in events)
        self._record.cut = not data.endswith(self._ends) and self._stage.cut
        self._write(data)
        if failure is not None:  # it has been told; whoever waits for more would wait for nothing (U22)
            self._break_off()

    def _end(self, error: TransportError | None) -> None:
        completing, events = self._stage.close(None if error is None else unreachable(error))
        last = events[-1] if events else None
        if type(last) is Failed:
            self._telling.observe(events[:-1])
            raise FailureError(last.failure)
        self._telling.observe(events)
        if self._record.failure is not None:
            self._break_off()
            return
        if completing or not self._opened:
            self._write(completing)
        self._client.finish()
        self._passage.over()

    def _sign(self) -> bytes:
        alive = self._passage.dialect.alive
        return alive if self._told and alive else super()._sign()
