"""Encodes the events of an answer to the bytes of a stream: envelope, dialect encoder, framing encoder.

Most events are pieces of text that grow the block that is open. An encoder that has the frame of such a piece ready but
for its text gives it in one step (`frame`); all other events go from stage to stage.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Protocol, cast

from xenoglot.codec.framing.sse import SSEEncoder
from xenoglot.codec.stage import Pipeline
from xenoglot.model.events import ArgumentsDelta, ReasoningDelta, TextDelta
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.framing.formats import Framing
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event, Piece


class Framer(Protocol):
    """A stream encoder that writes frames of server-sent events itself."""

    def frame(self, piece: Piece, /) -> bytes | None:
        """Take an event that is its text and nothing else, as `feed` does; return what `feed` makes of it, as bytes.

        `None`: it was not accepted, and has to be fed.
        """
        ...


class RunFramer(Protocol):
    """One that writes the frames of many text deltas at once."""

    def frames(self, texts: Sequence[str], /) -> bytes | None:
        """Take text deltas that are these texts and nothing else; return their frames. `None`: as above."""
        ...


_MANY = 4
"""Events that are looked at for runs of text."""


class StreamWriter:
    """A stage from events to bytes. `identify` passes text deltas unchanged.

    `count` is given the text of pieces whose frames were ready: they do not come by the stages of `identify`. `frame`
    gives the frame of a piece that is its text and nothing else; the caller has its text counted before the next call
    of another method.
    """

    __slots__ = ("_frames", "_stages", "count", "frame")

    def __init__(
        self,
        identify: Stage[Event, Event],
        encoder: Stage[Event, ServerSentEvent],
        framing: Framing,
        count: Callable[[str], None] | None = None,
    ) -> None:
        self.count = count
        self._stages = Pipeline(identify, encoder, framing.encoder())
        self._frames = _ready_runs(encoder, framing)
        self.frame: Callable[[Piece], bytes | None] = _ready_frames(encoder, framing) or _none

    def feed(self, event: Event, /) -> Sequence[bytes]:
        """Take one event; return its frames."""
        frames = self.write((event,))
        return (frames,) if frames else ()

    def close(self) -> Sequence[bytes]:
        """Return the frames of the end."""
        return self._stages.close()

    def write(self, batch: Sequence[Event]) -> bytes:
        """Take the events of one read; return what is to be written, which may be nothing."""
        take = self.frame
        if len(batch) == 1 and type(alone := batch[0]) is TextDelta and not alone.logprobs:
            frame = take(alone)
            if frame is not None:  # as of nearly every read that comes by itself
                if self.count is not None:
                    self.count(alone.text)
                return frame
        frames: list[bytes] = []
        texts: list[str] = []
        if self._frames is None or len(batch) < _MANY:
            self._write(batch, frames, texts)
        else:
            for kind, alike in groupby(batch, type):
                run = [*alike]
                if kind is not TextDelta or not self._write_run(cast("list[TextDelta]", run), frames, texts):
                    self._write(run, frames, texts)
        self._take_texts(texts)
        return frames[0] if len(frames) == 1 else b"".join(frames)

    def _write(self, batch: Sequence[Event], frames: list[bytes], texts: list[str]) -> None:
        """Add the frames of events one by one; `texts` are those of pieces that are to be counted."""
        take = self.frame
        for event in batch:
            frame = None
            if type(event) is TextDelta:
                frame = None if event.logprobs else take(event)
            elif type(event) is ArgumentsDelta or (type(event) is ReasoningDelta and event.summary is None):
                frame = take(event)
            if frame is not None:
                frames.append(frame)
                texts.append(event.text)  # type: ignore[union-attr]  # only pieces have ready frames
                continue
            if texts:
                self._take_texts(texts)
            frames += self._stages.feed(event)

    def _write_run(self, run: Sequence[TextDelta], frames: list[bytes], texts: list[str]) -> bool:
        """Do the same for text deltas at once; not if one has more than its text, or the encoder takes none."""
        if self._frames is None or [piece for piece in run if piece.logprobs or piece.candidate]:
            return False
        said = [piece.text for piece in run]
        written = self._frames(said)
        if written is None:
            return False
        frames.append(written)
        texts += said
        return True

    def _take_texts(self, texts: list[str]) -> None:
        if texts and self.count is not None:
            self.count("".join(texts))
        texts.clear()


@shortcut("frames")
def _ready_runs(
    encoder: Stage[Event, ServerSentEvent], framing: Framing
) -> Callable[[Sequence[str]], bytes | None] | None:
    """Return what makes the frames of many texts at once; `None` if the encoder has nothing that does."""
    framed = framing.encoder is SSEEncoder and hasattr(encoder, "frames")
    return cast("RunFramer", encoder).frames if framed else None


@shortcut("frames")
def _ready_frames(encoder: Stage[Event, ServerSentEvent], framing: Framing) -> Callable[[Piece], bytes | None] | None:
    """Return what makes the frame of a piece; `None` if the encoder, or the framing, has none ready."""
    framed = framing.encoder is SSEEncoder and hasattr(encoder, "frame")
    return cast("Framer", encoder).frame if framed else None


def _none(_: Piece) -> None:
    """Stand for an encoder that has no frames ready."""
