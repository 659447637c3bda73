"""What lm-evaluation-harness asks with `--model local-completions` and `tokenizer_backend=remote`, request by request.

Source: `lm_eval/utils.py` (RemoteTokenizer) and `lm_eval/models/openai_completions.py` of
https://github.com/EleutherAI/lm-evaluation-harness
"""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.matrix.embedded_gateway import EmbeddedGateway

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.model.json import JSON

CONTEXT = "The capital of France is"
CHOICES = (" Paris", " potato")


@pytest.fixture(scope="module")
def embedded() -> Generator[EmbeddedGateway]:
    """One for all."""
    with EmbeddedGateway() as running:
        yield running


def call(embedded: EmbeddedGateway, path: str, body: JSON = None) -> JSON:
    """What is answered; without a body it is a GET."""
    data = None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"content-type": "application/json"}
    request = urllib.request.Request(embedded.url + path, data, headers)  # noqa: S310  our gateway
    with urllib.request.urlopen(request) as answer:  # noqa: S310  the same
        return json.load(answer)


def tokens(embedded: EmbeddedGateway, text: str) -> list[int]:
    """The tokens of a text, asked without a model."""
    found: list[int] = call(embedded, "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]
    return found


def likelihoods(answer: JSON, contexts: list[int]) -> list[float]:
    """The sums over what follows each context; the last token was made up by the model."""
    found = sorted(answer["choices"], key=lambda choice: choice["index"])
    return [sum(one["logprobs"]["token_logprobs"][size:-1]) for one, size in zip(found, contexts, strict=True)]


def test_findings_d_a_multiple_choice_task_is_answered_through_the_remote_tokenizer(embedded: EmbeddedGateway) -> None:
    facts = call(embedded, "/tokenizer_info")
    assert {"eos_token", "bos_token", "pad_token", "chat_template"} <= facts.keys()
    (end,) = tokens(embedded, facts["eos_token"])
    assert call(embedded, "/detokenize", {"tokens": [end]})["prompt"] == facts["eos_token"]

    context = tokens(embedded, CONTEXT)
    prompts = [tokens(embedded, CONTEXT + choice) for choice in CHOICES]
    assert [prompt[: len(context)] for prompt in prompts] == [context, context]
    asked = {"model": "any", "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True}
    sizes = [len(context)] * len(prompts)
    together = likelihoods(call(embedded, "/v1/completions", {**asked, "prompt": prompts}), sizes)
    alone = [
        likelihoods(call(embedded, "/v1/completions", {**asked, "prompt": [prompt]}), sizes[:1])[0]
        for prompt in prompts
    ]
    assert together[0] > together[1]
    assert alone[0] > alone[1]
