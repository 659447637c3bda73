"""Result of a run of the tool loop."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.codec.loss import Loss
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message
from xenoglot.model.response import Response, Usage
from xenoglot.model.short_repr import described
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
    """Result of a run of the tool loop; `print(result)` prints the text of the last answer.

    Args:
        outcome: `"answered"`, `"limit"`, `"budget"`, `"cancelled"`, `"refused"` or `"failed"`.
        reason: The outcome in words.
        response: The last answer, with all its pieces joined. `None` if there is none.
        messages: The given messages and those of the run, compacted if necessary, with a result for each call. They can
            be sent again unchanged.
        rounds: Answers of the model.
        calls: Tool calls that ran.
        usage: The sum of the reported token counts; a count that no answer reported is `None`.
        spent: The same with estimates for what was not reported. Pass it to the next run to continue the budget.
        failure: Why there is no answer, for the outcome `"failed"`.
        losses: Features that the upstream does not support.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> result = xenoglot.Client(Callable(lambda request: "Hello!")).run("Hi", tools=[])
        >>> result.outcome, result.text, len(result.messages)
        ('answered', 'Hello!', 2)
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

    def __str__(self) -> str:
        """Return the text of the last answer."""
        return self.text

    def __repr__(self) -> str:
        facts = {"rounds": self.rounds, "calls": self.calls, "usage": self.usage, "cost": self.cost}
        return described(self, outcome=self.outcome, reason=self.reason, text=self.text, **facts)

    @property
    def text(self) -> str:
        """The text of the last answer."""
        if self.response is None or not self.response.candidates:
            return ""
        return "".join(part.text for part in self.response.candidates[0].content if isinstance(part, Text))

    @property
    def cost(self) -> float | None:
        """The cost, in the currency of the prices; `None` if unknown."""
        return self.spent.cost
