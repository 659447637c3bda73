"""Budgets of a run: limits, usage so far, and whether enough is left for the next call. Pure.

Usage that a server does not report is estimated, as is the next prompt: a run rather ends early than exceeds its
budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.errors import ConfigurationError
from xenoglot.model.response import Usage
from xenoglot.model.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUMS: Final = tuple(name for name in Usage.__struct_fields__ if name not in ("estimated", "extra"))
_COUNTS: Final = ("input_tokens", "output_tokens", "reasoning_tokens", "calls", "model_calls")


class Budget(Struct, frozen=True, kw_only=True):
    """Limits of a run of the tool loop; `None` is no limit. They are checked before each call of the model or a tool.

    Args:
        input_tokens: Tokens of all prompts.
        output_tokens: Tokens of all answers.
        total_tokens: Tokens of all prompts and answers.
        reasoning_tokens: Tokens of reasoning in all answers.
        cost: Cost of all answers, in the currency of the client's prices.
        calls: Tool calls.
        model_calls: Calls of the model.
        seconds: Seconds since the start of the run.

    Raises:
        ConfigurationError: A limit is negative or not a number.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> client = xenoglot.Client(Callable(lambda request: "Hello!"))
        >>> client.run("Hi", tools=[], budget=xenoglot.Budget(model_calls=0)).outcome
        'budget'
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    calls: int | None = None
    model_calls: int | None = None
    seconds: float | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise ConfigurationError(f"`budget.{name}`: found {value}; expected 0 or more, or `None`")


class RunSpend(Struct, frozen=True, kw_only=True):
    """Usage of a run; `cost` is `None` if an answer has no known price."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = 0.0
    calls: int = 0
    model_calls: int = 0
    seconds: float = 0.0

    __repr__ = short_repr

    @property
    def total_tokens(self) -> int:
        """Prompts and answers together."""
        return self.input_tokens + self.output_tokens


class Next(Struct, frozen=True, kw_only=True):
    """Lower bound of the next model call: tokens and cost of its prompt, and the cost of each token of the answer."""

    input_tokens: int = 0
    cost: float = 0.0
    token_cost: float = 0.0


def add_answer(spent: RunSpend, usage: Usage, cost: float | None) -> RunSpend:
    """Return the usage with one more answer; `usage` has every count that the budget limits."""
    return replace(
        spent,
        input_tokens=spent.input_tokens + (usage.input_tokens or 0),
        output_tokens=spent.output_tokens + (usage.output_tokens or 0),
        reasoning_tokens=spent.reasoning_tokens + (usage.reasoning or 0),
        cost=None if cost is None or spent.cost is None else spent.cost + cost,
        model_calls=spent.model_calls + 1,
    )


def add_spend(spent: RunSpend, more: RunSpend) -> RunSpend:
    """Return the usage with `more`, which was used at the same time: its seconds are already counted."""
    return RunSpend(
        **{name: getattr(spent, name) + getattr(more, name) for name in _COUNTS},
        cost=None if spent.cost is None or more.cost is None else spent.cost + more.cost,
        seconds=spent.seconds,
    )


def tool_call_refusal(budget: Budget, spent: RunSpend) -> str | None:
    """Return why no further tool may be called, or `None`."""
    if budget.calls is not None and spent.calls >= budget.calls:
        return f"the budget of {budget.calls} tool calls is spent"
    return next(_spent(budget, spent), None)


def model_call_refusal(budget: Budget, spent: RunSpend, coming: Next) -> str | None:
    """Return why the model may not be called again, or `None`."""
    return next(_spent(budget, spent), None) or next(_too_much(budget, spent, coming), None)


def tokens_left(budget: Budget, spent: RunSpend, coming: Next) -> int | None:
    """Return the tokens that are left for the next answer; `None` without a limit."""
    left = [
        limit - used
        for limit, used in (
            (budget.output_tokens, spent.output_tokens),
            (budget.total_tokens, spent.total_tokens + coming.input_tokens),
        )
        if limit is not None
    ]
    if budget.cost is not None and spent.cost is not None and coming.token_cost > 0:
        left.append(int((budget.cost - spent.cost - coming.cost) / coming.token_cost))
    return max(1, min(left)) if left else None


def seconds_left(budget: Budget, spent: RunSpend) -> float | None:
    """Return the seconds that are left; `None` without a limit."""
    return None if budget.seconds is None else max(0.0, budget.seconds - spent.seconds)


def sum_usage(earlier: Usage, later: Usage | None) -> Usage:
    """Return the sum of two usages; a count that only one has is kept, and one that neither has is `None`."""
    if later is None:
        return earlier
    sums = {name: _sum(getattr(earlier, name), getattr(later, name)) for name in _SUMS}
    return replace(earlier, **sums, estimated=earlier.estimated or later.estimated)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _spent(budget: Budget, spent: RunSpend) -> Iterator[str]:
    """Yield each budget that is used up."""
    for name, what in (
        ("model_calls", "calls of the model"),
        ("input_tokens", "tokens of prompts"),
        ("output_tokens", "tokens of answers"),
        ("reasoning_tokens", "tokens of reasoning"),
        ("total_tokens", "tokens"),
        ("seconds", "seconds"),
    ):
        limit = getattr(budget, name)
        if limit is not None and getattr(spent, name) >= limit:
            yield f"the budget of {limit} {what} is spent"
    if budget.cost is not None:
        if spent.cost is None:
            yield "there is a budget for the cost, and the price of the model is not known"
        elif spent.cost >= budget.cost:
            yield f"the budget of {budget.cost} is spent"


def _too_much(budget: Budget, spent: RunSpend, coming: Next) -> Iterator[str]:
    """Yield each budget that the next prompt alone would exceed."""
    for name, least in (("input_tokens", 0), ("total_tokens", 1)):  # an answer is a token at least
        limit = getattr(budget, name)
        if limit is not None and getattr(spent, name) + coming.input_tokens + least > limit:
            left = limit - getattr(spent, name)
            yield f"the next prompt is about {coming.input_tokens} tokens, and of the budget {left} are left"
    if (
        budget.cost is not None
        and spent.cost is not None
        and spent.cost + coming.cost + coming.token_cost > budget.cost
    ):
        yield f"the next prompt alone costs more than what is left of the budget of {budget.cost}"
