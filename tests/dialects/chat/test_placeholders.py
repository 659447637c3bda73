"""Placeholders of optional fields are fields that are not set."""

from pathlib import Path

import pytest

from tests.dialects.chat.wire import chunk, read
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.reader import is_placeholder
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text
from xenoglot.model.events import OpaqueDelta
from xenoglot.model.fold import fold
from xenoglot.model.json import JSON
from xenoglot.model.response import Response

WHOLE = Path(__file__).parents[2] / "vectors" / "chat" / "placeholders" / "response.json"
NO_CALL: JSON = {"name": "", "arguments": ""}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(NO_CALL, False, id="findings-A3-function-call"),
        pytest.param([{"id": "", "index": 0, "type": "function", "function": NO_CALL}], False, id="findings-A3-calls"),
        pytest.param({"id": "", "data": "", "expires_at": 0}, False, id="findings-A3-audio"),
        pytest.param({"name": "f", "arguments": ""}, True, id="a-name"),
        pytest.param(False, True, id="false"),
        pytest.param([1], True, id="a-number"),
    ],
)
def test_what_a_placeholder_is(value: JSON, *, said: bool) -> None:
    assert is_placeholder(value) != said


def test_a_whole_answer_of_placeholders_is_its_words() -> None:
    (candidate,) = get("chat").decode_response(decode_json(WHOLE.read_bytes())).candidates
    assert (candidate.content, candidate.finish) == ((Text(text="Hello"),), None)


def test_a_stream_of_placeholders_is_its_words() -> None:
    void: dict[str, JSON] = {"refusal": "", "function_call": NO_CALL, "audio": {"id": "", "data": ""}}
    events = read(chunk({"content": "a", **void, "tool_calls": [{"index": 0, "id": "", "function": NO_CALL}]}))
    folded = fold(events)
    assert isinstance(folded, Response)
    assert folded.candidates[0].content == (Text(text="a"),)
    assert not any(isinstance(event, OpaqueDelta) for event in events)
