"""Decodes the bytes of a stream to events: framing decoder, dialect decoder, and a shortcut past both.

Theory of operation. Events are read in the general way, frame by frame, until one has a piece of text and nothing
else. Then a decoder that can be foreseen gives a lesson, and what is learned from it (see
`codec.framing.event_template`) is looked for in all that follows, in the same read and in those after it, for as long
as the framing holds nothing back and the decoder is in the same state; whatever differs is fed to the decoders as ever.
What is learned is tested before it is used, so the fast path returns nothing that the general path would not:
`tests/laws/test_reading.py` holds it to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from xenoglot.codec.framing.event_template import EventTemplate, derive_template
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.stage import Stage
from xenoglot.errors import WireError
from xenoglot.model.events import PIECES, Event
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.event_template import TemplateHint
    from xenoglot.codec.framing.formats import Framing

_LESSONS = 8
"""How often something may be learned in vain before no more is."""

_STEPS = 32
"""How many frames of a read are examined one by one; the rest takes the general way at once."""

_MOST_BYTES = 1024 * 1024
"""A read beyond this is read in the general way, which bounds the size of events."""


class StreamDecoder(Stage[ServerSentEvent, Event], Protocol):
    """A stage from the frames of one dialect to events."""

    @property
    def terminated(self) -> bool:
        """Whether the event that terminates a stream of the dialect was read after a complete answer.

        `False` before it, after a failure, and always in a dialect whose streams have no terminating event.
        """
        ...


class TemplateSource(Protocol):
    """A stream decoder that can describe its next event, so that `EventTemplate` applies."""

    @property
    def state(self) -> object:
        """What compares equal for as long as the same bytes mean the same."""
        ...

    def lesson(self, event: ServerSentEvent, /) -> TemplateHint | None:
        """Return how to read events that differ from the last one, `event`, only in a piece of text."""
        ...


class StreamReader:
    """A stage from bytes, split anywhere, to events.

    `renaming` sees the events that are no pieces of text, and makes one of each. `strict` is for bytes that are passed
    on: they are read as any client of theirs reads them.
    """

    __slots__ = (
        "_decoder",
        "_end",
        "_foreseeable",
        "_framing",
        "_lessons",
        "_likely",
        "_make_framing",
        "_problem",
        "_renaming",
        "_rests",
        "_state",
        "held",
    )

    def __init__(
        self,
        framing: Framing,
        decoder: StreamDecoder,
        renaming: Stage[Event, Event] | None = None,
        *,
        strict: bool = False,
    ) -> None:
        tolerant = None if strict else framing.tolerant_decoder
        self._make_framing = tolerant or framing.decoder
        self._framing = self._make_framing()
        self._end = framing.ends[0] if framing.ends else b""  # of a frame, as nearly all servers write it
        self._decoder = decoder
        self._renaming = renaming
        self._foreseeable = _foreseeable(decoder) if framing.ends else None
        self._rests = False  # whether the framing holds nothing back
        self._state: object = None  # of the decoder, as it was when something was learned
        self._likely: EventTemplate | None = None
        self._lessons = _LESSONS
        self._problem: WireError | None = None  # of what follows the events that were returned
        self.held = 0
        """Bytes of the frame that is open: they are decoded together with those that complete it."""

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        """Take bytes as they came from the wire; return the events they completed.

        Raises:
            WireError: an event is larger than the framing allows, or invalid. If there are events before it in the
                same chunk, they are returned, and the next call raises it.
        """
        events: list[Event] = []
        at = 0
        if self._likely is not None and self._rests and len(chunk) <= _MOST_BYTES:
            at = self._likely.read(chunk, 0, events)
            if at == len(chunk):
                return events
        try:
            self._step(chunk, at, events)
        except WireError as problem:
            self._likely, self._rests, self._problem = None, False, problem
            if not events:
                raise
        return events

    def piece(self, chunk: bytes, /) -> Event | None:
        """Return the piece of text that `chunk` is and nothing else; `None`: nothing was read, and it has to be fed.

        The caller bounds the size of `chunk`.
        """
        likely = self._likely
        return None if likely is None or not self._rests else likely.match(chunk)

    def close(self) -> Sequence[Event]:
        """End the input; return what was buffered, and the failure if the stream lacks its end.

        Raises:
            WireError: as `feed`.
        """
        if self._problem is not None:
            raise self._problem
        events: list[Event] = []
        for frame in self._framing.close():
            events += self._decoder.feed(frame)
        return self._renamed([*events, *self._decoder.close()])

    @property
    def rests(self) -> bool:
        """Whether no frame is open: what is added to the bytes read so far begins a frame."""
        return self._framing.rests

    @property
    def is_open(self) -> bool:
        """Whether the bytes, if they end here, cut a frame."""
        return self._framing.is_open

    @property
    def terminated(self) -> bool:
        """Whether the terminating event was read; see `StreamDecoder`."""
        return self._decoder.terminated

    def _step(self, chunk: bytes, at: int, events: list[Event]) -> None:
        """Add to `events` those of `chunk` from `at` on, if it is not as expected, or nothing is expected."""
        size = len(chunk)
        teachable = self._foreseeable is not None and (self._likely is not None or self._lessons)
        for _ in range(_STEPS if teachable and size <= _MOST_BYTES else 0):
            end = (chunk.find(self._end, at) + 1 or size) + len(self._end) - 1
            self._read(chunk[at:end], events)
            at = min(end, size)
            if self._likely is not None and self._rests:
                at = self._likely.read(chunk, at, events)
            if at == size:
                return
        self._read(chunk[at:] if at else chunk, events)

    def _read(self, chunk: bytes, events: list[Event]) -> None:
        """Read in the general way; add to `events`."""
        if self._problem is not None:
            raise self._problem
        last: Sequence[Event] = ()
        frames = self._framing.feed(chunk)
        for frame in frames:
            last = self._decoder.feed(frame)
            events += last if self._renaming is None else self._renamed(last)
        self.held = self._framing.held
        if self._foreseeable is not None:
            rested, self._rests = self._rests, self._framing.rests
            if self._state != self._foreseeable.state:
                self._forget(self._foreseeable.state)
            alone = rested and self._rests and len(frames) == len(last) == 1
            if alone and self._lessons and isinstance(last[0], PIECES):
                self._study(self._foreseeable, frames[0], chunk)

    def _renamed(self, events: Sequence[Event]) -> Sequence[Event]:
        renaming = self._renaming
        if renaming is None:
            return events
        return [made for event in events for made in ((event,) if isinstance(event, PIECES) else renaming.feed(event))]

    def _study(self, decoder: TemplateSource, event: ServerSentEvent, frame: bytes) -> None:
        """Learn from an event and its frame."""
        lesson = decoder.lesson(event)
        before, found, after = frame.rpartition(event.data)
        if lesson is not None and found and after:
            self._forget(decoder.state)
            self._lessons -= 1
            self._likely = self._learned(event, before, after, lesson)

    def _forget(self, state: object) -> None:
        """Expect nothing any more; what was of use may be learned again."""
        if self._likely is not None and self._likely.used:
            self._lessons = _LESSONS
        self._likely, self._state = None, state

    def _learned(
        self, event: ServerSentEvent, before: bytes, after: bytes, lesson: TemplateHint
    ) -> EventTemplate | None:
        learned = derive_template(before, event.data, after, lesson)
        if learned is None:
            return None
        likely, other = learned
        framing = self._make_framing()
        framed = [(frame.data, frame.event) for frame in framing.feed(before + other + after)]
        return likely if framing.rests and framed == [(other, event.event)] else None


@shortcut("templates")
def _foreseeable(decoder: StreamDecoder) -> TemplateSource | None:
    """Return a decoder that gives lessons; `None` for any other."""
    return cast("TemplateSource", decoder) if hasattr(decoder, "lesson") else None
