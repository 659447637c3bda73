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
from xenoglot.model.events import Event, Started, TextDelta
from xenoglot.model.request import Request

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


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_a_piece_takes_one_step(name: str) -> None:
    dialect = get(name)
    assert hasattr(dialect.stream_encoder(Request(model="m"), Losses()), "frame")
    assert TextDelta("x") == TextDelta(text="x", logprobs=(), candidate=0)
