"""Usage counter of one run, and limits of its next answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.content import Reasoning
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Usage
from xenoglot.policy.token_estimate import estimate
from xenoglot.tools.budget import (
    Next,
    add_answer,
    add_spend,
    model_call_refusal,
    seconds_left,
    sum_usage,
    tokens_left,
    tool_call_refusal,
)
from xenoglot.tools.effects import FinishedCall, PreparedCall
from xenoglot.tools.tool_output import failed

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.response import Response
    from xenoglot.tools.budget import RunSpend
    from xenoglot.tools.run_options import RunOptions


LONGEST_ANSWER: Final = 4096
"""Tokens that every server accepts as `max_tokens`: many refuse more than their model supports."""

_SAMPLE: Final = 1000
"""Tokens used to compute the price of one."""


class SpendCounter:
    """Counts usage; `spent` includes estimates for what servers do not report, `usage` does not."""

    def __init__(self, rules: RunOptions) -> None:
        self.spent = rules.spent
        self.usage = Usage()
        self._budget = rules.budget
        self._price = rules.price
        self._before = rules.spent.seconds

    @property
    def seconds_left(self) -> float | None:
        """The seconds that the budget leaves; `None` without a limit."""
        return seconds_left(self._budget, self.spent)

    def tick(self, seconds: float) -> None:
        """Set how long the run has taken."""
        self.spent = replace(self.spent, seconds=self._before + seconds)

    def count(self, request: Request, response: Response) -> None:
        """Note one answer."""
        self.usage = sum_usage(self.usage, response.usage)
        whole = _with_estimates(response.usage, request, response)
        tier = response.service_tier
        cost = None if response.model is None else self._cost(whole, response.model, tier)
        self.spent = add_answer(self.spent, whole, self._cost(whole, request.model, tier) if cost is None else cost)

    def call(self) -> None:
        """Note one call of a tool."""
        self.spent = replace(self.spent, calls=self.spent.calls + 1)

    def spend(self, more: RunSpend) -> None:
        """Add usage from outside this run."""
        self.spent = add_spend(self.spent, more)

    def tool_call_refusal(self, running: int) -> str | None:
        """Return why no tool may be called in addition to `running` others, or `None`."""
        return tool_call_refusal(self._budget, replace(self.spent, calls=self.spent.calls + running))

    def is_in_time(self, call: PreparedCall | FinishedCall) -> PreparedCall | FinishedCall:
        """Return the call with its time limit within the budget; without time left, its result is an error."""
        left = self.seconds_left
        if left is None or isinstance(call, FinishedCall):
            return call
        if left == 0:
            return FinishedCall(call=call.call, output=failed(f"not run: {self.tool_call_refusal(0)}"))
        return replace(call, seconds=left if call.seconds is None else min(left, call.seconds))

    def size_request(self, request: Request) -> Request | str:
        """Return the request with `max_tokens` within the budget; if none are left, the reason."""
        coming = self._next(estimate(request), request.model)
        if isinstance(coming, str):
            return coming
        if (reason := model_call_refusal(self._budget, self.spent, coming)) is not None:
            return reason
        most = tokens_left(self._budget, self.spent, coming)
        asked = request.sampling.max_tokens
        if most is None or most >= (LONGEST_ANSWER if asked is None else asked):
            return request
        return replace(request, sampling=replace(request.sampling, max_tokens=most))

    def _next(self, prompt: int, model: str) -> Next | str:
        """Return a lower bound of the next call; limited counts that cannot be known get an estimate."""
        if self._budget.cost is None:
            return Next(input_tokens=prompt)
        least = self._cost(Usage(input_tokens=prompt, output_tokens=0), model)
        more = self._cost(Usage(input_tokens=prompt, output_tokens=_SAMPLE), model)
        if least is None or more is None:
            return f"there is a budget for the cost, and the price of the model `{model}` is not known"
        return Next(input_tokens=prompt, cost=least, token_cost=(more - least) / _SAMPLE)

    def _cost(self, usage: Usage, model: str, tier: str | None = None) -> float | None:
        return None if self._price is None else self._price(usage, model, tier)


def _with_estimates(usage: Usage | None, request: Request, response: Response) -> Usage:
    """Return the usage with estimates of limited counts that were not reported."""
    told = usage or Usage()
    content = response.candidates[0].content if response.candidates else ()
    thoughts = tuple(part for part in content if isinstance(part, Reasoning))
    return replace(
        told,
        input_tokens=estimate(request) if told.input_tokens is None else told.input_tokens,
        output_tokens=_written_tokens(content) if told.output_tokens is None else told.output_tokens,
        reasoning=_written_tokens(thoughts) if told.reasoning is None and thoughts else told.reasoning,
        estimated=told.estimated or told.input_tokens is None or told.output_tokens is None,
    )


def _written_tokens(content: tuple[Part, ...]) -> int:
    """Return an estimate of the tokens of what a model wrote."""
    return estimate(Request(model="", messages=(Message(role="assistant", content=content),)))
