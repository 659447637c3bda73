"""What the tool loop wants done, and what it is told when that is done: all it has to do with the world."""

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
    """Ask the model, for so many seconds at most; tell what comes as `ModelEvent`, unless it is `internal`.

    `attempts` is how often the answer has broken off before, `wait` the seconds to wait for that first. The reaction is
    `ModelAnswer`.
    """

    request: Request
    seconds: float | None = None
    internal: bool = False
    attempts: int = 0
    wait: float = 0.0


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """The answer; or why there is none, with what came of it before.

    `retry_after` are the seconds after which one that broke off may be asked for again; `None`: it may not.
    """

    response: Response | None = None
    failure: Failure | None = None
    losses: tuple[Loss, ...] = ()
    cancelled: bool = False
    retry_after: float | None = None


class Approve(Struct, frozen=True, kw_only=True):
    """Ask somebody whether the call may run. The reaction is an `Approval`."""

    call: ToolCall


class PreparedCall(Struct, frozen=True, kw_only=True):
    """A call that is to run, for so many seconds at most; `changed` are arguments that are not those of the model."""

    call: ToolCall
    tool: LocalTool
    arguments: JSONObject
    seconds: float | None = None
    changed: bool = False


class FinishedCall(Struct, frozen=True, kw_only=True):
    """A call that is not to run: its result is there."""

    call: ToolCall
    output: ToolOutput


class Execute(Struct, frozen=True, kw_only=True):
    """Run these calls beside each other, and tell of each; the reaction is a tuple of `ToolOutput`, one for each.

    A result has at most `limit` characters. The reaction is the same where the run is cancelled: what was not done
    by then says so.
    """

    calls: tuple[PreparedCall | FinishedCall, ...]
    round: int
    limit: int = RESULT_LIMIT


class ReportEvent(Struct, frozen=True, kw_only=True):
    """Tell whoever looks on. The reaction is `None`."""

    event: RunEvent


class ReadClock(Struct, frozen=True, kw_only=True):
    """The reaction is how many seconds the run has taken."""


class Cancelled(Struct, frozen=True, kw_only=True):
    """The reaction to `Approve` and `ReadClock` where the run is cancelled."""


Effect: TypeAlias = CallModel | Approve | Execute | ReportEvent | ReadClock
