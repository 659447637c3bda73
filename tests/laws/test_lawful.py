"""Lawful: every decoder obeys `Grammar`, every encoder the grammar of its wire, and nothing cut looks whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.mutations import mutations
from tests.laws.streams import MORE_HEADERS, streams
from tests.laws.vectors import Case, decoded, each
from tests.laws.wire_grammar import WIRE_GRAMMARS
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.events import Event, Failed
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.request import Request
from xenoglot.model.response import Response


def lawful(dialect: Dialect, stream: bytes) -> list[Event]:
    return list(through([stream], Pipeline(dialect.framing.decoder(), dialect.stream_decoder(), Grammar())))


@each("stream.*")
def test_what_is_read_obeys_the_grammar(case: Case) -> None:
    lawful(case.dialect, case.stream)


@each("stream.*")
def test_a_cut_stream_fails(case: Case) -> None:
    """pitfall-103, pitfall-104, U13, U14: what is cut ends in `Failed`, unless nothing of the answer is missing."""
    whole = fold(lawful(case.dialect, case.stream))
    step = max(1, len(case.stream) // 120)
    for cut in range(0, len(case.stream), step):
        part = fold(lawful(case.dialect, case.stream[:cut]))
        if isinstance(part, Response) and isinstance(whole, Response):
            assert part.candidates == whole.candidates, case.stream[:cut][-200:]


def frames(dialect: Dialect, stream: bytes) -> list[ServerSentEvent]:
    return list(through([stream], dialect.framing.decoder()))


@each("stream.*")
@settings(max_examples=8)
@given(data=st.data())
def test_damaged_streams_obey_the_grammar(case: Case, data: st.DataObject) -> None:
    """C15: one event damaged, dropped, doubled or moved: the events are lawful all the same."""
    events = frames(case.dialect, case.stream)
    place = st.integers(0, len(events) - 1)
    event = events.pop(data.draw(place))
    for _ in range(data.draw(st.integers(0, 2))):
        events.insert(data.draw(place), damaged(event, data) if data.draw(st.booleans()) else event)
    list(through(events, Pipeline(case.dialect.stream_decoder(), Grammar())))


def damaged(event: ServerSentEvent, data: st.DataObject) -> ServerSentEvent:
    try:
        value = decode_answer(event.data)
    except WireError:  # `[DONE]`, or broken already
        value = {}
    return ServerSentEvent(encode_json(data.draw(mutations(value))), event.event)


ASKED = Request(model="m", stream=True, stream_usage=True)


def check(name: str, events: list[Event], request: Request = ASKED) -> None:
    """Write `events` in the dialect and walk what was written: it fails where they do, and only there."""
    written = list(through(events, get(name).stream_encoder(request, Losses())))
    failed = any(isinstance(event, Failed) for event in events)
    assert WIRE_GRAMMARS[name](written) == ("failed" if failed else "done")


@each("stream.*")
def test_what_is_written_of_a_vector_is_lawful(case: Case) -> None:
    events = decoded(case.dialect, [case.stream])
    for name in names():
        check(name, events, case.asked())


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(events=streams(MORE_HEADERS, most=2))
def test_what_is_written_of_any_stream_is_lawful(name: str, events: list[Event]) -> None:
    check(name, events)


@pytest.mark.parametrize("name", names())
@settings(max_examples=50)
@given(events=streams(MORE_HEADERS, may_fail=False), data=st.data())
def test_what_ends_early_is_written_as_failed(name: str, events: list[Event], data: st.DataObject) -> None:
    """U13: the encoder is closed while a candidate is not finished: the error event, and no clean end."""
    cut = data.draw(st.integers(0, len(events)))
    partial = events[:cut]
    whole = fold(partial)
    assert not isinstance(whole, Failure)
    finished = bool(whole.candidates) and all(candidate.finish for candidate in whole.candidates)
    written = list(through(partial, get(name).stream_encoder(ASKED, Losses())))
    assert WIRE_GRAMMARS[name](written) == ("done" if finished else "failed")
