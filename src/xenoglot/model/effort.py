"""Converts between the two measures of reasoning: an effort word and a token budget.

The bands follow the public mapping of Gemini's OpenAI face (https://ai.google.dev/gemini-api/docs/openai#thinking),
spread out so that word -> budget -> word is the identity.
"""

from collections.abc import Collection

from xenoglot.model.request import Effort

BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 24576,
    "xhigh": 32768,
    "max": 65536,
}
"""Tokens of thinking that an effort stands for; `none` stands for no thinking at all."""

LEAST_BUDGET = 1024
"""The smallest budget that Messages takes (https://docs.claude.com/en/docs/build-with-claude/extended-thinking)."""


def effort_of(budget_tokens: int) -> Effort:
    """Return the greatest effort whose budget fits into `budget_tokens`; less than any is `minimal`."""
    fitting: Effort = "minimal"
    for effort, budget in BUDGETS.items():
        if budget <= budget_tokens:
            fitting = effort
    return fitting


def budget_of(effort: Effort, max_tokens: int | None = None) -> int:
    """Return the tokens `effort` stands for, kept below `max_tokens` and never under `LEAST_BUDGET`.

    A `max_tokens` that leaves no room for the least budget gives the least budget: the caller raises `max_tokens`.
    """
    budget = BUDGETS.get(effort, LEAST_BUDGET)
    return budget if max_tokens is None else max(LEAST_BUDGET, min(budget, max_tokens - 1))


def nearest(effort: Effort, known: Collection[Effort]) -> Effort:
    """Return the word of `known` for `effort`: itself, else the next below, else the least.

    No thinking at all is near to nothing else: `none` stands for itself only, or where it is the only word.
    """
    order: tuple[Effort, ...] = ("none", *BUDGETS)
    words = [word for word in order if word in known and (word != "none" or effort == "none")] or list(known)
    below = [word for word in words if order.index(word) <= order.index(effort)]
    return below[-1] if below else words[0]
