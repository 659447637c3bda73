"""What answers of the embedded model hold beside their words, as llama-server's clients look for it."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Final

import pytest

from tests.matrix.embedded_gateway import EmbeddedGateway

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.model.json import JSONObject

ASKED: Final[dict[str, JSONObject]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions": {"prompt": "The capital of France is", "echo": True},
}


@pytest.fixture(scope="module")
def embedded() -> Generator[EmbeddedGateway]:
    """One for all."""
    with EmbeddedGateway() as running:
        yield running


def answered(embedded: EmbeddedGateway, path: str, **fields: object) -> list[JSONObject]:
    """Return the answer, or the chunks of it."""
    data = json.dumps({"model": "any", "max_tokens": 3, **ASKED[path], **fields}).encode()
    request = urllib.request.Request(embedded.url + path, data, {"content-type": "application/json"})  # noqa: S310  ours
    with urllib.request.urlopen(request) as answer:  # noqa: S310  the same
        body = answer.read().decode()
    if "stream" not in fields:
        return [json.loads(body)]
    frames = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    assert frames.pop() == "[DONE]"
    return [json.loads(frame) for frame in frames]


@pytest.mark.parametrize("path", ASKED)
def test_findings_f_a_whole_answer(embedded: EmbeddedGateway, path: str) -> None:
    (plain,), (timed,) = answered(embedded, path), answered(embedded, path, timings_per_token=True)
    assert plain["system_fingerprint"].startswith("fp_")
    assert timed["system_fingerprint"] == plain["system_fingerprint"]
    assert "timings" not in plain
    timings = timed["timings"]
    assert timings["cache_n"] + timings["prompt_n"] == timed["usage"]["prompt_tokens"]
    assert timings["predicted_n"] == timed["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("path", ASKED)
def test_findings_f_a_streamed_answer(embedded: EmbeddedGateway, path: str) -> None:
    plain = answered(embedded, path, stream=True)
    timed = answered(embedded, path, stream=True, timings_per_token=True)
    (name,) = {chunk["system_fingerprint"] for chunk in (*plain, *timed)}
    assert name.startswith("fp_")
    assert not any("timings" in chunk for chunk in plain)
    assert [chunk["timings"]["predicted_n"] for chunk in timed if "timings" in chunk] == [1, 2, 3, 3]
    assert [chunk["choices"] for chunk in timed if "timings" not in chunk] == [chunk["choices"] for chunk in plain]


def test_findings_f_the_prompt_is_echoed_once(embedded: EmbeddedGateway) -> None:
    """An answer that has a fingerprint of its dialect is none that a server of the dialect has made."""
    prompt = ASKED["/v1/completions"]["prompt"]
    ways: list[JSONObject] = [{}, {"best_of": 2}, {"stream": True}, {"best_of": 2, "stream": True}]
    for fields in ways:
        chunks = answered(embedded, "/v1/completions", **fields)
        text = "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])
        assert (text.count(prompt), text.startswith(prompt)) == (1, True)
