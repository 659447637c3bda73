"""Arguments of calls, in every dialect that writes them as an object."""

from collections.abc import Callable

import pytest

from xenoglot import Losses
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.json.tool_arguments import arguments_of, input_of, text_of
from xenoglot.codec.target import Target
from xenoglot.dialects.converse import CONVERSE
from xenoglot.dialects.gemini import GEMINI
from xenoglot.dialects.interactions import INTERACTIONS
from xenoglot.dialects.messages import MESSAGES
from xenoglot.dialects.ollama import OLLAMA
from xenoglot.model.json import JSONObject

OBJECTS: list[JSONObject] = [
    {},
    {"a": 1},
    {"_raw": "not JSON"},
    {"_raw": "[1]"},
    {"_raw": ""},
    {"_raw": " "},
    {"_raw": '{"a": 1}'},
    {"_raw": 1},
    {"_raw": "not JSON", "a": 1},
]

HI: JSONObject = {"role": "user", "content": "Hi"}


def _converse(arguments: JSONObject) -> JSONObject:
    use = {"toolUse": {"toolUseId": "c", "name": "f", "input": arguments}}
    hi = {"role": "user", "content": [{"text": "Hi"}]}
    return {"model": "m", "messages": [hi, {"role": "assistant", "content": [use]}]}


def _gemini(arguments: JSONObject) -> JSONObject:
    call = {"functionCall": {"id": "c", "name": "f", "args": arguments}}
    hi = {"role": "user", "parts": [{"text": "Hi"}]}
    return {"model": "m", "contents": [hi, {"role": "model", "parts": [call]}]}


def _interactions(arguments: JSONObject) -> JSONObject:
    hi = {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}
    return {
        "model": "m",
        "input": [hi, {"type": "function_call", "id": "c", "name": "f", "arguments": arguments}],
    }


def _messages(arguments: JSONObject) -> JSONObject:
    use = {"type": "tool_use", "id": "c", "name": "f", "input": arguments}
    return {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": [use]}]}


def _ollama(arguments: JSONObject) -> JSONObject:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    return {"model": "m", "messages": [HI, {"role": "assistant", "content": "", "tool_calls": [call]}]}


@pytest.mark.parametrize("arguments", OBJECTS, ids=repr)
@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        pytest.param(CONVERSE, _converse, id="converse"),
        pytest.param(GEMINI, _gemini, id="gemini"),
        pytest.param(INTERACTIONS, _interactions, id="interactions"),
        pytest.param(MESSAGES, _messages, id="messages"),
        pytest.param(OLLAMA, _ollama, id="ollama"),
    ],
)
def test_arguments_come_back_as_they_were(
    dialect: Dialect, body: Callable[[JSONObject], JSONObject], arguments: JSONObject
) -> None:
    losses = Losses()
    given = body(arguments)
    assert dialect.encode_request(dialect.decode_request(given), losses, Target()) == given
    assert list(losses) == []


@pytest.mark.parametrize("arguments", OBJECTS, ids=repr)
def test_text_is_that_of_its_object(arguments: JSONObject) -> None:
    text = text_of(arguments)
    assert arguments_of(arguments) == ("" if not arguments else text)
    written = input_of(text)
    assert ({"_raw": text} if written is None else written) == arguments
