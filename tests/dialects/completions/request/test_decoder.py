"""What the reader of requests makes of them, beyond what the vectors show."""

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Prompt, Sampling

COMPLETIONS = get("completions")


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ("a", ("a",)),
        (["a"], ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
        (["a", [1]], ("a", (1,))),
        ("", ("",)),
        (None, ()),
    ],
    ids=repr,
)
def test_prompts(prompt: JSON, texts: tuple[str | tuple[int, ...], ...]) -> None:
    request = COMPLETIONS.decode_request({"model": "m", "prompt": prompt})
    assert request.prompt == Prompt(texts=texts)
    assert request.messages == ()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"prompt": 5}, "$.prompt: expected str or list, got int"),
        ({"prompt": []}, "$.prompt: expected at least one text or token, found none"),
        ({"prompt": [[]]}, "$.prompt[0]: expected at least one token, found none"),
        ({"prompt": [1, "a"]}, "$.prompt[1]: expected the number of a token"),
        ({"prompt": [-1]}, "$.prompt[0]: expected the number of a token"),
        ({"prompt": ["a", None]}, "$.prompt[1]: expected str or list of tokens, got null"),
        ({"prompt": [["a"]]}, "$.prompt[0][0]: expected the number of a token"),
        ({"suffix": 1}, "$.suffix: expected str, got int"),
        ({"best_of": 0}, "$.best_of: integer below minimum value. Expected a value >= 1, but got 0 instead."),
        ({"logprobs": -2}, "$.logprobs: integer below minimum value. Expected a value >= 0, but got -2 instead."),
        ({"max_tokens": -2}, "$.max_tokens: integer below minimum value. Expected a value >= -1, but got -2 instead."),
        ({"echo": "yes"}, "$.echo: expected bool, got str"),
        ({"stop": [1]}, "$.stop[0]: expected str, got int"),
        ({"temperature": 3}, "$.temperature: integer above maximum value. Expected a value <= 2, but got 3 instead."),
    ],
    ids=str,
)
def test_what_is_refused(fields: JSONObject, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        COMPLETIONS.decode_request({"model": "m", "prompt": "a", **fields})
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("logprobs", "sampling"),
    [
        (None, Sampling()),
        (0, Sampling(logprobs=True, top_logprobs=0)),
        (5, Sampling(logprobs=True, top_logprobs=5)),
        (True, Sampling(logprobs=True)),
        (False, Sampling(logprobs=False)),
        (-1, Sampling()),
    ],
    ids=repr,
)
def test_how_many_alternatives(logprobs: JSON, sampling: Sampling) -> None:
    body = {"model": "m", "prompt": "a", "logprobs": logprobs}
    request = COMPLETIONS.decode_request(body)
    assert request.sampling == sampling
    assert COMPLETIONS.encode_request(request, Losses(), Target()) == body


def test_the_model_is_required() -> None:
    with pytest.raises(WireError, match=r"\$\.model: required"):
        COMPLETIONS.decode_request({"prompt": "a"})
