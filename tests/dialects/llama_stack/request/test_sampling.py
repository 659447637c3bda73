"""How tokens are drawn: one strategy on the wire, three numbers in the model."""

import pytest

from tests.dialects.llama_stack.wire import decoded_request, encoded
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.json import JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling

STRATEGIES: list[tuple[JSONObject, Sampling]] = [
    ({"type": "greedy"}, Sampling(temperature=0.0)),
    ({"type": "top_p", "temperature": 0.7, "top_p": 0.9}, Sampling(temperature=0.7, top_p=0.9)),
    ({"type": "top_p", "temperature": 0.7}, Sampling(temperature=0.7)),
    ({"type": "top_k", "top_k": 40}, Sampling(top_k=40)),
]


@pytest.mark.parametrize(("strategy", "sampling"), STRATEGIES)
def test_l1_strategies_are_read(strategy: JSONObject, sampling: Sampling) -> None:
    assert decoded_request(sampling_params={"strategy": strategy}).sampling == sampling


@pytest.mark.parametrize(("strategy", "sampling"), STRATEGIES)
def test_l1_strategies_are_written(strategy: JSONObject, sampling: Sampling) -> None:
    body = {"model_id": "m", "messages": [], "sampling_params": {"strategy": strategy}}
    assert encoded(Request(model="m", sampling=sampling)) == (body, [])


def test_l1_a_strategy_that_nobody_knows() -> None:
    with pytest.raises(WireError, match=r"\$.sampling_params.strategy.type: expected one of greedy, top_p, top_k"):
        decoded_request(sampling_params={"strategy": {"type": "beam"}})


def test_l2_options() -> None:
    """L2: a limit of 0 is none, a penalty of 1 asks for nothing, stop strings count where there are any."""
    params = {"max_tokens": 0, "repetition_penalty": 1.0, "stop": []}
    assert decoded_request(sampling_params=params).sampling == Sampling(repetition_penalty=1.0)
    assert decoded_request().sampling == Sampling()
    params = {"max_tokens": 9, "repetition_penalty": 1.2, "stop": ["a"]}
    assert decoded_request(sampling_params=params).sampling == Sampling(
        max_tokens=9, repetition_penalty=1.2, stop=("a",)
    )


@pytest.mark.parametrize(
    ("sampling", "strategy", "losses"),
    [
        (
            Sampling(top_p=0.5),
            {"type": "top_p", "temperature": 1.0, "top_p": 0.5},
            ["$.sampling temperature approximated (the strategy requires one; 1 is written)"],
        ),
        (
            Sampling(temperature=0.5, top_k=5),
            {"type": "top_p", "temperature": 0.5},
            ["$.sampling top_k dropped (one strategy is drawn by, and it holds no such thing)"],
        ),
        (
            Sampling(temperature=0, top_p=0.5),
            {"type": "greedy"},
            ["$.sampling top_p dropped (one strategy is drawn by, and it holds no such thing)"],
        ),
        (Sampling(temperature=1, top_p=1, top_k=7), {"type": "top_k", "top_k": 7}, []),
        (Sampling(temperature=1, top_k=-1), {"type": "top_p", "temperature": 1}, []),
    ],
)
def test_one_strategy_is_chosen(sampling: Sampling, strategy: JSONObject, losses: list[str]) -> None:
    """L-W13: what of the three numbers is not drawn by is told."""
    body, told = encoded(Request(model="m", sampling=sampling))
    assert (body["sampling_params"], told) == ({"strategy": strategy}, losses)


def test_what_the_dialect_cannot_draw_by() -> None:
    """L-W13: no seed, no penalties but one, no bias; what asks for nothing is no loss."""
    sampling = Sampling(seed=7, frequency_penalty=0.5, presence_penalty=0, min_p=0, logit_bias={})
    body, losses = encoded(Request(model="m", sampling=sampling))
    assert body == {"model_id": "m", "messages": []}
    assert losses == [
        "$.sampling seed dropped (the dialect has no such field)",
        "$.sampling frequency_penalty dropped (the dialect has no such field)",
    ]


def test_limits_of_the_server() -> None:
    request = Request(model="m", sampling=Sampling(max_tokens=99, stop=("a", "b")))
    body, losses = encoded(request, Target(max_tokens_limit=50))
    assert body["sampling_params"] == {"max_tokens": 50, "stop": ["a", "b"]}
    assert losses == ["$.sampling max_tokens approximated (lowered to 50, the most of the server)"]
    with pytest.raises(WireError, match=r"\$.stop: the server takes at most 1 stop strings"):
        encoded(request, Target(stop_limit=1))
    with pytest.raises(WireError, match=r"\$.max_tokens: the server sets no limit where it is 0"):
        encoded(Request(model="m", sampling=Sampling(max_tokens=0)))
    with pytest.raises(WireError, match=r"\$.sampling_params.max_tokens: must be between 0 and 2147483648"):
        decoded_request(sampling_params={"max_tokens": -1})


@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        (Sampling(logprobs=True, top_logprobs=3), {"logprobs": {"top_k": 3}}),
        (Sampling(logprobs=True), {"logprobs": {"top_k": 1}}),
        (Sampling(logprobs=False, top_logprobs=0), {}),
    ],
)
def test_probabilities_are_asked_for(sampling: Sampling, fields: JSONObject) -> None:
    body, losses = encoded(Request(model="m", sampling=sampling))
    assert body == {"model_id": "m", "messages": [], **fields}
    assert losses == (
        ["$.sampling logprobs emulated (the likeliest token is requested at each place)"]
        if sampling.logprobs and not sampling.top_logprobs
        else []
    )


def test_output() -> None:
    request = Request(model="m", output=OutputFormat(kind="json_schema", schema={"type": "object"}, name="n"))
    body, losses = encoded(request)
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"type": "object"}}
    assert losses == ["$.output name dropped (the dialect gives a schema none)"]
    body, losses = encoded(Request(model="m", output=OutputFormat(kind="json")))
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"type": "object"}}
    assert losses == ["$.output kind emulated (written as the schema of an object)"]
    assert encoded(Request(model="m", output=OutputFormat(kind="text"))) == ({"model_id": "m", "messages": []}, [])
