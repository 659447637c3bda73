"""The ablation of the shortcuts: what is off in each variant, the ratios, the gate. Times are made up."""

from __future__ import annotations

import pytest

from bench.ablation import BASELINE, VARIANTS, Scenario, broken, joined, measured, ratios, read, scenarios, table
from bench.samples import small
from xenoglot.shortcuts import GROUPS, SHORTCUTS

TAKEN = {
    "none": {"a": [2e-6, 1e-6], "b": [4e-6]},
    "frames": {"a": [1.5e-6, 3e-6], "b": [4e-6]},
    "all": {"a": [4e-6], "b": [2e-6]},
}


def test_each_variant_turns_off_one_group() -> None:
    assert list(VARIANTS.items()) == [("none", ()), *((group, (group,)) for group in GROUPS), ("all", GROUPS)]


def test_the_least_of_all_rounds_counts() -> None:
    assert ratios(TAKEN) == {"frames": {"a": 1.5, "b": 1.0}, "all": {"a": 4.0, "b": 0.5}}


def test_the_table() -> None:
    assert table(TAKEN).splitlines() == [
        "| off | a | b |",
        "| --- | --: | --: |",
        "| nothing, µs | 1.0 | 4.0 |",
        "| `frames` | +50 % | +0 % |",
        "| everything | +300 % | -50 % |",
    ]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"frames": {"a": 1.5}}, []),
        ({"frames": {"a": 1.36}}, []),
        ({"frames": {"a": 9.0}}, []),
        ({"frames": {"a": 1.34}}, ["frames off, a: 1.34 times the cost, 1.50 in the baseline"]),
        ({"frames": {}}, ["frames off, a: not measured, 1.50 in the baseline"]),
    ],
)
def test_the_gate(now: dict[str, dict[str, float]], expected: list[str]) -> None:
    assert broken(now, {"frames": {"a": 1.5, "b": 1.09}}, 0.1) == expected


def test_rounds_of_two_runs_are_joined() -> None:
    assert joined(TAKEN, TAKEN)["none"] == {"a": [2e-6, 1e-6, 2e-6, 1e-6], "b": [4e-6, 4e-6]}


def test_the_baseline_has_every_variant_and_scenario() -> None:
    names = {scenario.name for scenario in scenarios()}
    assert {variant: set(by_name) for variant, by_name in read(BASELINE).items()} == {
        variant: names for variant in VARIANTS if variant != "none"
    }


@pytest.mark.parametrize("stream", [False, True])
def test_every_variant_answers(stream: bool) -> None:  # noqa: FBT001  a parameter
    before = SHORTCUTS.off
    scenario = Scenario("it", "messages", "chat", small(stream=stream), 1)
    taken = measured([scenario], list(VARIANTS), 1)
    assert {variant: len(by_name["it"]) for variant, by_name in taken.items()} == dict.fromkeys(VARIANTS, 1)
    assert SHORTCUTS.off == before
