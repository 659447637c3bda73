"""Home trip: what a dialect read, it writes again, whole; what it wrote of a stranger's, it reads as it meant it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from tests.laws.essence import settled
from tests.laws.strategies import requests, responses
from tests.laws.vectors import Case, decoded, each
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Reasoning, Refusal, Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold, unfold
from xenoglot.model.json import JSON
from xenoglot.model.request import Request
from xenoglot.model.response import Response


def text(value: JSON) -> str:
    """Return JSON text in which equal values look the same and `1`, `1.0` and `true` do not."""
    return json.format(json.encode(value, order="sorted")).decode()


ORDER = (Reasoning, Text, Refusal, ToolCall)


@each("request.json")
def test_requests_go_home(case: Case) -> None:
    losses = Losses()
    home = case.dialect.encode_request(case.dialect.decode_request(case.request), losses, Target())
    assert text(home) == text(case.request)
    assert list(losses) == []


@each("response.json")
def test_responses_go_home(case: Case) -> None:
    losses = Losses()
    home = case.dialect.encode_response(case.dialect.decode_response(case.response), case.asked(), losses)
    assert text(home) == text(case.response)
    assert list(losses) == []


@each("stream.*")
def test_streams_go_home(case: Case) -> None:
    """What is written of a stream that was read is the same answer, or the same failure, when it is read again."""
    losses = Losses()
    events = decoded(case.dialect, [case.stream])
    written = through(events, case.dialect.stream_encoder(case.asked(), losses))
    again, once = fold(through(written, case.dialect.stream_decoder())), without_finish_words(fold(events))
    if isinstance(once, Failure):
        assert isinstance(again, Failure)
        assert (again.kind, again.message) == (once.kind, once.message)
    else:
        assert again == once
    assert list(losses) == []


def without_finish_words(answer: Response | Failure) -> Response | Failure:
    """Return the answer with the finish reasons that its server did not send as we send them."""
    if isinstance(answer, Failure):
        return answer
    candidates = tuple(
        replace(one, finish=replace(one.finish, raw=one.finish.reason, assumed=False))
        if one.finish is not None and one.finish.assumed
        else one
        for one in answer.candidates
    )
    return replace(answer, candidates=candidates)


@each("error.json")
def test_errors_go_home(case: Case) -> None:
    failure = case.dialect.decode_error(case.error["status"], case.error["body"])
    status, body = case.dialect.encode_error(failure)
    assert (status, text(body)) == (case.error["status"], text(case.error["body"]))


@pytest.mark.parametrize("name", names())
@settings(max_examples=80)
@given(request=requests())
def test_a_strangers_request_is_stable(name: str, request: Request) -> None:
    dialect = get(name)
    losses, again = Losses(), Losses()
    try:
        wire = dialect.encode_request(request, losses, Target())
    except WireError:  # refused in words: this dialect cannot ask that
        return
    assert text(dialect.encode_request(dialect.decode_request(wire), again, Target())) == text(wire)
    assert not {loss.what for loss in again} - {loss.what for loss in losses}


@pytest.mark.parametrize("name", names())
@settings(max_examples=80)
@given(response=responses(), request=st.just(Request(model="m")))
def test_a_strangers_answer_is_stable(name: str, response: Response, request: Request) -> None:
    dialect = get(name)
    losses, again = Losses(), Losses()
    wire = dialect.encode_response(response, request, losses)
    assert text(dialect.encode_response(dialect.decode_response(wire), request, again)) == text(wire)
    assert not {loss.what for loss in again} - {loss.what for loss in losses}


@pytest.mark.parametrize("name", names())
@settings(max_examples=80)
@given(response=responses())
def test_a_strangers_stream_is_its_answer(name: str, response: Response) -> None:
    """Streamed or whole, what is written of an answer is the same answer when it is read.

    The parts stand in the order in which a whole chat answer holds them, which knows no other.
    """
    dialect = get(name)
    (candidate,) = response.candidates
    parts = tuple(sorted(candidate.content, key=lambda part: ORDER.index(type(part))))
    response = replace(response, candidates=(replace(candidate, content=parts),))
    request = Request(model="m", stream=True, stream_usage=True)
    whole = dialect.decode_response(dialect.encode_response(response, request, Losses()))
    written = through(unfold(response), dialect.stream_encoder(request, Losses()))
    streamed = fold(through(written, dialect.stream_decoder()))
    assert not isinstance(streamed, Failure)
    assert settled(streamed) == settled(whole)
