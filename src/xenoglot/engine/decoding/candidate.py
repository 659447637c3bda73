"""Stages that convert the runtime's text of one candidate to events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Logprob
    from xenoglot.model.events import Event
    from xenoglot.model.response import Finish


class CandidateStage(Protocol):
    """A stage from the runtime's text to the events of one candidate, without its `Finished`."""

    def feed(self, text: str, logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Add text; return the new events."""
        ...

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the candidate for the reason `finish`; return the events held back, and the finish reason."""
        ...


class PlainTextStage:
    """A stage that emits text unchanged, as one text block."""

    def __init__(self, candidate: int) -> None:
        self._candidate = candidate
        self._open = False

    def feed(self, text: str, logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Return a delta; before the first, the start of the block."""
        if not text and not logprobs:
            return ()
        started = () if self._open else (BlockStarted(part=Text(text=""), candidate=self._candidate),)
        self._open = True
        return (*started, TextDelta(text=text, logprobs=logprobs, candidate=self._candidate))

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the block, if there is one."""
        return (BlockEnded(candidate=self._candidate),) if self._open else (), finish
