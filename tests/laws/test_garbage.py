"""Garbage: whatever comes in, what comes out is a value, events or a `WireError`, and nothing else."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.mutations import mutations
from tests.laws.strategies import VALUES
from tests.laws.vectors import Case, cases, each
from xenoglot.codec.framing.binary_events import BINARY_EVENTS
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import FailureError, WireError
from xenoglot.model.json import JSON
from xenoglot.model.request import Request


def read_request(name: str, value: JSON) -> None:
    """Read a request; what can be read can be written in every dialect, or is refused in words."""
    try:
        request = get(name).decode_request(value)
    except (WireError, FailureError):  # a `FailureError` says more than a path: C31
        return
    for target in names():
        with contextlib.suppress(WireError):
            encode_json(get(target).encode_request(request, Losses(), Target()))


def read_response(name: str, value: JSON) -> None:
    try:
        response = get(name).decode_response(value)
    except WireError:
        return
    for target in names():
        encode_json(get(target).encode_response(response, Request(model="m"), Losses()))


def read_error(name: str, status: int, value: JSON) -> None:
    failure = get(name).decode_error(status, value)
    for target in names():
        written, body = get(target).encode_error(failure)
        assert 400 <= written <= 599
        encode_json(body)


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(value=VALUES)
def test_any_json(name: str, value: JSON) -> None:
    read_request(name, value)
    read_response(name, value)
    read_error(name, 400, value)


KEYS = sorted(
    {key for case in cases() for file in case.folder.glob("re*.json") for key in decode_json(file.read_bytes())}
)
LIKELY = st.dictionaries(st.sampled_from(KEYS or ["model"]), VALUES, max_size=6)


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(value=LIKELY)
def test_any_json_with_keys_that_mean_something(name: str, value: JSON) -> None:
    read_request(name, {"model": "m", "messages": [], "max_tokens": 5, **value})
    read_request(name, value)
    read_response(name, value)


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(status=st.integers(400, 599), value=VALUES | st.fixed_dictionaries({"error": VALUES}), data=st.data())
def test_any_error(name: str, status: int, value: JSON, data: st.DataObject) -> None:
    read_error(name, status, value)
    fields = st.dictionaries(st.sampled_from(["message", "type", "code", "param", "details", "error"]), VALUES)
    read_error(name, status, {"error": data.draw(fields), **data.draw(fields)})


@each("request.json")
@settings(max_examples=12)
@given(data=st.data())
def test_damaged_requests(case: Case, data: st.DataObject) -> None:
    """C15: a field dropped, or of a wrong type."""
    read_request(case.folder.parent.name, data.draw(mutations(case.request)))


@each("response.json")
@settings(max_examples=12)
@given(data=st.data())
def test_damaged_responses(case: Case, data: st.DataObject) -> None:
    read_response(case.folder.parent.name, data.draw(mutations(case.response)))


@each("error.json")
@settings(max_examples=8)
@given(data=st.data())
def test_damaged_errors(case: Case, data: st.DataObject) -> None:
    read_error(case.folder.parent.name, case.error["status"], data.draw(mutations(case.error["body"])))


STREAM_LIKE = st.lists(
    st.one_of(
        st.binary(max_size=20),
        VALUES.map(lambda value: b"data: " + encode_json(value) + b"\n\n"),
        LIKELY.map(lambda value: b"data: " + encode_json(value) + b"\n\n"),
        st.sampled_from([b"data: [DONE]\n\n", b"\n\n", b"event: error\n", b"data: {", b'data: {"choices":[{}]}\n\n']),
        st.sampled_from([b'data: {"type":"content_block_delta"}\n\n', b'data: {"type":"message_start"}\n\n']),
    ),
    max_size=6,
)


@pytest.mark.parametrize("name", names())
@settings(max_examples=150)
@given(pieces=STREAM_LIKE)
def test_any_bytes_as_a_stream(name: str, pieces: list[bytes]) -> None:
    """U17, U18, U34: lawful events come of it, and an end is never invented; binary frames have checksums."""
    with contextlib.suppress(*((WireError,) if get(name).framing is BINARY_EVENTS else ())):
        list(through(pieces, Pipeline(get(name).framing.decoder(), get(name).stream_decoder(), Grammar())))


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(values=st.lists(VALUES | LIKELY, max_size=5))
def test_any_json_as_events(name: str, values: list[JSON]) -> None:
    events = [ServerSentEvent(encode_json(value)) for value in values]
    list(through(events, Pipeline(get(name).stream_decoder(), Grammar())))
