"""Records losses for finish reasons that a server left out or wrote outside its dialect, and what replaced them.

A whole body is a whole answer, and `[DONE]` ends a stream, whether or not a finish reason was sent before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import TOLERATED
from xenoglot.model.content import ToolCall
from xenoglot.model.events import Finished
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra
    from xenoglot.model.events import Event
    from xenoglot.model.response import Candidate, Response


def with_finish(response: Response, losses: Losses) -> Response:
    """Return a whole answer in which each candidate has a finish; each that had none is a loss."""
    for index, candidate in enumerate(response.candidates):
        _note_tolerated(candidate.extra, index, losses)
    if all(_is_told(candidate) for candidate in response.candidates):
        return response
    candidates = tuple(_finished(candidate) for candidate in response.candidates)
    for index, candidate in enumerate(candidates):
        if candidate.finish is not None:
            _note(candidate.finish, index, losses)
    return replace(response, candidates=candidates)


def note_finishes(events: Iterable[Event], losses: Losses) -> None:
    """Record a loss for each assumed finish among `events`, and for what was tolerated."""
    for event in events:
        if type(event) is Finished:
            _note(event.finish, event.candidate, losses)
            _note_tolerated(event.extra, event.candidate, losses)


class FinishLosses:
    """A stage that passes events on and records a loss for each assumed finish."""

    __slots__ = ("_losses",)

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Take one event and return it."""
        note_finishes((event,), self._losses)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return nothing: nothing is buffered."""
        return ()


def _is_told(candidate: Candidate) -> bool:
    return candidate.finish is not None and candidate.finish.raw != ""


def _finished(candidate: Candidate) -> Candidate:
    if _is_told(candidate):
        return candidate
    calls = any(isinstance(part, ToolCall) for part in candidate.content)
    return replace(candidate, finish=Finish(reason="tool_calls" if calls else "unknown", assumed=True))


def _note(finish: Finish, index: int, losses: Losses) -> None:
    if finish.assumed:
        why = f"the server sent no finish reason; `{finish.reason}` is assumed"
        losses.approximated(f"$.candidates[{index}]", "finish", why)


def _note_tolerated(extra: Extra | None, index: int, losses: Losses) -> None:
    if extra is not None:
        for what, why in extra.form.get(TOLERATED, {}).items():
            losses.approximated(f"$.candidates[{index}]", what, why)
