"""Requests that ask nothing, and their answers."""

import pytest

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.loss import Losses
from xenoglot.dialects.ollama import OLLAMA, OLLAMA_GENERATE
from xenoglot.dialects.ollama.models import answer_of_loading
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Request


@pytest.mark.parametrize(
    ("dialect", "body", "word"),
    [
        (OLLAMA, {"messages": []}, "load"),
        (OLLAMA, {}, "load"),
        (OLLAMA, {"messages": [], "keep_alive": 0}, "unload"),
        (OLLAMA, {"messages": [{"role": "system", "content": "Be brief."}]}, None),
        (OLLAMA, {"messages": [{"role": "user", "content": "Hi"}]}, None),
        (OLLAMA_GENERATE, {}, "load"),
        (OLLAMA_GENERATE, {"prompt": "", "system": "Be brief."}, "load"),
        (OLLAMA_GENERATE, {"keep_alive": "0s"}, "unload"),
        (OLLAMA_GENERATE, {"keep_alive": -1}, "load"),
        (OLLAMA_GENERATE, {"prompt": "Hi"}, None),
        (OLLAMA_GENERATE, {"prompt": "Hi", "raw": True}, None),
    ],
)
def test_what_only_loads_is_answered_at_once(dialect: Dialect, body: JSONObject, word: str | None) -> None:
    request = dialect.decode_request({"model": "m", **body})
    answer = answer_of_loading(request)
    if word is None:
        assert answer is None
    else:
        assert answer is not None
        written = dialect.encode_response(answer, request, Losses())
        assert (written["done"], written["done_reason"]) == (True, word)


def test_another_dialects_request_is_none_of_it() -> None:
    assert answer_of_loading(Request(model="m")) is None
