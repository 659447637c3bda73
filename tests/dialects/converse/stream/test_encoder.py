"""Writing a stream, as a script: these events come in, these messages come out."""

import json

from xenoglot import Losses
from xenoglot.codec.stage import through
from xenoglot.dialects.converse import CONVERSE
from xenoglot.model.content import Opaque
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, Started
from xenoglot.model.request import Request
from xenoglot.model.response import Finish


def test_block_without_a_kind_is_a_loss() -> None:
    losses = Losses()
    encoder = CONVERSE.stream_encoder(Request(model="m", messages=()), losses)
    empty = (BlockStarted(part=Opaque(dialect="converse", data={})), BlockEnded())
    events: list[Event] = [Started(), *empty, Finished(finish=Finish(reason="stop"))]
    made = through(events, encoder)
    assert [(message.event, json.loads(message.data)) for message in made][:2] == [
        ("messageStart", {"role": "assistant"}),
        ("messageStop", {"stopReason": "end_turn"}),
    ]
    assert "$.candidates[0].content[0] block dropped (a stream of the dialect has no such block)" in map(str, losses)
