"""The page of the performance keeps goals that are met apart from targets that are not."""

from __future__ import annotations

import pytest

from bench.scenarios import EVERY
from tests.docs.pages import table


def is_met(limit: str, measured: str) -> bool:
    """Whether a figure of the page is within its limit."""
    word, _, bound = limit.rpartition(" ")
    value = float(measured.replace(",", ""))
    return value >= float(bound) if word == "at least" else value <= float(bound)


@pytest.mark.parametrize(("heading", "met"), [("Goals that are met", True), ("Targets that are not met", False)])
def test_goals_are_met_and_targets_are_not(heading: str, *, met: bool) -> None:
    rows = table("performance.md", heading)
    assert rows
    assert [what for what, limit, _, measured in rows if is_met(limit, measured) is not met] == []
    known = {"`make bench`", *(f'`make bench ARGS="--only {scenario.name}"`' for scenario in EVERY)}
    assert {command for _, _, command, _ in rows} <= known
