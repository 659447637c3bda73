"""Numbers and lists of every dialect's requests, out of their ranges: a 400 that names the field (R50, C14, C16)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.direct_exchange import handle
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot import dialect_registry as dialects
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.requests.checks import MOST_TOKENS
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.app import Gateway

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

SAID = [{"role": "user", "content": "Hi"}]
REQUESTS: dict[str, tuple[str, JSONObject]] = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": SAID}),
    "completions": ("/v1/completions", {"model": "m", "prompt": "Hi"}),
    "responses": ("/v1/responses", {"model": "m", "input": "Hi"}),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 2000, "messages": SAID}),
    "gemini": ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    "ollama": ("/api/chat", {"model": "m", "messages": SAID, "stream": False}),
    "ollama_generate": ("/api/generate", {"model": "m", "prompt": "Hi", "stream": False}),
    "llama_stack": ("/v1/inference/chat-completion", {"model_id": "m", "messages": SAID}),
    "llama_stack_completion": ("/v1/inference/completion", {"model_id": "m", "content": "Hi"}),
}

# The least and the most of each number; further out is refused. A path with a `!` goes into an object with that type.
COUNT, SEED = (1, MOST_TOKENS), (-(2**63), 2**64 - 1)
OPENAI: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (-1, MOST_TOKENS),
    "min_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "repetition_penalty": (0, 100),
    "seed": SEED,
}
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "chat": {
        **OPENAI,
        "n": (1, 128),
        "max_tokens": COUNT,
        "max_completion_tokens": COUNT,
        "top_logprobs": (0, 20),
        "logit_bias.17": (-100, 100),
        "thinking!enabled.budget_tokens": COUNT,
        "reasoning.max_tokens": COUNT,
    },
    "completions": {
        **OPENAI,
        "n": (1, 128),
        "best_of": (1, 128),
        "max_tokens": (-1, MOST_TOKENS),
        "logprobs": (-1, 128),
    },
    "responses": {**OPENAI, "max_output_tokens": COUNT, "top_logprobs": (0, 20)},
    "messages": {
        "max_tokens": (0, MOST_TOKENS),
        "temperature": (0, 1),
        "top_p": (0, 1),
        "top_k": (0, MOST_TOKENS),
        "thinking!enabled.budget_tokens": (1024, 1999),
    },
    "gemini": {
        f"generationConfig.{name}": limits
        for name, limits in {
            "candidateCount": (1, 128),
            "maxOutputTokens": COUNT,
            "temperature": (0, 2),
            "topP": (0, 1),
            "topK": (-1, MOST_TOKENS),
            "logprobs": (0, 20),
            "seed": SEED,
            "presencePenalty": (-2, 2),
            "frequencyPenalty": (-2, 2),
            "thinkingConfig.thinkingBudget": (-1, MOST_TOKENS),
        }.items()
    },
    "llama_stack": {
        "sampling_params.max_tokens": (0, MOST_TOKENS),
        "sampling_params.repetition_penalty": (0, 100),
        "sampling_params.strategy!top_p.temperature": (0, 100),
        "sampling_params.strategy!top_p.top_p": (0, 1),
        "sampling_params.strategy!top_k.top_k": (0, MOST_TOKENS),
        "logprobs.top_k": (0, 128),
    },
}
OPTIONS: dict[str, tuple[float, float]] = {
    "options.temperature": (0, 100),
    "options.top_p": (0, 1),
    "options.top_k": (-1, MOST_TOKENS),
    "options.min_p": (0, 1),
    "options.frequency_penalty": (-100, 100),
    "options.presence_penalty": (-100, 100),
    "options.repeat_penalty": (0, 100),
    "top_logprobs": (0, 20),
}
RANGES["ollama"] = RANGES["ollama_generate"] = OPTIONS
RANGES["llama_stack_completion"] = RANGES["llama_stack"]
FIELDS = [(dialect, field) for dialect, ranges in RANGES.items() for field in ranges]

NO_NUMBERS = ["true", '"1"', "[]", "{}", "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e300", "9" * 400]
"""What stands in the body, to the letter, and is a number of no range."""


def written(dialect: str, field: str, number: str) -> tuple[str, bytes]:
    """Where a request goes, and its body with `number` in the place of a field."""
    path, body = REQUESTS[dialect]
    place = filled = json.loads(json.dumps(body))
    *outer, last = field.split(".")
    for step in outer:
        name, _, kind = step.partition("!")
        place = place.setdefault(name, {"type": kind} if kind else {})
    place[last] = "@"
    return path, json.dumps(filled).replace('"@"', number).encode()


async def answer(dialect: str, field: str, number: str) -> tuple[int, JSON]:
    """What the gateway says to it."""
    path, body = written(dialect, field, number)
    asked = await handle(Gateway(config_for("own"), {"own": Scripted(HELLO)}), "POST", path, body)
    return asked.status, asked.json


@pytest.mark.parametrize(("dialect", "field"), FIELDS, ids=lambda word: word.replace("!", "-"))
async def test_r50_c14_c16_a_number_out_of_its_range_is_refused_by_name(dialect: str, field: str) -> None:
    least, most = RANGES[dialect][field]
    name = field.rpartition(".")[2].partition("!")[0]
    spared = {"true"} if (dialect, field) == ("completions", "logprobs") else set()  # some say only whether
    for number in {str(least - 1), str(most + 1), "-1e30", "1e30", *NO_NUMBERS} - spared:
        status, told = await answer(dialect, field, number)
        assert status == 400, (number, told)
        if "JSON" not in str(told):  # what is no JSON has no fields
            assert name in str(told) or "budget_tokens" in str(told), (number, told)
            assert len(str(told)) < 600, number


@pytest.mark.parametrize(("dialect", "field"), FIELDS, ids=lambda word: word.replace("!", "-"))
async def test_r50_both_ends_of_the_range_are_taken(dialect: str, field: str) -> None:
    for number in RANGES[dialect][field]:
        status, told = await answer(dialect, field, str(number))
        assert status == 200, (number, told)


# -- what each dialect's clients are used to read

BUDGET = "thinking!enabled.budget_tokens"


@pytest.mark.parametrize(
    ("dialect", "field", "number", "message"),
    [
        ("chat", "n", "0", "n: integer below minimum value. Expected a value >= 1, but got 0 instead."),
        ("chat", "top_p", "2.5", "top_p: decimal above maximum value. Expected a value <= 1, but got 2.5 instead."),
        ("responses", "top_k", "-3", "top_k: integer below minimum value. Expected a value >= -1, but got -3 instead."),
        ("messages", "max_tokens", "-1", "max_tokens: Input should be greater than or equal to 0"),
        ("messages", BUDGET, "5000", "max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`"),
        ("messages", BUDGET, "3", "thinking.budget_tokens: Input should be greater than or equal to 1024"),
    ],
)
async def test_c16_in_the_words_of_the_dialect(dialect: str, field: str, number: str, message: str) -> None:
    status, told = await answer(dialect, field, number)
    assert (status, told["error"]["message"]) == (400, message)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
LISTS: dict[str, JSONObject] = {
    "$.messages": {"messages": SAID * 100_001},
    "$.messages[0].content": {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 20_001}]},
    "$.tools": {"tools": [TOOL] * 4097},
    "$.stop": {"stop": ["a"] * 257},
    "$.logit_bias": {"logit_bias": {str(token): 1 for token in range(4097)}},
}


@pytest.mark.parametrize("path", LISTS)
async def test_r50_a_list_that_is_too_long_is_refused(path: str) -> None:
    gateway = Gateway(config_for("own"), {"own": Scripted(HELLO)})
    asked = await handle(gateway, "POST", "/v1/chat/completions", {"model": "m", "messages": SAID, **LISTS[path]})
    assert (asked.status, asked.json["error"]["param"]) == (400, path.removeprefix("$."))


async def test_r50_c19_what_agents_send_is_not() -> None:
    gateway = Gateway(config_for("own"), {"own": Scripted(HELLO)})
    body = {"model": "m", "messages": SAID * 5000, "tools": [TOOL] * 500, "stop": ["a", "b", "c", "d"]}
    assert (await handle(gateway, "POST", "/v1/chat/completions", body)).status == 200


NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**40), 10**40))


@given(case=st.sampled_from(FIELDS), number=NUMBERS)
def test_r50_any_number_is_taken_within_its_range_or_refused(case: tuple[str, str], number: float) -> None:
    dialect, field = case
    least, most = RANGES[dialect][field]
    _, body = written(dialect, field, json.dumps(number))
    said = decode_json(body) | ({"model": "m"} if dialect == "gemini" else {})
    try:
        dialects.get(dialect).decode_request(said)
    except (WireError, FailureError):
        return
    assert least <= number <= most
