"""The loop as a generator, driven by hand: what it asks for when, and what the clock says to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tools.scripted_runs import answer, call, results
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Request
from xenoglot.tools.budget import Budget, RunSpend
from xenoglot.tools.effects import (
    Approve,
    CallModel,
    Cancelled,
    Execute,
    FinishedCall,
    ModelAnswer,
    ReadClock,
    ReportEvent,
)
from xenoglot.tools.loop import ToolLoop
from xenoglot.tools.run_options import RunOptions
from xenoglot.tools.tool import Approval, tool
from xenoglot.tools.tool_output import ToolOutput, as_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.response import Response
    from xenoglot.tools.result import RunResult

REQUEST = Request(model="m", messages=(Message(role="user", content=(Text(text="Go."),)),))


@tool(needs_approval=True)
def work(name: str) -> str:
    """Work."""
    return name


class Hand:
    """A driver whose clock is a list; it notes the effects."""

    def __init__(self, answers: list[ModelAnswer], times: Iterator[float | None]) -> None:
        self.effects: list[str] = []
        self.seconds: list[float | None] = []
        self._answers = iter(answers)
        self._times = times

    def drive(self, flow: ToolLoop) -> RunResult:
        """Return how it ends."""
        steps = flow.steps()
        reaction: object = None
        while True:
            try:
                effect = steps.send(reaction)
            except StopIteration as stop:
                result: RunResult = stop.value
                return result
            if not isinstance(effect, ReportEvent | ReadClock):
                self.effects.append(type(effect).__name__)
            match effect:
                case CallModel(seconds=seconds):
                    self.seconds.append(seconds)
                    reaction = next(self._answers)
                case Approve():
                    reaction = Approval(allowed=True)
                case Execute(calls=calls):
                    reaction = tuple(_output(one) for one in calls)
                case ReadClock():
                    now = next(self._times)
                    reaction = Cancelled() if now is None else now
                case ReportEvent():
                    reaction = None


def _output(one: object) -> ToolOutput:
    return one.output if isinstance(one, FinishedCall) else as_output("done")


def model_answer(response: Response) -> ModelAnswer:
    return ModelAnswer(response=response)


WORK = model_answer(answer(call("work", '{"name": "a"}')))


def test_what_is_asked_for_in_turn() -> None:
    hand = Hand([WORK, model_answer(answer("."))], iter([0.0] * 99))
    result = hand.drive(ToolLoop(REQUEST, [work], RunOptions()))
    assert hand.effects == ["CallModel", "Approve", "Execute", "CallModel"]
    assert (result.outcome, hand.seconds) == ("answered", [None, None])


@pytest.mark.parametrize(
    ("times", "effects", "ran"),
    [
        pytest.param([0.0, 9.0, 9.0, 9.0, 11.0], ["CallModel", "Approve", "Execute"], 1, id="tools"),
        pytest.param([0.0, 9.0, 9.0, 11.0], ["CallModel", "Approve", "Execute"], 0, id="approval"),
        pytest.param([0.0, 11.0, 11.0, 11.0], ["CallModel", "Execute"], 0, id="answer"),
        pytest.param([10.0], [], 0, id="from-the-beginning"),
    ],
)
def test_c_s4_the_budget_of_seconds(times: list[float], effects: list[str], ran: int) -> None:
    hand = Hand([WORK, model_answer(answer("."))], iter(times + [times[-1]] * 9))
    result = hand.drive(ToolLoop(REQUEST, [work], RunOptions(budget=Budget(seconds=10.0))))
    assert (result.outcome, hand.effects) == ("budget", effects)
    assert (result.reason, result.calls) == ("the budget of 10.0 seconds is spent", ran)
    assert len(results(result.messages)) == len(effects[:1])


def test_an_answer_has_the_seconds_that_are_left() -> None:
    hand = Hand([WORK, model_answer(answer("."))], iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    budget, spent = Budget(seconds=10.0), RunSpend(seconds=2.0)
    result = hand.drive(ToolLoop(REQUEST, [work], RunOptions(budget=budget, spent=spent)))
    assert hand.seconds == [7.0, 3.0]
    assert result.spent.seconds == 8.0


def test_an_answer_that_took_too_long_for_the_budget_is_no_failure() -> None:
    late = ModelAnswer(failure=Failure(kind="timeout", message="the answer did not come in time"))
    result = Hand([late], iter([0.0, 10.0])).drive(ToolLoop(REQUEST, [work], RunOptions(budget=Budget(seconds=10.0))))
    assert (result.outcome, result.failure) == ("budget", None)


@pytest.mark.parametrize("moment", range(5))
def test_a_run_may_be_cancelled_at_every_look_at_the_clock(moment: int) -> None:
    times: list[float | None] = [0.0] * moment
    hand = Hand([WORK, model_answer(answer("."))], iter([*times, None, None, None]))
    flow = ToolLoop(REQUEST, [work], RunOptions())
    result = hand.drive(flow)
    assert result.outcome == "cancelled"
    assert flow.messages == result.messages
    assert len(results(result.messages)) == (0 if moment < 2 else 1)


def test_a_driver_that_sends_nonsense_is_told_so() -> None:
    steps = ToolLoop(REQUEST, [], RunOptions()).steps()
    next(steps)
    with pytest.raises(TypeError, match="the driver of the tool loop sent a `str`"):
        steps.send("soon")
