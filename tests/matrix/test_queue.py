"""The line in front of the embedded model, as the SDKs meet it: refused with 429, and told when to come again."""

from __future__ import annotations

import urllib.request

import anthropic
import openai
import pytest

from tests.matrix.embedded_gateway import EmbeddedGateway
from xenoglot.engine.server.weights import MINILM, fetch

QUESTION = "Tell me a long story."
STORY = 400
"""Tokens: many more than are waited for here."""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({"slots": 1, "queue": 0}, id="full"),
        pytest.param({"slots": 1, "queue": 8, "queue_seconds": 0.01}, id="too-slow"),
    ],
)
def test_who_finds_no_room_is_told_when_to_come_again(line: dict[str, object]) -> None:
    with (
        EmbeddedGateway(**line) as embedded,
        openai.OpenAI(base_url=f"{embedded.url}/v1", api_key="none", max_retries=0) as chat,
        anthropic.Anthropic(base_url=embedded.url, api_key="none", max_retries=0) as messages,
    ):
        with chat.chat.completions.create(
            model="any", messages=[{"role": "user", "content": QUESTION}], max_tokens=STORY, stream=True
        ) as story:
            next(iter(story))
            with pytest.raises(openai.RateLimitError) as refused:
                chat.completions.create(model="any", prompt="Once", max_tokens=4)
            with pytest.raises(anthropic.RateLimitError) as refused_too:
                messages.messages.create(model="any", messages=[{"role": "user", "content": "Hello"}], max_tokens=4)
        for error in (refused.value, refused_too.value):
            assert 1 <= int(error.response.headers["retry-after"]) <= 60
        with urllib.request.urlopen(f"{embedded.url}/metrics") as answer:  # noqa: S310  our gateway
            told = answer.read().decode()
    assert 'xenoglot_engine_refused_requests_total{model="smollm2-135m-instruct",backend="embedded"} 2\n' in told


def test_a_model_file_for_embeddings_can_be_named() -> None:
    with (
        EmbeddedGateway(embedding=str(fetch(MINILM).path)) as embedded,
        openai.OpenAI(base_url=f"{embedded.url}/v1", api_key="none", max_retries=0) as client,
    ):
        answer = client.embeddings.create(model="all-MiniLM-L6-v2.F32", input="a")
        assert [model.id for model in client.models.list()] == ["smollm2-135m-instruct", "all-MiniLM-L6-v2.F32"]
    assert (answer.model, len(answer.data[0].embedding)) == ("all-MiniLM-L6-v2.F32", 384)
