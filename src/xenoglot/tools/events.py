"""What happens in a run of the tool loop, as it happens: for whoever looks on, draws it or writes it down."""

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


class RoundStarted(Struct, frozen=True, kw_only=True):
    """The model is asked; `round` counts from 1."""

    round: int


class ModelEvent(Struct, frozen=True, kw_only=True):
    """The answer of this round grows."""

    event: Event


class RoundEnded(Struct, frozen=True, kw_only=True):
    """The answer is whole."""

    round: int
    response: Response


class AnswerAborted(Struct, frozen=True, kw_only=True):
    """The answer broke off, and is asked for again: what came of it is void, for nothing was done about it."""

    round: int
    failure: Failure


class Continued(Struct, frozen=True, kw_only=True):
    """The answer was not done, and the model is asked to go on: the next round is more of the same turn."""

    round: int
    reason: Literal["length", "pause", "compaction"]


class MessagesAdded(Struct, frozen=True, kw_only=True):
    """Whole turns join the transcript."""

    messages: tuple[Message, ...]


class Compacted(Struct, frozen=True, kw_only=True):
    """The transcript was too long, and is `messages` now; `before` and `after` are about its tokens."""

    before: int
    after: int
    messages: tuple[Message, ...]


class ApprovalRequested(Struct, frozen=True, kw_only=True):
    """Somebody is asked whether a call may run."""

    call: ToolCall


class ApprovalReceived(Struct, frozen=True, kw_only=True):
    """That is what was said."""

    call: ToolCall
    approval: Approval


class CallStarted(Struct, frozen=True, kw_only=True):
    """A tool is called."""

    call: ToolCall
    round: int


class CallProgress(Struct, frozen=True, kw_only=True):
    """A tool says how far it is."""

    call_id: str
    text: str


class CallEnded(Struct, frozen=True, kw_only=True):
    """A call has its result, also one that was not run: then it was not started either, and took no seconds."""

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
