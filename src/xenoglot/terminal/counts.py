"""Usage of a conversation as text: tokens and cost, with unknown values marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.model.response import Usage


class ConversationUsage:
    """Total usage of the answers of a conversation, as far as it was reported."""

    def __init__(self) -> None:
        self.answers = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost = 0.0
        self.uncounted = 0
        self.unpriced = 0

    def add(self, usage: Usage | None, cost: float | None) -> None:
        """Add one answer."""
        self.answers += 1
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            self.uncounted += 1
        if usage is not None:
            self.input_tokens += usage.input_tokens or 0
            self.output_tokens += usage.output_tokens or 0
        if cost is None:
            self.unpriced += 1
        else:
            self.cost += cost

    def __str__(self) -> str:
        told = [
            "1 answer" if self.answers == 1 else f"{self.answers} answers",
            f"{self.input_tokens} tokens in, {self.output_tokens} out",
        ]
        if self.uncounted:
            told.append(f"{self.uncounted} not counted")
        if self.unpriced < self.answers:
            told.append(f"${self.cost:.4f}" + (f" and {self.unpriced} without a price" if self.unpriced else ""))
        return ", ".join(told)


def format_tokens(usage: Usage | None) -> str:
    """Return the tokens of an answer in words, without counts that were not reported."""
    if usage is None:
        return ""
    told = (
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read, "of it cached"),
        (usage.reasoning, "thought"),
    )
    counts = ", ".join(f"{count} {word}" for count, word in told if count is not None and (count or word == "in"))
    return f"about {counts}" if usage.estimated and counts else counts


def format_cost(cost: float | None) -> str:
    """Return a cost in US dollars in words; nothing where it is not known."""
    return "" if cost is None else f"${cost:.4f}"
