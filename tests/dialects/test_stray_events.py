"""Events that come where they have no place end no answer; what of them is lost is told."""

import json

import pytest

from tests.faults.wire_responses import (
    DIALECTS,
    HELLO,
    ITEM,
    block_delta,
    block_stop,
    response_object,
    text_delta,
    typed_event,
)
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text
from xenoglot.model.fold import fold
from xenoglot.model.response import Response
from xenoglot.translate import translate

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
CREATED = typed_event({"type": "response.created", "response": response_object("in_progress", [])})
STRAYS = {
    "messages-ping": ("messages", PING, 0),
    "messages-unknown": ("messages", typed_event({"type": "surprise", "value": 1}), 0),
    "messages-block-stop": ("messages", block_stop(0), 0),
    "messages-block-delta": ("messages", block_delta(0, {"type": "text_delta", "text": "x"}), 0),
    "responses-created-twice": ("responses", CREATED, 1),
    "responses-unknown-item": (
        "responses",
        typed_event(
            {"type": "response.function_call_arguments.delta", "item_id": "zz", "output_index": 9, "delta": "{}"}
        ),
        2,
    ),
    "responses-a-part-of-an-unknown-item": (
        "responses",
        typed_event({"type": "response.content_part.done", **ITEM, "item_id": "zz", "output_index": 9, "part": {}}),
        2,
    ),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_findings_b_a_stray_event_ends_no_answer(stray: str) -> None:
    name, event, place = STRAYS[stray]
    wire = HELLO[name]
    frames = [*wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark]
    data = b"".join([*frames[:place], event, *frames[place:]])
    dialect = get(name)
    answer = fold(through([data], StreamReader(dialect.framing, dialect.stream_decoder())))
    assert isinstance(answer, Response)
    assert [part.text for part in answer.candidates[0].content if isinstance(part, Text)] == ["Hello"]


@pytest.mark.parametrize("target", [name for name in DIALECTS if name != "messages"])
def test_findings_b_the_loss_is_told(target: str) -> None:
    losses = Losses()
    translate(block_stop(0) + HELLO["messages"].stream, "messages", target, losses)
    assert "content_block_stop" in [loss.what for loss in losses]


def test_responses_deltas_before_the_answer_is_created() -> None:
    """The item that they begin is the answer's."""
    wire = HELLO["responses"]
    data = b"".join([text_delta("Hel"), wire.first_frames[0], *wire.middle_frames, *wire.last_frames, *wire.end_mark])
    answer = fold(through([data], StreamReader(get("responses").framing, get("responses").stream_decoder())))
    assert isinstance(answer, Response)
    (part,) = answer.candidates[0].content
    assert isinstance(part, Text)
    assert part.text == "Hello"
    assert json.loads(wire.whole)["output"][0]["content"][0]["text"] == part.text
