"""Cost: what reads and writes a stream is linear in each thing that can be repeated in it (see `test_cost`).

That the law finds squares is shown by squares, one of them as it stood in a decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.laws.costs import LONGEST, World, check, events_of, grows, of, streamed, values
from tests.laws.growing_values import Element
from tests.laws.steps import Counted
from xenoglot.dialect_registry import names

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


@pytest.fixture(scope="module")
def counted() -> Counted:
    return Counted()


@pytest.mark.parametrize("name", names())
def test_streams(counted: Counted, name: str) -> None:
    """findings-4: many calls, one behind the other and side by side, with one id and with many."""
    found = [events for case in of(name, "stream.*") if len(events := events_of(case)) <= LONGEST]
    world = World(counted)
    with counted:
        check(
            counted,
            values(found),
            lambda value, number: world.forgiving(lambda: streamed(world, name, value, number)),
        )


SQUARES = {
    "looked-up-in-a-list": """
def read(values):
    seen = []
    for value in values:
        if value not in seen:
            seen.append(value)
""",
    "joined-again": """
def read(values):
    pieces = []
    for value in values:
        pieces.append(value)
        "".join(pieces)
""",
    "copied-tuple": """
def read(values):
    grown = ()
    for value in values:
        grown = (*grown, value)
""",
    "copied-dict": """
def read(values):
    grown = {}
    for value in values:
        grown = {**grown, value: True}
""",
    "cut-text": """
def read(values):
    text = "".join(values)
    while text:
        text = text[1:]
""",
    "rounds-in-rounds": """
def read(values):
    return [left for left in values for right in values if left == right]
""",
    "first-of-a-list": """
def read(values):
    values = list(values)
    while values:
        values.pop(0)
""",
}

LINES = {
    "looked-up-in-a-set": "def read(values):\n    seen = set()\n    return [seen.add(value) for value in values]",
    "joined-once": "def read(values):\n    return ''.join([value for value in values])",
    "by-place": "def read(values):\n    text = ''.join(values)\n    return [text[at] for at, _ in enumerate(text)]",
}


@pytest.mark.parametrize(
    ("source", "square"),
    [
        *[pytest.param(source, True, id=name) for name, source in SQUARES.items()],
        *[pytest.param(source, False, id=name) for name, source in LINES.items()],
    ],
)
def test_squares_are_found(counted: Counted, source: str, *, square: bool) -> None:
    element = Element("numbers", "numbers", lambda count: [f"{number:04}" for number in range(count)])
    with counted:
        read = counted.function(source, World(counted).json_io)
        assert bool(grows(counted, element, read)) == square


REST = """
def rest(self, text):
    known = _words(self.part())
    return text[len(known) :] if text.startswith(known) else ""
"""
"""Joins all deltas of a block at each event that sums them up."""


def sums(count: int) -> JSON:
    """Return the stream of a server that sums up each piece behind it, as if it were the first."""
    item: JSONObject = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    response: JSONObject = {"id": "resp_1", "object": "response", "model": "m", "output": []}
    place: JSONObject = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[JSONObject] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
    ]
    for _ in range(count):
        events.append({"type": "response.output_text.delta", "delta": "abc ", **place})
        events.append({"type": "response.output_text.done", "text": "abc ", **place})
    return [{"event": event["type"], "data": event} for event in events]


@pytest.mark.parametrize("square", [False, True], ids=["as-it-is", "put-back"])
def test_a_square_of_a_decoder_is_found(counted: Counted, monkeypatch: pytest.MonkeyPatch, *, square: bool) -> None:
    with counted:
        world = World(counted)
        growth = counted.module("dialects.responses.stream.block_decoder")
        if square:
            monkeypatch.setattr(growth.BlockDecoder, "rest", counted.function(REST, growth))
        found = grows(counted, Element("sums", "sums", sums), lambda value: streamed(world, "responses", value, 0))
        assert bool(found) == square, found
