"""Growth: what was disturbed is measured again, and what is a square stays one."""

from __future__ import annotations

import pytest

from bench import growth
from bench.growth import AGAIN, Axis, Line, axes, measured, table


def costs(monkeypatch: pytest.MonkeyPatch, of: dict[int, list[float]]) -> None:
    """Have each size cost the next of its seconds whenever it is measured."""
    monkeypatch.setattr(growth, "least", lambda work, _rounds: of[work()].pop(0))


def axis(*sizes: int) -> Axis:
    """Return an axis whose work tells its size."""
    return Axis("a", "sizes", sizes, {"line": lambda size: lambda: size})


def test_what_was_disturbed_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    costs(monkeypatch, {10: [0.010, 0.011], 100: [0.900, 0.100]})
    assert measured(axis(10, 100), "line", 1) == Line("a", "line", [(10.0, 10.0), (100.0, 100.0)], 1.0, linear=True)


def test_a_square_stays_a_square(monkeypatch: pytest.MonkeyPatch) -> None:
    costs(monkeypatch, {10: [0.01] * (AGAIN + 1), 100: [1.0] * (AGAIN + 1)})
    found = measured(axis(10, 100), "line", 1)
    assert found == Line("a", "line", [(10.0, 10.0), (100.0, 1000.0)], 2.0, linear=False)
    assert table([found]).splitlines()[1].split() == ["a", "line", "10.000", "1000.000", "2.00", "NOT", "LINEAR"]


@pytest.mark.parametrize(
    ("axis", "name"),
    [(each, name) for each in axes() for name in each.lines],
    ids=lambda each: getattr(each, "name", each),
)
def test_the_smallest_of_each_can_be_done(axis: Axis, name: str) -> None:
    axis.lines[name](axis.sizes[0])()
