"""Writing: frames made in one step are those that the encoder and its framing make, and are lost the same way."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.streams import streams
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.model.content import Logprob, Part, Reasoning, Refusal, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    Ping,
    ReasoningDelta,
    Started,
    TextDelta,
)
from xenoglot.model.request import Request
from xenoglot.model.response import Finish

pytestmark = pytest.mark.usefixtures("with_shortcuts")


class Naming:
    """Names an answer; all else passes."""

    def feed(self, event: Event, /) -> Sequence[Event]:
        return (Started(id="id", model="m", created=1),) if isinstance(event, Started) else (event,)

    def close(self) -> Sequence[Event]:
        return ()


def step_by_step(dialect: Dialect, request: Request, events: Sequence[Event]) -> tuple[bytes, list[Loss]]:
    losses = Losses()
    row = Pipeline(Naming(), dialect.stream_encoder(request, losses), dialect.framing.encoder())
    return b"".join(through(events, row)), [*losses]


@pytest.mark.parametrize("name", names())
@given(events=streams(most=2), data=st.data())
def test_as_the_stages_write_it(name: str, events: list[Event], data: st.DataObject) -> None:
    dialect, request, losses = get(name), Request(model="m", stream=True), Losses()
    cut = data.draw(st.integers(0, len(events)))
    writing = StreamWriter(Naming(), dialect.stream_encoder(request, losses), dialect.framing)
    written = b"".join((writing.write(events[:cut]), writing.write(events[cut:]), *writing.close()))
    assert (written, [*losses]) == step_by_step(dialect, request, events)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize(
    "odd",
    [
        TextDelta(text=""),
        TextDelta(text="x", candidate=1),
        TextDelta(text="x", logprobs=(Logprob(token="x", logprob=-1.0),)),
        TextDelta(text='"\n\u20ac\U0001f600'),
        Ping(),
        ReasoningDelta(text="x"),
    ],
    ids=["empty", "candidate", "logprobs", "escapes", "ping", "reasoning"],
)
@pytest.mark.parametrize(
    "part", [Text(text=""), Refusal(text=""), Reasoning(text="")], ids=["text", "refusal", "reasoning"]
)
def test_runs_of_text_as_the_stages_write_them(name: str, odd: Event, part: Part) -> None:
    run = [TextDelta(text=f" {number}") for number in range(6)]
    for place in (0, 3, 6):
        events = [
            Started(),
            BlockStarted(part=part),
            *run[:place],
            odd,
            *run[place:],
            BlockEnded(),
            Finished(finish=Finish(reason="stop")),
            *run,
        ]
        dialect, request, losses = get(name), Request(model="m", stream=True), Losses()
        counted: list[str] = []
        writing = StreamWriter(Naming(), dialect.stream_encoder(request, losses), dialect.framing, count=counted.append)
        written = b"".join((writing.write(events), *writing.close()))
        assert (written, [*losses]) == step_by_step(dialect, request, events)
        framed = hasattr(dialect.stream_encoder(request, Losses()), "frame")
        assert framed or not counted


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_a_piece_takes_one_step(name: str) -> None:
    dialect = get(name)
    assert hasattr(dialect.stream_encoder(Request(model="m"), Losses()), "frame")
    assert TextDelta("x") == TextDelta(text="x", logprobs=(), candidate=0)
