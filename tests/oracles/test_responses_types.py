"""What is written for clients of Responses is of the SDK's own types, and has all that Open Responses requires."""

from hypothesis import given, settings

from tests.laws.responses_grammar import check_whole
from tests.laws.strategies import responses
from tests.laws.streams import HEADERS, streams
from tests.laws.vectors import Case, decoded, each
from tests.oracles.responses_sdk import validate_answer, validate_event
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialects.responses import RESPONSES
from xenoglot.model.events import Event
from xenoglot.model.fold import fold
from xenoglot.model.request import Request
from xenoglot.model.response import Response

LIFE = {f"response.{status}" for status in ("created", "in_progress", "completed", "incomplete", "failed")}
"""Events that tell the whole answer."""

ASKED = Request(model="m", stream=True)


def check(events: list[Event], request: Request) -> None:
    for event in through(events, RESPONSES.stream_encoder(request, Losses())):
        validate_event(event)
        if event.event in LIFE:
            check_whole(decode_json(event.data)["response"])
    answer = fold(events)
    if isinstance(answer, Response):
        body = RESPONSES.encode_response(answer, request, Losses())
        validate_answer(body)
        check_whole(body)


@each("stream.*", where=lambda case: case.folder.parent.name != RESPONSES.name)
def test_a_strangers_vector_is_of_the_types(case: Case) -> None:
    """pitfall-83, pitfall-80: every field that the schema requires is there, and of its type."""
    check(decoded(case.dialect, [case.stream]), case.asked())


@settings(max_examples=100)
@given(events=streams(HEADERS))
def test_any_stream_is_of_the_types(events: list[Event]) -> None:
    check(events, ASKED)


@settings(max_examples=100)
@given(response=responses())
def test_any_answer_is_of_the_types(response: Response) -> None:
    body = RESPONSES.encode_response(response, ASKED, Losses())
    validate_answer(body)
    check_whole(body)
