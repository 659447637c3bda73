"""Settings in the runtime's words, each checked for its range."""

import pytest

from xenoglot.engine.sampling import completion_fields
from xenoglot.engine.server.runtime import RuntimeProperties
from xenoglot.errors import FailureError
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Sampling

FACTS = RuntimeProperties(context=2048, vocabulary=100)
NOT_SAID = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.05}


@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        pytest.param(Sampling(), {}, id="nothing-said"),
        pytest.param(
            Sampling(
                temperature=1.5,
                top_p=0.5,
                top_k=7,
                min_p=0.0,
                frequency_penalty=1,
                presence_penalty=-1,
                repetition_penalty=1.1,
                max_tokens=5,
            ),
            {
                "temperature": 1.5,
                "top_p": 0.5,
                "top_k": 7,
                "min_p": 0.0,
                "frequency_penalty": 1,
                "presence_penalty": -1,
                "repeat_penalty": 1.1,
            },
            id="everything-said",
        ),
        pytest.param(Sampling(seed=7), {"seed": 7}, id="seed"),
        pytest.param(Sampling(seed=-1), {"seed": 2**32 - 2}, id="seed-never-the-one-for-any"),
        pytest.param(Sampling(seed=2**70 + 3), {"seed": (2**70 + 3) % (2**32 - 1)}, id="seed-of-any-size"),
        pytest.param(Sampling(n=3), {"n_cmpl": 3, "temperature": 0.8}, id="several-differ"),
        pytest.param(Sampling(n=1), {}, id="one"),
        pytest.param(Sampling(logprobs=True), {"n_probs": 1}, id="logprobs"),
        pytest.param(Sampling(logprobs=True, top_logprobs=5), {"n_probs": 5}, id="top-logprobs"),
        pytest.param(Sampling(logit_bias={"5": -100, "99": 1.5}), {"logit_bias": [[5, -100], [99, 1.5]]}, id="bias"),
        pytest.param(
            Sampling(logit_bias={"Paris": 1, "-1": 2, "²": 3}),
            {"logit_bias": [["Paris", 1], ["-1", 2], ["²", 3]]},
            id="findings-f-bias-of-texts",
        ),
    ],
)
def test_fields(sampling: Sampling, fields: JSONObject) -> None:
    assert completion_fields(sampling, FACTS, slots=4) == NOT_SAID | fields


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        pytest.param(Sampling(temperature=-0.1), "temperature: found -0.1, expected 0 to 2", id="temperature"),
        pytest.param(Sampling(top_p=1.1), "top_p: found 1.1, expected 0 to 1", id="top_p"),
        pytest.param(Sampling(max_tokens=0), "max_tokens: found 0, expected 1 to 9007199254740992", id="max_tokens"),
        pytest.param(Sampling(n=5), "n: found 5, expected 1 to 4", id="n-over-slots"),
        pytest.param(Sampling(top_logprobs=21), "top_logprobs: found 21, expected 0 to 20", id="top_logprobs"),
        pytest.param(
            Sampling(logit_bias={"100": 1}),
            "logit_bias['100']: expected the number of a token of this model, 0 to 99",
            id="bias-unknown",
        ),
        pytest.param(
            Sampling(logit_bias={"0" * 5000: 1}),
            "logit_bias['00000000000000000000']: expected the number of a token of this model, 0 to 99",
            id="bias-long-number",
        ),
        pytest.param(
            Sampling(logit_bias={"": 1}),
            "logit_bias['']: expected the number of a token, or a text that has tokens",
            id="bias-empty",
        ),
        pytest.param(
            Sampling(logit_bias={"a" * 65537: 1}),
            "logit_bias: the texts in it are longer than 65536 characters together",
            id="bias-long-text",
        ),
        pytest.param(
            Sampling(logit_bias={"1": 101}), "logit_bias['1']: found 101, expected -100 to 100", id="bias-range"
        ),
    ],
)
def test_ranges(sampling: Sampling, message: str) -> None:
    with pytest.raises(FailureError) as raised:
        completion_fields(sampling, FACTS, slots=4)
    assert (raised.value.failure.kind, raised.value.failure.message) == ("invalid_request", message)
