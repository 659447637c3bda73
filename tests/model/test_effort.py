"""Efforts and budgets, converted."""

import pytest

from xenoglot.model.request import BUDGETS, LEAST_BUDGET, Effort, budget_of, effort_of, nearest

ROWS: list[tuple[int, Effort]] = [
    (0, "minimal"),
    (1023, "minimal"),
    (1024, "minimal"),
    (2047, "minimal"),
    (2048, "low"),
    (8191, "low"),
    (8192, "medium"),
    (24575, "medium"),
    (24576, "high"),
    (32767, "high"),
    (32768, "xhigh"),
    (65535, "xhigh"),
    (65536, "max"),
    (10**9, "max"),
]


@pytest.mark.parametrize(("budget", "effort"), [pytest.param(*row, id=f"pitfall-25-{row[0]}") for row in ROWS])
def test_the_effort_of_a_budget(budget: int, effort: Effort) -> None:
    assert effort_of(budget) == effort


@pytest.mark.parametrize("effort", [pytest.param(effort, id=f"pitfall-27-{effort}") for effort in BUDGETS])
def test_a_word_comes_back_from_its_budget(effort: Effort) -> None:
    assert effort_of(budget_of(effort)) == effort


BUDGET_ROWS: list[tuple[Effort, int | None, int]] = [
    ("high", None, 24576),
    ("high", 32000, 24576),
    ("high", 24576, 24575),
    ("high", 4096, 4095),
    ("high", 1025, 1024),
    ("high", 1024, 1024),
    ("high", 10, 1024),
    ("minimal", 4096, 1024),
    ("max", 128000, 65536),
    ("none", None, LEAST_BUDGET),
]


@pytest.mark.parametrize(
    ("effort", "max_tokens", "budget"),
    [pytest.param(*row, id=f"pitfall-49-{row[0]}-of-{row[1]}") for row in BUDGET_ROWS],
)
def test_the_budget_of_an_effort(effort: Effort, max_tokens: int | None, budget: int) -> None:
    assert budget_of(effort, max_tokens) == budget


NEAREST: list[tuple[Effort, tuple[Effort, ...], Effort]] = [
    ("high", ("low", "high"), "high"),
    ("max", ("low", "medium", "high"), "high"),
    ("medium", ("low", "high"), "low"),
    ("minimal", ("none", "low", "medium"), "low"),
    ("none", ("none", "low"), "none"),
    ("none", ("minimal", "low"), "minimal"),
    ("low", ("none",), "none"),
]


@pytest.mark.parametrize(
    ("effort", "known", "near"),
    [pytest.param(*row, id=f"pitfall-26-27-{row[0]}-of-{'-'.join(row[1])}") for row in NEAREST],
)
def test_the_nearest_of_the_words_that_a_server_knows(effort: Effort, known: tuple[Effort, ...], near: Effort) -> None:
    assert nearest(effort, known) == near
