"""The catalogue is whole, and what counts its plays counts right."""

from __future__ import annotations

import pytest

from tests.faults.catalogue import NAME, CaseCoverage, catalogue


def test_it_has_127_cases() -> None:
    cases = [case.id for case in catalogue().case]
    numbers = {"U": 50, "C": 31, "K": 24, "S": 22}
    assert cases == [f"{kind}{number:02}" for kind, most in numbers.items() for number in range(1, most + 1)]
    assert {case.runs for case in catalogue().case} <= {"everywhere", "each", "talkers", "once"}


@pytest.mark.parametrize(
    ("node", "names"),
    [
        ("tests/a.py::test_b[U13-reset-chat-to-messages]", ["U13"]),
        ("tests/a.py::test_c09_a_body[C10-x]", ["c09", "C10"]),
        ("tests/a.py::test_b[pitfall-118-C03-whole]", ["C03"]),
        ("tests/a.py::test_u2[R10-U136-xS01]", []),
    ],
)
def test_names_in_ids(node: str, names: list[str]) -> None:
    assert NAME.findall(node) == names


def test_plays_are_counted() -> None:
    played = CaseCoverage(["U01", "U02", "U03"])
    for node, when, outcome in (
        ("t.py::test[U01-a]", "setup", "passed"),
        ("t.py::test[U01-a]", "call", "passed"),
        ("t.py::test[U01-a]", "teardown", "passed"),
        ("t.py::test_u01_b", "call", "failed"),
        ("t.py::test[U02]", "setup", "failed"),
        ("t.py::test[U99]", "call", "passed"),
    ):
        played.record(pytest.TestReport(node, ("t.py", 1, ""), {}, outcome, None, when))  # type: ignore[arg-type]
    assert played.missing == ["U03"]
    assert [line.split("   ")[0] for line in played.lines()] == ["U01 1/2"]
    assert "U02 0/1" in played.lines()[0]
