"""The mock's canned answers and the load tool's requests: whole, readable, and with a stamp in each token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench import wires
from bench.gateways import CLIENT_KEY
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.model.events import Finished, TextDelta

if TYPE_CHECKING:
    from xenoglot.model.request import Request


def decoded(name: str, made: wires.Question) -> Request:
    body = json.loads(made.body)
    if name in ("converse", "gemini"):
        body |= {"model": "m", "stream": "stream" in made.path}
    return get(name).decode_request(body)


@pytest.mark.parametrize("name", names())
def test_a_stream_of_the_mock_is_a_stream_of_the_dialect(name: str) -> None:
    dialect, canned = get(name), wires.canned(get(name))
    reading = Pipeline(dialect.framing.decoder(), dialect.stream_decoder())
    events = list(through([canned.first, *[canned.piece] * 3, canned.last], reading))
    said = [event.text for event in events if isinstance(event, TextDelta) and event.text]
    assert said == [wires.STAMP] * 3
    assert [event.finish.reason for event in events if isinstance(event, Finished)] == ["stop"]


@pytest.mark.parametrize("name", names())
def test_one_stamp_is_in_each_piece_and_the_end_is_known_by_its_mark(name: str) -> None:
    canned = wires.canned(get(name))
    mark = wires.question(name, wires.small(name, model="m", stream=True), CLIENT_KEY).end.encode()
    assert canned.piece.count(wires.STAMP.encode()) == 1
    assert mark in canned.last[-1024:]
    assert mark not in canned.first + canned.piece


@pytest.mark.parametrize("name", names())
def test_a_whole_answer_can_be_read(name: str) -> None:
    response = get(name).decode_response(json.loads(wires.canned(get(name)).whole))
    assert [candidate.finish.reason for candidate in response.candidates if candidate.finish] == ["stop"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", names())
def test_a_small_request_is_a_kilobyte_and_says_whether_to_stream(name: str, stream: bool) -> None:  # noqa: FBT001
    made = wires.question(name, wires.small(name, model="m", stream=stream), CLIENT_KEY)
    request = decoded(name, made)
    assert (request.model, request.stream) == ("m", stream)
    assert 700 < len(made.body) < 1200
    assert any(CLIENT_KEY in header for header in made.headers)


def test_the_large_requests_are_as_large_as_they_are_said_to_be() -> None:
    sizes = {
        make.__name__: len(wires.question("messages", make("messages", model="m"), CLIENT_KEY).body)
        for make in (wires.agent, wires.long, wires.picture)
    }
    assert 110_000 < sizes["agent"] < 120_000
    assert 200_000 < sizes["long"] < 400_000
    assert sizes["picture"] == pytest.approx(wires.PICTURE_BYTES, rel=0.001)
    long = wires.long("messages", model="m")
    assert sum(message.role != "system" for message in long.messages) in range(990, wires.LONG_TURNS + 1)
