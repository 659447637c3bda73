"""Cost: work is linear in each thing that can be repeated, in every dialect, asked and answered.

Each place in the code is counted by itself (`tests/laws/steps.py`), so a square is found at a few dozen elements,
however little it weighs there. What is repeated comes from the vectors (`tests/laws/growing_values.py`), so a new
dialect is held to the law by its vectors. Each element is written for two dialects, which take turns. Streams have a
file of their own, `test_cost_streams`.
"""

from __future__ import annotations

import pytest

from tests.laws.costs import World, answered, asked, check, of, values
from tests.laws.growing_values import together
from tests.laws.steps import Counted
from xenoglot.dialect_registry import names


@pytest.fixture(scope="module")
def counted() -> Counted:
    return Counted()


class Forgetful(dict[int, int]):
    """Keeps nothing, so that a text costs the same whatever was counted before it."""

    def __setitem__(self, key: int, value: int) -> None:
        """Forget it."""


def counting_world(counted: Counted) -> World:
    """Return the modules that count, while they do."""
    world = World(counted)
    vars(world.prompt_estimate)["_known"] = Forgetful()
    return world


@pytest.mark.parametrize("name", names())
def test_requests(counted: Counted, name: str) -> None:
    """findings-1: calls with one id; what choices, tools and results of a history look up in each other."""
    found = [case.request for case in of(name, "request.json")]
    with counted:
        world = counting_world(counted)
        check(
            counted,
            [*values(found), *map(together, found)],
            lambda value, number: world.forgiving(lambda: asked(world, name, value, number)),
        )


@pytest.mark.parametrize("name", names())
def test_answers(counted: Counted, name: str) -> None:
    found = [case.response for case in of(name, "response.json")]
    with counted:
        world = counting_world(counted)
        check(
            counted,
            values(found),
            lambda value, number: world.forgiving(lambda: answered(world, name, value, number)),
        )
