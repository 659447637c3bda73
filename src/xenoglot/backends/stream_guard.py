"""Stages that decode an upstream's stream and turn every error in it into a failure that clients may see.

How an answer ends depends on what was read and on how its bytes ended. After the terminating event of the dialect it is
complete, however they end. After the finish reason alone it is complete if they end as HTTP ends a body; if the body
broke off, whatever followed is missing, and the answer failed. Without a reason it failed. A frame that the end of the
bytes cuts is read if it has data. So the events, and the bytes that pass untouched, never end without a reason.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.offload import LARGE, of_loop
from xenoglot.backends.remote.upstream_errors import cause_of, invalid_answer, unreachable
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.responses.answer_repair import note_finishes
from xenoglot.errors import WireError
from xenoglot.model.events import Failed, Finished

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.backends.http.client import TransportError
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure


def no_piece(_: bytes, /) -> Event | None:
    """Return `None`: what is read goes through more stages than one."""


class GuardedReader:
    """Decodes bytes to events, unreadable ones to a failure. `fit` makes a failure one that a client may see.

    `reading` is `stage`, or its first one. Finish reasons that the server did not send are recorded in `losses`.
    """

    __slots__ = ("_broken", "_for_client", "_losses", "_stage", "failed", "piece", "reading")

    def __init__(
        self, stage: Stage[bytes, Event], reading: StreamReader, fit: Callable[[Failure], Failure], losses: Losses
    ) -> None:
        self.failed = False
        """Whether nothing that follows counts."""
        self._broken: BaseException | None = None
        self._stage = stage
        self.reading = reading
        self.piece = reading.piece if stage is reading else no_piece
        """Reads a piece of text that is alone, as `StreamReader.piece`."""
        self._losses = losses
        self._for_client = fit

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        """Return the events of one read."""
        try:
            events = self._stage.feed(chunk)
        except WireError as error:
            self.failed = True
            return (Failed(failure=self._for_client(invalid_answer(error))),)
        if not events:
            return events
        last = events[-1]
        if type(last) is Finished:
            note_finishes(events, self._losses)
        if type(last) is not Failed:
            return events
        self.failed = True
        return (*events[:-1], Failed(failure=self._for_client(last.failure)))

    async def read(self, chunk: bytes, /) -> Sequence[Event]:
        """Return the events of one read; one that is large, or may end a large frame, is decoded in a thread.

        Raises:
            FailureError: too many large bodies are being decoded.
        """
        size = self.reading.held + len(chunk)
        return self.feed(chunk) if size < LARGE else await of_loop().run(size, partial(self.feed, chunk))

    def close(self) -> Sequence[Event]:
        """Return the events of the end of the stream."""
        try:
            events = self._stage.close()
        except WireError as error:
            return (Failed(failure=self._for_client(invalid_answer(error))),)
        if events and type(last := events[-1]) is Failed:
            return (*events[:-1], Failed(failure=self._for_client(last.failure)))
        return events

    def connection_lost(self, error: TransportError) -> Sequence[Event]:
        """Return the events of a broken connection: a failure, unless the answer was complete before."""
        self._broken = cause_of(error)
        events = self.close()
        return events if self.reading.terminated else (Failed(failure=self._for_client(unreachable(error))),)

    def cause(self) -> BaseException | None:
        """Return the error of the connection, if it broke off."""
        return self._broken


class PassthroughMonitor:
    """Sees the events in bytes of `dialect` that are passed on.

    A failure keeps its `dialect` only if the bytes contain it in a form for clients.
    """

    __slots__ = ("_broken", "_dialect", "_failed", "_for_client", "piece", "reading")

    def __init__(self, dialect: Dialect, fit: Callable[[Failure], Failure]) -> None:
        self.reading = StreamReader(dialect.framing, dialect.stream_decoder(), strict=True)
        self.piece = self.reading.piece
        """Reads a piece of text that is alone, as `StreamReader.piece`."""
        self._for_client = fit
        self._dialect = dialect
        self._broken = False
        self._failed = False

    @property
    def incomplete(self) -> bool:
        """Whether a frame is open: nothing may be added to the bytes so far."""
        return not self.reading.rests

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        """Return the events of one read."""
        return self._shown(self.reading.feed, chunk)

    async def read(self, chunk: bytes, /) -> Sequence[Event]:
        """Return the events of one read; one that is large, or may end a large frame, is decoded in a thread.

        Raises:
            FailureError: too many large bodies are being decoded.
        """
        size = self.reading.held + len(chunk)
        return self.feed(chunk) if size < LARGE else await of_loop().run(size, partial(self.feed, chunk))

    def close(self, failure: Failure | None = None) -> tuple[bytes, Sequence[Event]]:
        """Return the data that completes the stream, and the events of its end; `failure` is why it broke off.

        A reader that follows the standard drops a frame without an end, and waits for the terminating event.
        """
        if self._failed:
            return b"", ()
        completing = self._dialect.framing.resume if self.reading.is_open else b""
        events = self._shown(self.reading.close)
        if self.reading.terminated:
            return completing, events
        if failure is not None:
            return b"", (Failed(failure=self._for_client(failure)),)
        if events and type(events[-1]) is Failed:
            return b"", events
        return completing + self._dialect.terminator, events

    def _shown(self, read: Callable[..., Sequence[Event]], *arguments: bytes) -> Sequence[Event]:
        if self._broken:
            return ()
        try:
            events = read(*arguments)
        except WireError as error:
            self._broken = self._failed = True
            self.piece = no_piece
            return (Failed(failure=self._for_client(invalid_answer(error))),)
        if not events or type(failed := events[-1]) is not Failed:
            return events
        self._failed = True
        failure = self._for_client(failed.failure)
        if replace(failure, operator_message=None) != failed.failure:
            failure = replace(failure, dialect=None, raw_type=None, code=None)
        return (*events[:-1], Failed(failure=failure))
