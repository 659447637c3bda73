"""Events of a run of the tool loop, for observers, displays and logs; the order in which parallel calls end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.content import ToolCall
from xenoglot.model.events import Event
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message
from xenoglot.model.response import Response
from xenoglot.moved_modules import renamed
from xenoglot.tools.result import RunResult
from xenoglot.tools.tool import Approval
from xenoglot.tools.tool_output import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Sequence


class RoundStarted(Struct, frozen=True, kw_only=True):
    """The model is called; `round` counts from 1."""

    round: int


class ModelEvent(Struct, frozen=True, kw_only=True):
    """The answer of this round grows."""

    event: Event


class RoundEnded(Struct, frozen=True, kw_only=True):
    """The answer is complete."""

    round: int
    response: Response


class AnswerAborted(Struct, frozen=True, kw_only=True):
    """The answer was truncated and is requested again: discard what was received, no part of it was used."""

    round: int
    failure: Failure


class Continued(Struct, frozen=True, kw_only=True):
    """The answer was incomplete and is continued: the next round is part of the same message."""

    round: int
    reason: Literal["length", "pause", "compaction"]


class MessagesAdded(Struct, frozen=True, kw_only=True):
    """Complete messages were added to the transcript."""

    messages: tuple[Message, ...]


class Compacted(Struct, frozen=True, kw_only=True):
    """The transcript was too long, and is `messages` now; `before` and `after` are about its tokens."""

    before: int
    after: int
    messages: tuple[Message, ...]


class ApprovalRequested(Struct, frozen=True, kw_only=True):
    """Approval of a call is requested."""

    call: ToolCall


class ApprovalReceived(Struct, frozen=True, kw_only=True):
    """The answer to an approval request."""

    call: ToolCall
    approval: Approval


class CallStarted(Struct, frozen=True, kw_only=True):
    """A tool is called."""

    call: ToolCall
    round: int


class CallProgress(Struct, frozen=True, kw_only=True):
    """Progress reported by a tool."""

    call_id: str
    text: str


class CallEnded(Struct, frozen=True, kw_only=True):
    """A call has its result. A call that was not run has an end without a start, and no seconds."""

    call: ToolCall
    output: ToolOutput
    seconds: float = 0.0


class RunEnded(Struct, frozen=True, kw_only=True):
    """The run is over."""

    result: RunResult


RunEvent: TypeAlias = (
    RoundStarted
    | ModelEvent
    | RoundEnded
    | AnswerAborted
    | Continued
    | MessagesAdded
    | Compacted
    | ApprovalRequested
    | ApprovalReceived
    | CallStarted
    | CallProgress
    | CallEnded
    | RunEnded
)


if not TYPE_CHECKING:  # type checkers report the old names

    def __getattr__(name: str) -> object:
        """Return what an old name is today."""
        return renamed(__name__, name)


Order: TypeAlias = Literal["call", "result"]
"""The order of the calls in the answer, or of their results."""


class EventOrder:
    """A stage over the events of parallel calls: holds each end back until its turn."""

    def __init__(self, calls: Sequence[ToolCall], order: Order) -> None:
        self._waiting = [call.id for call in calls]
        self._order = order
        self._pending: dict[str, CallEnded] = {}

    def feed(self, event: RunEvent, /) -> Sequence[RunEvent]:
        """Return the events to report now."""
        if self._order == "result" or not isinstance(event, CallEnded):
            return (event,)
        self._pending[event.call.id] = event
        told: list[RunEvent] = []
        while self._waiting and (ended := self._pending.pop(self._waiting[0], None)) is not None:
            del self._waiting[0]
            told.append(ended)
        return told

    def close(self) -> Sequence[RunEvent]:
        """Return the events still held back."""
        held, self._pending = self._pending, {}
        return tuple(held[name] for name in self._waiting if name in held)
