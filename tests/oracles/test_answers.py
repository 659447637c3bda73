"""What we write, the official SDKs read: streamed or whole, the same object, field by field."""

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from tests.laws.streams import HEADERS, streams
from tests.laws.vectors import Case, decoded, each
from tests.oracles.sdk import SDK_ERROR, STREAMED, WHOLE, read_error, read_messages_stream, read_stable_stream
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall
from xenoglot.model.events import Event
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.json import JSON
from xenoglot.model.request import Request
from xenoglot.model.response import Response

ASKED = Request(model="m", stream=True, stream_usage=True)


ADDED = {"object", "parsed", "parsed_arguments", "parsed_output"}
"""Fields that the accumulators write themselves."""

CHOICE = {"index", "message", "finish_reason", "logprobs"}
"""Fields of a choice that the accumulator takes from every chunk; others it takes from the first alone."""


def essence(value: JSON) -> JSON:
    """Return what an answer says: without nulls, what is empty, and what the accumulators add or do not hear."""
    if isinstance(value, list):
        return [essence(item) for item in value]
    if not isinstance(value, dict):
        return value
    heard = value.keys() - ADDED
    if "message" in value and "done" not in value:
        heard &= CHOICE
    if "function" in value or "custom" in value:
        heard -= {"index"}
    if any(block.get("type") == "fallback" for block in value.get("content") or () if isinstance(block, dict)):
        heard -= {"model"}  # the accumulator takes it from the block, we stay with that of the start
    if "input_tokens" in value:
        heard -= {"cache_creation"}  # the accumulator takes it from the start alone, where other servers do not know it
    said = {key: essence(value[key]) for key in heard}
    return {key: item for key, item in said.items() if item not in (None, [], {}, "")}


def readable(name: str, answer: Response) -> bool:
    """Whether the accumulator can read the answer: anthropic-python fails on arguments that are no JSON (U31)."""
    calls = [part for candidate in answer.candidates for part in candidate.content if isinstance(part, ToolCall)]
    functions = (call.arguments or "{}" for call in calls if call.kind == "function")
    return name != "messages" or all(map(_is_json, functions))


def _is_json(text: str) -> bool:
    try:
        decode_json(text)
    except WireError:
        return False
    return True


def check(name: str, events: list[Event], request: Request) -> None:
    dialect, answer = get(name), fold(events)
    written = list(through(events, dialect.stream_encoder(request, Losses())))
    if isinstance(answer, Failure):
        with pytest.raises(SDK_ERROR[name]):
            STREAMED[name](written)
        return
    if not readable(name, answer):
        with pytest.raises(ValueError, match="Unable to parse tool parameter JSON"):
            STREAMED[name](written)
        return
    whole = WHOLE[name](dialect.encode_response(answer, request, Losses()), 200)
    assert essence(STREAMED[name](written)) == essence(whole)


@each("stream.*", where=lambda case: "unpaired" not in case.note)
def test_a_vector_is_read_as_it_was_meant(case: Case) -> None:
    for name in names():
        check(name, decoded(case.dialect, [case.stream]), replace(case.asked(), stream=True, stream_usage=True))


@pytest.mark.parametrize("name", names())
@settings(max_examples=80)
@given(events=streams(HEADERS, whole_arguments=True))
def test_any_stream_is_read_as_its_answer(name: str, events: list[Event]) -> None:
    check(name, events, ASKED)
    if name == "messages" and not isinstance(fold(events), Failure):
        written = list(through(events, get(name).stream_encoder(ASKED, Losses())))
        assert essence(read_stable_stream(written)) == essence(read_messages_stream(written))


@each("error.json")
@pytest.mark.parametrize("name", names())
def test_errors_are_raised_by_their_status(case: Case, name: str) -> None:
    """pitfall-120, pitfall-121: the SDK raises the class of the status, and its text is ours."""
    failure = case.dialect.decode_error(case.error["status"], case.error["body"])
    status, body = get(name).encode_error(failure)
    assert read_error(name, status, body) == (status, body)
