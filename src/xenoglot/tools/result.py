"""How a run of the tool loop ended, and what it leaves behind."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.codec.loss import Loss
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message
from xenoglot.model.response import Response, Usage
from xenoglot.tools.budget import RunSpend

Outcome: TypeAlias = Literal[
    "answered",  # the model was done
    "limit",  # the rounds ran out, or the answer was cut off; calls that were asked for then did not run
    "budget",  # a budget is spent
    "cancelled",  # somebody stopped it
    "refused",  # the model, or a filter, declined
    "failed",  # no answer came; see `failure`
]


class RunResult(Struct, frozen=True, kw_only=True):
    """What a run leaves: how it ended and why, in words.

    `response` is the last answer; one that came in several pieces is whole in it. `messages` can be sent again as they
    are: what was given and what was added to it (compacted, where it had to be), a result for each call. `rounds` are
    the answers of the model, `calls` those that ran. `usage` is the sum over the answers, `None` where none of them
    said anything. `spent` is the same with estimates where nothing was said; a run that goes on from here is given it.
    """

    outcome: Outcome
    reason: str
    response: Response | None = None
    messages: tuple[Message, ...] = ()
    rounds: int = 0
    calls: int = 0
    usage: Usage = Usage()
    spent: RunSpend = RunSpend()
    failure: Failure | None = None
    losses: tuple[Loss, ...] = ()

    @property
    def text(self) -> str:
        """The words of the last answer."""
        if self.response is None or not self.response.candidates:
            return ""
        return "".join(part.text for part in self.response.candidates[0].content if isinstance(part, Text))

    @property
    def cost(self) -> float | None:
        """What it cost, in the currency of the prices; `None` where that is not known."""
        return self.spent.cost
