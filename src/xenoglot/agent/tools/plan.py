"""The tool `plan`: a model records the steps of its work."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from xenoglot.model.content import Text
from xenoglot.tools.tool import ToolError, ToolOutput

MOST_STEPS = 50
_SIGNS = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class Step(Struct, frozen=True):
    """A step of the work, in a few words, and how far it is."""

    step: str
    status: Literal["open", "doing", "done"] = "open"


class PlanTool:
    """The tool; `steps` is the current plan. The conversation contains it, so it is not stored elsewhere."""

    def __init__(self) -> None:
        self.steps: tuple[Step, ...] = ()

    def plan(self, steps: list[Step]) -> ToolOutput:
        """Write down the steps of a longer task, and how far each is. Give the whole list each time; keep it short.

        Args:
            steps: All steps, in order. Their status is `open`, `doing` or `done`.
        """
        if len(steps) > MOST_STEPS:
            raise ToolError(f"`steps`: found {len(steps)}; expected at most {MOST_STEPS}")
        self.steps = tuple(steps)
        text = "\n".join(f"{_SIGNS[step.status]} {step.step}" for step in steps)
        data = [{"step": step.step, "status": step.status} for step in steps]
        return ToolOutput(content=(Text(text=text or "[no plan]"),), data={"steps": data})
