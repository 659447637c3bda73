"""What the dialects of OpenAI's family have in common."""

import pytest

from xenoglot.dialects.openai.models import decode_models
from xenoglot.model.json import JSONObject


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        pytest.param({"context_length": 8192}, 8192, id="openrouter"),
        pytest.param({"max_model_len": 8192}, 8192, id="vllm"),
        pytest.param({"context_window": 8192}, 8192, id="groq"),
        pytest.param({"max_context_length": 8192}, 8192, id="mistral"),
        pytest.param({"context_length": 0, "max_model_len": 8192}, 8192, id="zero-is-not-said"),
        pytest.param({"meta": {"n_ctx_train": 131072}}, None, id="what-it-was-trained-with-is-not-what-is-served"),
        pytest.param({}, None, id="not-said"),
    ],
)
def test_findings_clients_3_the_context_window_under_each_name(fields: JSONObject, window: int | None) -> None:
    (found,) = decode_models({"data": [{"id": "m", **fields}]})
    assert found.max_input_tokens == window
