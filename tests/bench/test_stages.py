"""The table of stages: what is taken of rounds, and what is told where there are none."""

from __future__ import annotations

from bench.pieces import Piece
from bench.stages import Row, Taken, chosen, measured, row, table

PIECE = Piece("stream", "decode", "event", lambda _rounds: [2e-6, 1e-6, 4e-6])
LOST = Piece("stream", "encode", "event", lambda _rounds: [])


def test_the_least_and_the_median_of_all_processes_count() -> None:
    here = [Taken({"stream: decode": [2e-6, 3e-6]}, {}), Taken({"stream: decode": [1e-6]}, {})]
    there = [Taken({"stream: decode": [4e-6, 6e-6]}, {})]
    assert row(PIECE, here, there) == Row("stream", "decode", "event", 1000.0, 2000.0, 4000.0, 5000.0, ratio=0.25)


def test_what_the_other_tree_lacks_is_told() -> None:
    here = [Taken({"stream: encode": [1e-6]}, {})]
    there = [Taken({}, {"stream: encode": "ImportError: no such thing"})]
    told = row(LOST, here, there)
    assert told == Row("stream", "encode", "event", 1000.0, 1000.0, problem="ImportError: no such thing")
    assert table([told], compared=True).splitlines() == [
        "stream   for each          ns      median       other   ratio",
        "encode   event          1,000       1,000           -       -  ImportError: no such thing",
    ]


def test_a_piece_that_fails_is_told_and_the_rest_goes_on() -> None:
    taken = measured(["upstream: head", "upstream: a chunk"], 1)
    assert list(taken.rounds) == ["upstream: head of its response", "upstream: a chunk of it"]
    assert taken.problems == {}


def test_every_name_stands_once() -> None:
    names = [(piece.part, piece.name) for piece in chosen([])]
    assert len(names) == len(set(names))
