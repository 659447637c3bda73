"""K06: whose turn it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from xenoglot.policy.limits.admission_queue import FairQueue


class One(Struct, frozen=True):
    """Somebody who waits."""

    owner: str
    lane: str
    number: int


def line(*names: str) -> tuple[FairQueue[One], list[One]]:
    """Those who wait, called `owner` or `owner/lane`, in the order of their coming."""
    turns: FairQueue[One] = FairQueue()
    people = [One(*name.partition("/")[::2], number) for number, name in enumerate(names)]
    for one in people:
        turns.add(one)
    return turns, people


def served(turns: FairQueue[One]) -> list[int]:
    """Serve everybody, each time the first."""
    order = []
    while turns:
        one = turns.heads()[0]
        turns.serve(one)
        order.append(one.number)
    return order


def test_k06_owners_take_turns() -> None:
    turns, _ = line("a", "a", "a", "b", "c", "b")
    assert served(turns) == [0, 3, 4, 1, 5, 2]


def test_k11_lanes_of_one_owner_take_turns() -> None:
    turns, _ = line("a/x", "a/x", "a/y", "b/x")
    assert [one.number for one in turns.heads()] == [0, 2, 3]
    assert served(turns) == [0, 3, 2, 1]


def test_who_leaves_had_no_turn() -> None:
    turns, people = line("a", "a", "b")
    turns.remove(people[0])
    assert (served(turns), len(turns)) == ([1, 2], 0)


def test_who_rejoins_is_where_it_was() -> None:
    turns, people = line("a", "a", "b", "a")
    turns.serve(people[0])
    turns.serve(people[2])
    turns.serve(people[1])
    turns.requeue(people[1])
    turns.requeue(people[0])
    assert served(turns) == [0, 1, 3]


def test_the_longest_is_the_latest_of_the_owner_with_most() -> None:
    turns, people = line("a", "b", "b", "a", "b")
    assert (turns.longest(list(turns)), turns.longest([])) == (people[4], None)


@given(st.lists(st.sampled_from("aaaaaabc"), min_size=1, max_size=40))
def test_k06_nobody_is_served_twice_before_another_once(names: list[str]) -> None:
    turns, people = line(*names)
    order = served(turns)
    assert sorted(order) == list(range(len(names)))
    while order:
        left = {people[number].owner for number in order}
        assert {people[number].owner for number in order[: len(left)]} == left
        order = order[len(left) :]
    for owner in set(names):
        mine = [one.number for one in people if one.owner == owner]
        assert mine == sorted(mine)
