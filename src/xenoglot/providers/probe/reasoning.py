"""Probes of reasoning settings, as rows of the probe table."""

from __future__ import annotations

from typing import Final

from xenoglot.model.request import Sampling, Thinking
from xenoglot.providers.probe.probe_table import HELLO, ProbeRow

_LONGER: Final = 1100
"""Tokens: a budget of thinking has to be less than the whole."""


def _row(words: str, wish: Thinking, **target: object) -> ProbeRow:
    """Return a row that asks for thinking in one of the ways that there are."""
    budget = wish.budget_tokens
    return ProbeRow(
        what="thinking",
        description=words,
        request=lambda speaker: speaker.request(HELLO, thinking=wish, sampling=_sampling(budget)),
        plain=lambda speaker: speaker.request(HELLO, sampling=_sampling(budget)),
        needs=("thinking", "effort", "budget_tokens", "mode"),
        target=target,
        invalid_fields=None if budget is None else tuple((name, budget) for name in _BUDGETS),
        named=("think", "reason", "effort", "budget"),
        yes=target,
        scope="model",
        expensive=budget is not None,
    )


_BUDGETS: Final = ("budget_tokens", "thinkingBudget")
"""What the dialects call a budget; a server may take the object around it and pass over this."""


def _sampling(budget: int | None) -> Sampling:
    return Sampling(max_tokens=None if budget is None else _LONGER)


_LITTLE: Final = Thinking(effort="low")
_ON: Final = Thinking(mode="enabled")

THINKING_ROWS: Final = (
    _row("to think with little effort", _LITTLE, thinking="effort"),
    _row("to think by a budget", Thinking(mode="enabled", budget_tokens=1024), thinking="budget"),
    _row("to think with little `reasoning`", _LITTLE, thinking="effort", thinking_field="reasoning"),
    _row("to think, by `thinking`", _ON, thinking="switch", thinking_field="thinking"),
    _row("to think, by `enable_thinking`", _ON, thinking="switch", thinking_field="enable_thinking"),
    _row("to think, by `chat_template_kwargs`", _ON, thinking="switch", thinking_field="chat_template_kwargs"),
)
"""The ways to request reasoning, the most common first."""
