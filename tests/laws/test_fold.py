"""Fold: a response is a folded stream, whichever way it came."""

from hypothesis import given, settings

from tests.laws.essence import settled
from tests.laws.strategies import ANY_PART, responses
from tests.laws.streams import MORE_HEADERS, streams
from tests.laws.vectors import Case, decoded, each
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.stage import through
from xenoglot.model.events import Event
from xenoglot.model.fold import fold, unfold
from xenoglot.model.response import Response


@settings(max_examples=100)
@given(responses(ANY_PART, most=3))
def test_unfolding_and_folding_is_the_identity(response: Response) -> None:
    events = list(through(unfold(response), Grammar()))
    assert fold(events) == response


@settings(max_examples=100)
@given(streams(MORE_HEADERS, most=3, may_fail=False))
def test_a_folded_stream_unfolds_to_the_same(events: list[Event]) -> None:
    response = fold(through(events, Grammar()))
    assert isinstance(response, Response)
    assert fold(unfold(response)) == response


@each("stream.*", "response.json", where=lambda case: "unpaired" not in case.note)
def test_streamed_or_whole_it_is_the_same_answer(case: Case) -> None:
    """pitfall-117: a JSON answer can stand for a stream, and the reverse."""
    streamed = fold(decoded(case.dialect, [case.stream]))
    assert isinstance(streamed, Response)
    assert settled(streamed) == settled(case.dialect.decode_response(case.response))
