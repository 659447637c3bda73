"""Requests that wait for their models: each in its turn, and none for another's."""

from __future__ import annotations

from xenoglot.gateway.batches.delayed import DelayedRequests


def test_what_rests_holds_no_other_up() -> None:
    waiting = DelayedRequests()
    waiting.rest("a", 10.0)
    for number, model in enumerate("abab"):
        waiting.put(number, model)
    assert [waiting.take(5.0) for _ in range(3)] == [1, 3, None]
    assert (waiting.rests("a", 5.0), waiting.rests("b", 5.0), waiting.seconds(5.0)) == (True, False, 5.0)
    assert [waiting.take(10.0) for _ in range(3)] == [0, 2, None]
    assert (bool(waiting), waiting.seconds(10.0)) == (False, None)


def test_models_take_turns() -> None:
    waiting = DelayedRequests()
    for number, model in enumerate("aaabbb"):
        waiting.put(number, model)
    assert [waiting.take(float(now)) for now in range(1, 7)] == [0, 3, 1, 4, 2, 5]


def test_a_rest_that_grows_is_heeded_and_none_shrinks() -> None:
    waiting = DelayedRequests()
    waiting.put(1, "a")
    waiting.rest("a", 20.0)
    waiting.rest("a", 10.0)
    assert [waiting.take(now) for now in (15.0, 20.0)] == [None, 1]
