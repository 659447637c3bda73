"""Plain answers: read and written in one step they are what the general way makes of them, to the order of the keys."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exact import exact
from tests.laws.mutations import mutations
from tests.laws.strategies import responses
from tests.laws.vectors import Case, each
from xenoglot.codec.loss import Losses
from xenoglot.dialects.chat import response as chat
from xenoglot.dialects.chat.fast.frequent_answers import plain_response
from xenoglot.dialects.openai import usage as family
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.json import JSON
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response

pytestmark = pytest.mark.usefixtures("with_shortcuts")

USUAL: JSON = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1741569952,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hello!",
                "refusal": None,
                "annotations": [],
                "reasoning_content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "index": 0}
                ],
            },
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": None,
        }
    ],
    "usage": {
        "prompt_tokens": 19,
        "completion_tokens": 10,
        "total_tokens": 29,
        "completion_tokens_details": {"rejected_prediction_tokens": 0, "reasoning_tokens": 3, "audio_tokens": None},
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
    },
    "service_tier": "default",
    "system_fingerprint": "fp_1",
    "prompt_logprobs": None,
}


def in_general(body: JSON, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patched:
        patched.setattr(chat, "plain_response", lambda _: None)
        patched.setattr(family, "_plain_usage", lambda *_: None)
        return read(body)


def read(body: JSON) -> str:
    """Return what is read, in words: they tell the order of keys as well."""
    try:
        return exact(chat.decode_response(body))
    except WireError as error:
        return str(error)


@pytest.fixture(scope="module")
def patch() -> pytest.MonkeyPatch:
    return pytest.MonkeyPatch()


def test_the_usual_answer_is_plain(patch: pytest.MonkeyPatch) -> None:
    assert exact(plain_response(USUAL)) == in_general(USUAL, patch)


@settings(max_examples=300)
@given(data=st.data())
def test_nearly_usual_answers_are_read_alike(patch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    body = USUAL
    for _ in range(data.draw(st.integers(1, 3))):
        body = data.draw(mutations(body))
    assert read(body) == in_general(body, patch)


@each("response.json", where=lambda case: case.dialect.name == "chat")
def test_vectors_are_read_alike(case: Case, patch: pytest.MonkeyPatch) -> None:
    assert read(case.response) == in_general(case.response, patch)


def written(response: Response) -> tuple[str, list[str]]:
    losses = Losses()
    return exact(chat.encode_response(response, Request(model="m"), losses)), [str(loss) for loss in losses]


def in_general_written(response: Response, patch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    with patch.context() as patched:
        patched.setattr(chat, "plain_message", lambda _: None)
        return written(response)


@given(response=responses(most=2))
def test_answers_are_written_alike(patch: pytest.MonkeyPatch, response: Response) -> None:
    assert written(response) == in_general_written(response, patch)


@pytest.mark.parametrize("dialect", ["messages", "chat"])
@pytest.mark.parametrize(
    "parts",
    [
        (),
        (Text(text=""),),
        (Text(text="Hello"), Text(text=" you")),
        (ToolCall(id="1", name="f"),),
        (Text(text="I look."), ToolCall(id="1", name="f", arguments="{}"), ToolCall(id="2", name="g")),
        (ToolCall(id="1", name="f"), Text(text="behind")),
    ],
    ids=["none", "blank", "words", "call", "both", "pitfall-12"],
)
def test_a_plain_answer_is_written_alike(
    patch: pytest.MonkeyPatch, dialect: str, parts: tuple[Text | ToolCall, ...]
) -> None:
    for finish in (None, Finish(reason="stop", raw="stop", dialect=dialect), Finish(reason="context", dialect=dialect)):
        response = Response(id="1", model="m", created=1, candidates=(Candidate(content=parts, finish=finish),))
        assert written(response) == in_general_written(response, patch)
