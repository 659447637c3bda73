"""Effects of the tool loop and their results: its only interface to the world."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from xenoglot.codec.loss import Loss
from xenoglot.model.content import ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Response
from xenoglot.tools.events import RunEvent
from xenoglot.tools.tool import LocalTool
from xenoglot.tools.tool_output import RESULT_LIMIT, ToolOutput


class CallModel(Struct, frozen=True, kw_only=True):
    """Call the model, for at most `seconds`; report its events as `ModelEvent`, unless the call is `internal`.

    `attempts` is how often the answer was truncated before, `wait` the seconds to wait first. The result is
    `ModelAnswer`.
    """

    request: Request
    seconds: float | None = None
    internal: bool = False
    attempts: int = 0
    wait: float = 0.0


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """The answer; or the failure, with the part of the answer received before it.

    `retry_after` is the seconds until a truncated answer may be requested again; `None`: not at all.
    """

    response: Response | None = None
    failure: Failure | None = None
    losses: tuple[Loss, ...] = ()
    cancelled: bool = False
    retry_after: float | None = None


class Approve(Struct, frozen=True, kw_only=True):
    """Request approval of a call. The result is an `Approval`."""

    call: ToolCall


class PreparedCall(Struct, frozen=True, kw_only=True):
    """A call that is ready to run, for at most `seconds`; `changed` are arguments that differ from the model's."""

    call: ToolCall
    tool: LocalTool
    arguments: JSONObject
    seconds: float | None = None
    changed: bool = False


class FinishedCall(Struct, frozen=True, kw_only=True):
    """A call that does not run, because it already has a result."""

    call: ToolCall
    output: ToolOutput


class Execute(Struct, frozen=True, kw_only=True):
    """Run these calls in parallel, and report each; the result is a tuple of `ToolOutput`, one for each call.

    A result has at most `limit` characters. The result has the same form if the run is cancelled: unfinished calls are
    marked so.
    """

    calls: tuple[PreparedCall | FinishedCall, ...]
    round: int
    limit: int = RESULT_LIMIT


class ReportEvent(Struct, frozen=True, kw_only=True):
    """Report an event to the observer. The result is `None`."""

    event: RunEvent


class ReadClock(Struct, frozen=True, kw_only=True):
    """The result is the seconds since the start of the run."""


class Cancelled(Struct, frozen=True, kw_only=True):
    """The result of `Approve` and `ReadClock` if the run is cancelled."""


Effect: TypeAlias = CallModel | Approve | Execute | ReportEvent | ReadClock
